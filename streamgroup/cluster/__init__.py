"""The capacity model: what a worker needs to serve a tuple, as plain data with methods that a compiler can read."""
