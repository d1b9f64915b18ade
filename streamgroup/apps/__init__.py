"""Applications that compute results from tuples, each a file that is found by its name (see `protocol`)."""
