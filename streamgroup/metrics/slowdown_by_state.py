"""How many keys workers held where state costs, and how much slower that made them (docs/cluster.md, State)."""

from streamgroup.metrics.exact_ratios import ratio
from streamgroup.metrics.metric_names import Number
from streamgroup.replay.accounting.outcome import Outcome

__all__ = ["measure"]


def measure(outcome: Outcome) -> dict[str, Number]:
    """Return the most keys that a worker held as it served a tuple, and the mean factor; None where state is free."""
    total = outcome.state_slowdown_sum
    return {
        "held_entries_max": outcome.held_most,
        "state_slowdown_mean": None if total is None else ratio(total, int(outcome.worker.served.sum())),
    }
