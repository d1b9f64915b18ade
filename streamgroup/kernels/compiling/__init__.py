"""Compiling kernels with their code on disk, and calling them from Python."""
