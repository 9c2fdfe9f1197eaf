"""Messages of services of others: priority overrides and bids."""
