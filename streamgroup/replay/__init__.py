"""The replay: loops over the tuples, compiled per grouping, in integer nanoseconds of virtual time."""
