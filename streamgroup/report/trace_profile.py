"""The profile of a trace: rate over time, keys by rank, and the hottest keys over time."""

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import polars as pl
from numpy.typing import NDArray

from streamgroup.traces.statistics.count_ids import add_counts
from streamgroup.traces.statistics.describe import HOT_KEYS, TopKey, top_ids, zipf_exponent
from streamgroup.traces.trace import Trace

__all__ = ["TraceProfile", "profile_trace"]

_BUCKETS = 200
# A peak is sought in this many pieces of a bucket.
_PIECES = 10
_RANKS = 300
_WINDOWS = 60
# In a window with a smaller part of the mean tuples, any key may have it all.
_FEW = 10
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
    - `top_keys`: the 10 keys with the largest share of any window of `hot`, ties by their tuples, then by id; windows
      with fewer than a tenth of the mean tuples do not count;
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
    """Which keys are hot in each window of time that has tuples, and the largest share that each key has of any.

    `peak` float64[keys] is that share; windows with fewer than `least` tuples do not count.
    """

    def __init__(self, grid: _Grid, keys: int, least: float) -> None:
        self._inner, self._borders = grid.inner(), grid.seconds()
        self._least = least
        self._count = np.zeros(keys, np.int64)
        self._tuples = self._window = 0
        self._before: set[int] | None = None
        self._windows: list[tuple[float, float, int, float | None]] = []
        self._numbers: list[int] = []
        self.peak = np.zeros(keys)

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
        self._numbers.append(self._window)
        if self._tuples >= self._least:
            np.maximum(self.peak, self._count / self._tuples, out=self.peak)
        self._before = hot
        self._count[:] = 0
        self._tuples = 0

    def windows(self) -> pl.DataFrame:
        return pl.DataFrame(self._windows, _STAY, orient="row")

    def shares(self, trace: Trace, top: list[int]) -> pl.DataFrame:
        """Return the shares that the keys `top` have of each window, in another pass over the trace."""
        rank = np.zeros(trace.keys, np.int64)
        rank[top] = np.arange(1, len(top) + 1)
        width = len(top) + 1
        count = np.zeros((len(self._inner) + 1) * width, np.int64)
        for batch in trace.batches():
            assert batch.timestamp is not None
            assert batch.key_id is not None
            window = np.searchsorted(self._inner, batch.timestamp, side="right")
            count += np.bincount(window * width + rank[batch.key_id], minlength=len(count))
        found = count.reshape(-1, width)[self._numbers]
        shares = found[:, 1:] / found.sum(axis=1, keepdims=True)
        long = self.windows().drop("stay").select(pl.all().repeat_by(len(top)).explode())
        ranks = np.tile(np.arange(1, width), len(self._numbers))
        return long.with_columns(pl.Series("rank", ranks), pl.Series("share", shares.ravel()))


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
    """Look at an open trace in two passes over its tuples; memory is O(keys). DataError when a file is damaged."""
    count = trace.dictionary().count
    top: list[int] = []
    exponent = zipf_exponent(count)
    first, last = trace.first_timestamp, trace.last_timestamp
    rate, hot, stay = pl.DataFrame(schema=_RATE), pl.DataFrame(schema=_HOT), pl.DataFrame(schema=_STAY)
    if first is not None and last is not None:
        pace, drift = _Pace(first, last), None
        for batch in trace.batches():
            assert batch.timestamp is not None
            assert batch.key_id is not None
            if drift is None:
                grid = _Grid(first, last, _unit(batch.timestamp), _WINDOWS)
                drift = _Hot(grid, trace.keys, trace.tuples / grid.cells / _FEW)
            pace.add(batch.timestamp)
            drift.add(batch.timestamp, batch.key_id)
        assert drift is not None
        drift.end()
        rate = pace.frame()
        known = np.flatnonzero(drift.peak)
        order = np.lexsort((known, -count[known], -drift.peak[known]))
        top = known[order][:HOT_KEYS].tolist()
        hot, stay = drift.shares(trace, top), drift.windows()
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
