"""How `armadactl` finds a server and talks to it: configured targets, credentials, calls, errors."""
