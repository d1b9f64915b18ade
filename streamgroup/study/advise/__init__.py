"""Which grouping to take, and how few workers would do."""
