"""The metrics page: asks those who know what they know, and writes it down."""
