"""PLUMBING: the one ordered log. Knows the model and nothing else of ours; decides nothing."""
