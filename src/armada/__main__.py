"""`python -m armada` is the same as `armada`."""

from armada.cli.operator import main

if __name__ == "__main__":
    main()
