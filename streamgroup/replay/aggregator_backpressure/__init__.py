"""Full aggregators that hold workers back: the event-driven simulation with bounded queues at both."""
