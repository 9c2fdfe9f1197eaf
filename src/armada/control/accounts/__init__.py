"""Accounts of the latest rounds: as data, and in words."""
