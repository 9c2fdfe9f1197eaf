"""One script a revision, oldest first by number."""
