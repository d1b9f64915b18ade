"""Metrics of hot-key handling: workers allowed to hot keys, precision and recall, detection delay."""

from math import fsum

from streamgroup.metrics.exact_ratios import I64, NS_PER_MS, integers, ratio
from streamgroup.metrics.metric_names import Number
from streamgroup.replay.accounting.outcome import Outcome

__all__ = ["measure"]


def measure(outcome: Outcome) -> dict[str, Number]:
    """Return the hot-key family (002 figs. 19 and 20); None where there is no detector or nothing to divide by."""
    hot, choices, found = outcome.hot_tuples, outcome.hot_choices_sum, outcome.hot_keys
    delay, announced = outcome.signal_delay or (0, 0)
    allowed: dict[str, Number] = {
        "choices_max": outcome.choices_max if hot else None,
        "choices_mean": ratio(choices, hot) if hot and choices is not None else None,
        "hot_signal_delay_ms": ratio(delay, announced * NS_PER_MS),
    }
    if found is None:
        return allowed
    return {
        **allowed,
        "hot_keys_mean": ratio(sum(integers(found.treated)), len(found.treated)),
        "hot_precision": _mean_share(found.both, found.treated),
        "hot_recall": _mean_share(found.both, found.hot),
        "hot_detection_delay_tuples": ratio(found.delay_tuples, found.detected),
        "hot_detection_delay_ms": ratio(found.delay_ns, found.detected * NS_PER_MS),
    }


def _mean_share(part: I64, whole: I64) -> float | None:
    """Average part / whole over the windows in which there is a whole; the sum of the quotients is rounded once."""
    there = whole > 0
    shares = part[there] / whole[there]
    return fsum(shares.tolist()) / len(shares) if len(shares) else None
