"""The arrays of tuples that choosing, serving and accounting share: a chunk of the stream, and what came of it."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "DROPPED",
    "LOST",
    "MAX_TIME_NS",
    "NEVER",
    "OPEN",
    "Choices",
    "Chunk",
    "Events",
    "Records",
    "Served",
    "Span",
    "each_column",
    "make_records",
]

I64 = NDArray[np.int64]
Records = np.recarray[Any, Any]

MAX_TIME_NS = 1 << 62
# Past every time, and with room for one more.
NEVER = (1 << 63) - 2

# In place of a finish: not known yet, lost in a crash, dropped by a full queue.
OPEN, LOST, DROPPED = -1, -2, -3


def make_records(fields: tuple[str, ...], size: int) -> Records:
    """Make records of int64, all of them -1."""
    return np.full((size, len(fields)), -1).view([(name, np.int64) for name in fields])[:, 0].view(np.recarray)


class Chunk(NamedTuple):
    """Tuples of the stream, one element each; `offset` is the number of the first in the stream.

    `arrival` int64 in ns, `key` uint32, `cost` int64 or float64 in ns (None: the same for all tuples), `source` int32
    (None: `sources` sources take tuples round robin), `source_factor` float64, the random factor of the time at the
    source (None: there is none), `held_window` int64, the window that workers hold its key for (None: see `Held`).
    """

    offset: int
    sources: int
    arrival: I64
    key: NDArray[np.uint32]
    cost: NDArray[Any] | None
    source: NDArray[np.int32] | None
    source_factor: NDArray[np.float64] | None = None
    held_window: I64 | None = None


class Choices(NamedTuple):
    """What the sources chose, one element a tuple.

    `worker` int32; `hot` int32, the number of workers allowed to a tuple treated as hot, else 0 (None without a
    detector); `entries` int64, the size of the detector (None where the grouping does not report it).
    """

    worker: NDArray[np.int32]
    hot: NDArray[np.int32] | None
    entries: I64 | None


class Served(NamedTuple):
    """When the service of each tuple starts and finishes in ns, int64; `start` is None where nobody needs it.

    `entries` int64 is what its worker holds then, None where state costs nothing.
    """

    start: I64 | None
    finish: I64
    entries: I64 | None = None


class Events(NamedTuple):
    """What happened to tuples, one element each, as it is accounted and logged; columns as above.

    `finish` is OPEN, LOST or DROPPED where there is none; `worker` of a dropped tuple is the one that was full.
    `entries` is the size of the detector, `held` what the worker holds (see `Served`).
    """

    source: NDArray[np.int32] | None
    key: NDArray[np.uint32]
    worker: NDArray[np.int32]
    arrival: I64
    start: I64 | None
    finish: I64
    hot: NDArray[np.int32] | None
    entries: I64 | None
    held: I64 | None = None


def each_column(events: Events, change: Callable[[NDArray[Any]], NDArray[Any]]) -> Events:
    """Return events with every column changed; those that are missing stay so."""
    changed: list[Any] = [None if column is None else change(column) for column in events]
    return Events(*changed)


class Span(NamedTuple):
    """The places `begin`..`end - 1` of a chunk."""

    begin: int
    end: int
