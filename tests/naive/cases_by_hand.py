"""Helpers for cases worked out by hand: streams, groupings and outcomes, with times in ms."""

from typing import Any

from tests.naive.groupings.simple_groupings import Grouping
from tests.naive.replay.tuple_records import Run

__all__ = ["MS", "SECOND", "To", "at_ms", "chosen", "served", "stream"]

MS = 1_000_000
SECOND = 1_000_000_000


class To(Grouping):
    """Sends each tuple to the worker its key names; to the lowest one there is, where that one is not."""

    def choose(self, source: int, key: bytes | None, now: int) -> int:
        worker = int(key or b"0")
        return worker if worker in self.live else self.live[0]


def stream(*rows: tuple[float, float]) -> list[Any]:
    """Tuples at a time with a cost, both in ms, for worker 0."""
    return [(round(at * 1000), b"0", cost * 1000.0) for at, cost in rows]


def served(run: Run) -> list[Any]:
    """Worker, start and finish in ms of every tuple."""
    return [
        (r.worker, None if r.start_ns is None else r.start_ns / MS, None if r.finish_ns is None else r.finish_ns / MS)
        for r in run.records
    ]


def chosen(run: Run) -> list[tuple[float, int, int, int]]:
    return [(c.now / MS, c.source, c.seq, c.worker) for c in run.choices]


def at_ms(ms: float) -> tuple[str, int]:
    return ("time", round(ms * MS))
