"""Where rows come from other than through a reader: whatever Spark loads."""
