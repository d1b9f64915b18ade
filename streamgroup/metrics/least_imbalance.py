"""What the keys alone force: the least imbalance of a grouping that gives every key a fixed number of workers."""

from fractions import Fraction

from streamgroup.metrics.metric_names import Number
from streamgroup.replay.accounting.outcome import Outcome

__all__ = ["measure", "split_floor"]


def split_floor(top: int, total: int, choices: int, workers: int) -> Fraction:
    """Return the least imbalance if the hottest key, `top` of `total` tuples, has `choices` of `workers` workers.

    max(0, p1/choices - 1/workers): one of its workers gets at least its part of the key (001 section III-A for two). No
    other set of keys gives more: the h hottest have at most h x choices workers, and a smaller mean share than p1.
    """
    return max(Fraction(top, total * choices) - Fraction(1, workers), Fraction(0))


def measure(outcome: Outcome) -> dict[str, Number]:
    """Return the bound; None where choices depend on the key, workers come or go, or tuples are dropped or sent again.

    It is of the counts of the measured tuples, so that `imbalance` is never below it.
    """
    changed = outcome.worker.alive_from_ns is not None and not outcome.steady
    if outcome.choices_per_key is None or changed or outcome.dropped or outcome.redelivered:
        return {"bound_imbalance": None}
    top = int(outcome.count.max())
    return {"bound_imbalance": float(split_floor(top, outcome.measured, outcome.choices_per_key, outcome.workers))}
