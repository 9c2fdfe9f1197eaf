"""What drawn problems are made of: which features are on, settings, fleets and jobs."""
