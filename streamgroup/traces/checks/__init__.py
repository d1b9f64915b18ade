"""The checks that hold a trace to its promises."""
