"""`armada simulate`: its files, what it shows while it works, tables and plots of what came out."""
