"""The charts: one file each, found by its name (see `protocol`)."""
