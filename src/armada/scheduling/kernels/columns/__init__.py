"""Passes over long columns, each cell looked at once: reading a round's input (`rows`), who can ever run (`sizes`)."""
