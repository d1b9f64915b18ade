"""How far the workers fell behind, and what never reached one."""

from streamgroup.metrics.exact import NS_PER_MS, integers, ratio
from streamgroup.metrics.names import Number
from streamgroup.replay.outcome import Outcome

__all__ = ["measure"]


def measure(outcome: Outcome) -> dict[str, Number]:
    """Give the longest wait and queue; queues have no limit and workers stay, so no tuple is lost."""
    return {
        "backlog_max_ms": ratio(max(integers(outcome.worker.wait_max_ns)), NS_PER_MS),
        "queue_max": _queue_max(outcome),
        "dropped": 0,
        "redelivered": 0,
        "lost": 0,
    }


def _queue_max(outcome: Outcome) -> int | None:
    """Count the waiting tuples at the worst moment, the new one among them; None unless all cost the same.

    With one service time s on a worker, a tuple that waits W has ceil(W / s) - 1 waiting ahead of it.
    """
    if outcome.service_ns is None:
        return None
    pairs = zip(integers(outcome.worker.wait_max_ns), integers(outcome.service_ns), strict=True)
    return max(-(-wait // service) if service else 0 for wait, service in pairs)
