"""Statistics of a trace and of its keys."""
