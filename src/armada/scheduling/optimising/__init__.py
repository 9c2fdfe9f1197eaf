"""The fairness optimiser: after the second pass, places for queues below their share where it makes the pool fairer."""
