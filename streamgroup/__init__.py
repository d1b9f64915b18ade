"""Replay recorded streams through any stream grouping and measure what it would cost."""

__version__ = "0.1.0"
