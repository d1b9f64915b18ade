"""One replay a second time: its options, its stream, its workers, and the order of events."""
