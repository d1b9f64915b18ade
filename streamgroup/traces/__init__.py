"""The trace format: one writer, one reader, and the checks that hold a trace to its promises."""
