"""Synthetic streams: one generator a file, its name the name on the command line."""
