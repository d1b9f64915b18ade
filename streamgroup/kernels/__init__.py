"""Structures and arithmetic that compiled code shares: hashing, draws, counts, the least loaded; one a file."""
