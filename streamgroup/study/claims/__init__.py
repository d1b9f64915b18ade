"""The claims of five papers: what to run for each, how to read its numbers off, and whether it holds.

A paper is a directory in `data/`: its sweeps, each read by any number of claims, its figures, and the claims.
"""
