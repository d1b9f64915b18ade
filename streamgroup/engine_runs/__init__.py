"""Runs inside real engines: the same grouping on the same trace, with real processes, a real clock and real state."""
