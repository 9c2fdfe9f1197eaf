"""The agent in a worker cluster: it leases runs, makes pods of them, and reports what becomes of them.

`agent.py`, `runs.py` and `pods.py` are pure: stimuli and a time in, instructions out. `cluster.py` is the port to
whatever runs the pods (this machine's processes, a simulated cluster, later Kubernetes); `service.py` carries the
instructions out and talks to the control plane. The room may live on another machine than the server: it holds no
control-plane state and imports no other room but model, wire and runtime.
"""
