"""Revisions of the history's tables, and the way from an older one to the newest. Imported only when needed."""
