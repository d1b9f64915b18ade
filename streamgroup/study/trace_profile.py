"""The profile of a trace: rate over time, keys by rank, and the hottest keys over time."""

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import polars as pl
from numpy.typing import NDArray

from streamgroup.traces.arrays import add_counts
from streamgroup.traces.describe import HOT_KEYS, TopKey, top_ids, zipf_exponent
from streamgroup.traces.trace import Trace

__all__ = ["TraceProfile", "profile_trace"]

_BUCKETS = 200
# A peak is sought in this many pieces of a bucket.
_PIECES = 10
_RANKS = 300
_WINDOWS = 60
# A trace with fewer distinct times than this has its buckets cut between them; with more it does not matter.
_INSTANTS = 200_000
_TIMES = {"from_s": pl.Float64, "to_s": pl.Float64, "tuples": pl.Int64}
_RATE = {**_TIMES, "rate": pl.Float64, "peak_rate": pl.Float64}
_HOT = {**_TIMES, "rank": pl.Int64, "share": pl.Float64}
_STAY = {**_TIMES, "stay": pl.Float64}


@dataclass(frozen=True, eq=False)
class TraceProfile:
    """What is worth drawing of a trace. Timestamps in us since 1970, None without a tuple; other times in s since
    the first tuple; rates in tuples a second; shares 0..1.

    - `rate`: `from_s`, `to_s`, `tuples`, `rate`, `peak_rate`: at most 200 segments of time of nearly one length,
      empty ones too. `peak_rate` is the rate of the busiest tenth of the segment. Where all times are multiples of
      some unit (whole seconds, hours), segments hold whole units, and those of one unit have no finer peak. Both
      rates are null when all tuples have one time;
    - `ranks`: `rank` (1 is the most frequent key), `count`, `zipf` (the count by the fitted law, null without one):
      at most 300 ranks, evenly spaced in their logarithm, the first and the last among them;
    - `top_keys`: the 10 most frequent keys, ties by id;
    - `hot`: `from_s`, `to_s`, `tuples`, `rank`, `share`: for each of at most 60 equal windows of time that hold a
      tuple, the share of its tuples that each of `top_keys` has. Windows hold whole units, too, as far as the first
      2^20 tuples show one;
    - `stay`: `from_s`, `to_s`, `tuples`, `stay`: for each such window, the share of its own 10 most frequent keys that
      were also among those of the window before it; null in the first.
    """

    name: str
    tuples: int
    keys: int
    first_timestamp: int | None
    last_timestamp: int | None
    zipf_exponent: float | None
    top_keys: tuple[TopKey, ...]
    rate: pl.DataFrame = field(repr=False)
    ranks: pl.DataFrame = field(repr=False)
    hot: pl.DataFrame = field(repr=False)
    stay: pl.DataFrame = field(repr=False)


class _Grid:
    """At most `most` segments of time from `first` on, in whole units of `unit` us, each of up to `pieces` pieces.

    The lengths of pieces differ by at most one unit, and so do those of segments.
    """

    def __init__(self, first: int, last: int, unit: int, most: int, pieces: int = 1) -> None:
        units = (last - first) // unit + 1
        segments = min(most, units)
        self.pieces = min(pieces, units // segments)
        self.cells = segments * self.pieces
        self._first, self._unit = first, unit
        self._starts = [-(-units * i // self.cells) for i in range(self.cells + 1)]

    def inner(self) -> NDArray[np.int64]:
        """Return the times at which all pieces but the first begin."""
        return np.array([self._first + self._unit * start for start in self._starts[1:-1]], np.int64)

    def seconds(self) -> NDArray[np.float64]:
        """Return the borders in s since the first tuple, one more than there are pieces."""
        return np.array([start * self._unit / 1e6 for start in self._starts])


def _unit(times: NDArray[np.int64]) -> int:
    """Return the unit in us of which all differences of times are multiples, 1 when there is but one time."""
    # Differences may need all 64 bits.
    since = times.view(np.uint64) - times[:1].view(np.uint64)
    return int(np.gcd.reduce(since)) or 1


class _Pace:
    """Tuples a segment of time, and the exact times while they are few."""

    def __init__(self, first: int, last: int) -> None:
        self._first, self._last = first, last
        self._grid = _Grid(first, last, 1, _BUCKETS, _PIECES)
        self._inner = self._grid.inner()
        self._before = np.zeros(len(self._inner), np.int64)
        self._tuples = 0
        self._instants: list[tuple[NDArray[np.int64], NDArray[np.int64]]] | None = []
        self._distinct = 0

    def add(self, stamps: NDArray[np.int64]) -> None:
        self._tuples += len(stamps)
        self._before += np.searchsorted(stamps, self._inner)
        if self._instants is None:
            return
        starts = np.concatenate([[0], np.flatnonzero(stamps[1:] != stamps[:-1]) + 1])
        self._distinct += len(starts)
        if self._distinct > _INSTANTS:
            self._instants = None
        else:
            self._instants.append((stamps[starts], np.diff(np.append(starts, len(stamps)))))

    def frame(self) -> pl.DataFrame:
        grid, count = self._grid, np.diff(np.concatenate([[0], self._before, [self._tuples]]))
        if self._instants is not None:
            times = np.concatenate([found for found, _ in self._instants])
            tuples = np.concatenate([found for _, found in self._instants])
            grid = _Grid(self._first, self._last, _unit(times), _BUCKETS, _PIECES)
            place = np.searchsorted(grid.inner(), times, side="right")
            count = np.zeros(grid.cells, np.int64)
            np.add.at(count, place, tuples)
        pieces, borders = grid.pieces, grid.seconds()
        found = count.reshape(-1, pieces)
        frame = pl.DataFrame(
            {
                "from_s": borders[:-1:pieces],
                "to_s": borders[pieces::pieces],
                "tuples": found.sum(axis=1),
                "rate": found.sum(axis=1) / np.diff(borders[::pieces]),
                "peak_rate": (found / np.diff(borders).reshape(-1, pieces)).max(axis=1),
            }
        )
        if self._first == self._last:
            frame = frame.with_columns(pl.lit(None, pl.Float64).alias(name) for name in ("rate", "peak_rate"))
        return frame


class _Hot:
    """Shares of given keys, and which keys are hot, in each window of time that has tuples."""

    def __init__(self, grid: _Grid, keys: int, top: list[int]) -> None:
        self._inner, self._borders = grid.inner(), grid.seconds()
        self._top = top
        self._count = np.zeros(keys, np.int64)
        self._tuples = self._window = 0
        self._before: set[int] | None = None
        self._windows: list[tuple[float, float, int, float | None]] = []
        self._shares: list[NDArray[np.float64]] = []

    def add(self, stamps: NDArray[np.int64], ids: NDArray[np.uint32]) -> None:
        cuts = [0, *np.searchsorted(stamps, self._inner).tolist(), len(stamps)]
        for window, (low, high) in enumerate(pairwise(cuts)):
            if low < high:
                if window != self._window:
                    self.end()
                    self._window = window
                add_counts(self._count, ids[low:high])
                self._tuples += high - low

    def end(self) -> None:
        """Close the window; after the last tuple and before `frames`."""
        hot = set(top_ids(self._count, HOT_KEYS))
        stay = None if self._before is None else len(hot & self._before) / len(hot)
        start, stop = self._borders[self._window : self._window + 2].tolist()
        self._windows.append((start, stop, self._tuples, stay))
        self._shares.append(self._count[self._top] / self._tuples)
        self._before = hot
        self._count[:] = 0
        self._tuples = 0

    def frames(self) -> tuple[pl.DataFrame, pl.DataFrame]:
        windows = pl.DataFrame(self._windows, _STAY, orient="row")
        ranks = np.tile(np.arange(1, len(self._top) + 1), len(self._windows))
        long = windows.drop("stay").select(pl.all().repeat_by(len(self._top)).explode())
        hot = long.with_columns(pl.Series("rank", ranks), pl.Series("share", np.concatenate(self._shares)))
        return hot, windows


def _ranks(count: NDArray[np.int64], exponent: float | None) -> pl.DataFrame:
    ranked = np.sort(count)[::-1]
    if not len(ranked):
        return pl.DataFrame(schema={"rank": pl.Int64, "count": pl.Int64, "zipf": pl.Float64})
    rank = np.unique(np.rint(np.geomspace(1, len(ranked), _RANKS)).astype(np.int64))
    frame = pl.DataFrame({"rank": rank, "count": ranked[rank - 1]})
    if exponent is None:
        return frame.with_columns(pl.lit(None, pl.Float64).alias("zipf"))
    first = float(ranked.sum()) / float((np.arange(1, len(ranked) + 1, dtype=np.float64) ** -exponent).sum())
    return frame.with_columns(pl.Series("zipf", first * rank.astype(np.float64) ** -exponent))


def profile_trace(trace: Trace) -> TraceProfile:
    """Look at an open trace in one pass over its tuples; memory is O(keys). DataError when a file is damaged."""
    count = trace.dictionary().count
    top = top_ids(count, HOT_KEYS)
    exponent = zipf_exponent(count)
    first, last = trace.first_timestamp, trace.last_timestamp
    rate, hot, stay = pl.DataFrame(schema=_RATE), pl.DataFrame(schema=_HOT), pl.DataFrame(schema=_STAY)
    if first is not None and last is not None:
        pace, drift = _Pace(first, last), None
        for batch in trace.batches():
            assert batch.timestamp is not None
            assert batch.key_id is not None
            if drift is None:
                drift = _Hot(_Grid(first, last, _unit(batch.timestamp), _WINDOWS), trace.keys, top)
            pace.add(batch.timestamp)
            drift.add(batch.timestamp, batch.key_id)
        assert drift is not None
        drift.end()
        rate = pace.frame()
        hot, stay = drift.frames()
    return TraceProfile(
        name=trace.name,
        tuples=trace.tuples,
        keys=trace.keys,
        first_timestamp=first,
        last_timestamp=last,
        zipf_exponent=exponent,
        top_keys=tuple(
            TopKey(key, int(count[key_id]), int(count[key_id]) / trace.tuples)
            for key_id, key in zip(top, trace.key_texts(top), strict=True)
        ),
        rate=rate,
        ranks=_ranks(count, exponent),
        hot=hot,
        stay=stay,
    )
