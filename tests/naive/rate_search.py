"""The search of the highest rate, slowly: what a rate leaves behind, and that a rate is one within 1 % of a border."""

from fractions import Fraction
from typing import Any

from tests.naive.groupings.simple_groupings import Setting, Sg
from tests.naive.metrics.metric_formulas import nearest_rank
from tests.naive.replay.simulate import simulate

SECOND = 1_000_000_000

__all__ = ["is_kept"]


def is_kept(keys: list[bytes], workers: int, service_ns: int, rate: Fraction, limit_ns: int | None) -> bool:
    """Replay under sg with one source, and say whether the p99 is within the limit or, without one, whether each
    worker finishes within a second of the last arrival."""
    tuples: list[Any] = [(0, key, None) for key in keys]
    run = simulate(
        tuples, Sg(Setting(workers, 1)), workers=workers, sources=1, arrivals=("rate", rate), service_ns=service_ns
    )
    records = run.records
    if limit_ns is not None:
        return nearest_rank([r.finish_ns - r.arrival_ns for r in records], Fraction(99, 100)) <= limit_ns
    return max(r.finish_ns for r in records) - max(r.arrival_ns for r in records) <= SECOND
