"""Compiled code on disk, and kernels rewritten to plain Python."""
