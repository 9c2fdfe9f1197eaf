"""A slow, obvious scheduler in plain Python, written from the rules alone; what the product is compared with."""
