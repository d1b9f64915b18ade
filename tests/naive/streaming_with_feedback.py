"""A streaming run with feedback, decided once more, tuple by tuple, from the input files of its batches."""

from collections.abc import Sequence
from typing import Any

from streamgroup.online import Partitioner

__all__ = ["choices"]


def choices(
    batches: Sequence[Sequence[dict[str, Any]]], grouping: str, workers: int, sources: int, **options: Any
) -> dict[int, int]:
    """The worker of each tuple, by its number; `batches` are the rows of the input files.

    A source hears of each tuple that finished, in the order of the finishes, then it chooses. It never chooses before
    the moment of what it heard last.
    """
    found: dict[int, int] = {}
    for source in range(sources):
        partitioner = Partitioner(grouping, workers, source, sources=sources, interpreted=True, **options)
        now = 0
        for batch in batches:
            mine = [row for row in batch if row["source"] == source]
            reports = [row for row in mine if row["worker"] != -1]
            for row in sorted(reports, key=lambda row: (row["finish"], row["worker"], row["seq"])):
                assert row["arrival"] <= row["start"] <= row["finish"]
                assert now <= row["start"]
            for row in sorted(reports, key=lambda row: (row["finish"], row["worker"], row["seq"])):
                partitioner.finished(row["worker"], row["key"], row["arrival"], row["start"], row["finish"])
                now = row["finish"]
            for row in sorted((row for row in mine if row["worker"] == -1), key=lambda row: row["seq"]):
                if row["seq"] >= 0:
                    now = max(now, row["arrival"])
                    found[row["seq"]] = partitioner.choose(row["key"], now)
    return found
