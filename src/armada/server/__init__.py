"""SHELL. The control-plane process: follows the log, lets the leader decide, serves users and executors.

Handlers read, call a pure function of `armada.control`, append what it returns, wait until their own replica has
folded it, and answer. No rule of the system is written here.
"""
