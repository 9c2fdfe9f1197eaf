"""What keeps a replica's storage in shape while it runs: checkpoints that are saved, entries that leave the log."""
