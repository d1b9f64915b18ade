"""Synthetic streams: generators, arrivals, distributions."""
