"""Counts of keys: exact, sketched, of the most frequent ones, and of a sliding window."""
