"""Compile all kernels and keep the machine code: `python -m armada.scheduling`."""

from armada.scheduling.readiness.warming import warm_up

if __name__ == "__main__":
    warm_up()
