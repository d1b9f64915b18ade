"""Backlogs of the workers, and tuples that were dropped or lost."""

from streamgroup.metrics.exact_ratios import NS_PER_MS, integers, ratio
from streamgroup.metrics.metric_names import Number
from streamgroup.replay.accounting.outcome import Outcome

__all__ = ["measure"]


def measure(outcome: Outcome) -> dict[str, Number]:
    """Return the longest wait (of finished tuples) and queue, and the counts of what did not simply finish."""
    workers = outcome.worker
    wait = ratio(max(integers(workers.wait_max_ns)), NS_PER_MS) if workers.served.any() else None
    return {
        "backlog_max_ms": wait,
        "queue_max": outcome.queue_max if outcome.queue_known else _queue_max(outcome),
        "dropped": outcome.dropped,
        "redelivered": outcome.redelivered,
        "lost": outcome.lost,
    }


def _queue_max(outcome: Outcome) -> int | None:
    """Count the waiting tuples at the worst moment, the new one among them; None unless all cost the same.

    With one service time s on a worker, a tuple that waits W has ceil(W / s) - 1 waiting ahead of it.
    """
    if outcome.service_ns is None:
        return None
    pairs = zip(integers(outcome.worker.wait_max_ns), integers(outcome.service_ns), strict=True)
    return max(-(-wait // service) if service else 0 for wait, service in pairs)
