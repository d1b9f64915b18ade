"""A trace of one key and as many tuples as wanted, which no file holds: for runs that are long, not varied."""

from collections.abc import Iterator, Sequence
from dataclasses import fields
from pathlib import Path

import numpy as np

from streamgroup.traces.trace import Batch, Dictionary, Trace, open_trace
from tests.traces_by_hand import write_trace

__all__ = ["Endless", "endless"]

ROWS = 1 << 20
KEYS = np.zeros(ROWS, dtype=np.uint32)
KEYS.flags.writeable = False


class Endless(Trace):
    """A trace without times and costs: arrivals have to be others than the trace's."""

    def batches(self, columns: Sequence[str] = (), start: int = 0, decoders: int = 0) -> Iterator[Batch]:
        assert list(columns) == ["key_id"]
        for offset in range(start, self.tuples, ROWS):
            yield Batch(offset, None, KEYS[: min(ROWS, self.tuples - offset)], None, None, None)

    def dictionary(self) -> Dictionary:
        known = super().dictionary()
        return Dictionary(np.full(1, self.tuples, dtype=np.int64), known.hash_lo, known.hash_hi)


def endless(directory: Path, tuples: int) -> Endless:
    one = open_trace(write_trace(directory / "one.trace", [(0, b"k", None)]))
    values = {field.name: getattr(one, field.name) for field in fields(one)}
    return Endless(**{**values, "tuples": tuples})
