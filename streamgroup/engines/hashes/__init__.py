"""Hash functions that engines use."""
