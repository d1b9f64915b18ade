"""Structures and arithmetic that compiled code shares: hashing, draws, wide sums, quantiles; one a file."""
