"""The job as one Structured Streaming query: micro-batches, with sources and workers as stateful operators."""
