"""Statistics of a trace: span, rate, skew, drift of the hot keys, order, ties."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamgroup.traces.statistics.count_ids import add_counts
from streamgroup.traces.trace import Trace

__all__ = ["HOT_KEYS", "MEANINGS", "Description", "TopKey", "describe", "top_ids", "zipf_exponent"]

HOT_KEYS = 10
DRIFT_SLICES = 10
RATE_SLICES = 100
_BLOCK = 1 << 10


# The unit and the meaning of what `Description` holds, by name, but for the fingerprint and the top keys.
MEANINGS: dict[str, tuple[str, str]] = {
    "name": ("", "of the trace"),
    "tuples": ("tuples", "in the stream"),
    "keys": ("keys", "distinct"),
    "first_timestamp": ("us", "since 1970"),
    "last_timestamp": ("us", "since 1970"),
    "span_us": ("us", "from the first tuple to the last"),
    "rate_mean": ("tuples/s", "over the span"),
    "rate_min": ("tuples/s", "in the slowest hundredth of the span"),
    "rate_max": ("tuples/s", "in the fastest hundredth of the span"),
    "p1": ("share", "of all tuples that have the most frequent key"),
    "zipf_exponent": ("", "z of the Zipf law that fits best; 0 is uniform"),
    "drift": ("share", "of hot keys that change from tenth to tenth: 0 none, 1 all"),
    "drift_total": ("share", "of hot keys that change from the first tenth to the last"),
    "in_order": ("", "whether the input came in order of time"),
    "out_of_order": ("rows", "of the input that came late"),
    "distinct_timestamps": ("times", "distinct"),
    "tied_tuples": ("tuples", "that share their timestamp with another one"),
    "largest_tie": ("tuples", "that share one timestamp, at most"),
    "rows_read": ("rows", "of the input"),
    "rows_kept": ("rows", "that became tuples"),
    "rows_rejected": ("rows", "that could not be read: see rejects/"),
    "rows_filtered": ("rows", "left out by options, and headers"),
    "total_cost_ns": ("ns", "service time of all tuples"),
    "mean_cost_us": ("us", "mean service time of a tuple"),
}


@dataclass(frozen=True)
class TopKey:
    """A frequent key: its text (None: the null key), its tuples, its share of all tuples (0..1)."""

    key: str | None
    count: int
    share: float


@dataclass(frozen=True)
class Description:
    """What `describe` finds. None where a value does not exist (no tuple, no span) or was never recorded.

    - timestamps and `span_us` in us; rates in tuples a second: the mean over the span, and the least and the
      most in any of 100 equal slices of its time;
    - `zipf_exponent`: see `zipf_exponent()`;
    - `drift`: the stream is cut into 10 slices of equal tuple counts; the hot set of a slice is its 10 most
      frequent keys. The Jaccard distance (1 - common / all) of the hot sets of neighbouring slices, averaged:
      0 when they never change, 1 when each slice has others. `drift_total`: of the first and the last slice;
    - `in_order`, `out_of_order`: whether the input came in time order, and how many rows came late;
    - `distinct_timestamps`; `tied_tuples`: those that share theirs; `largest_tie`: the most that share one.
    """

    name: str
    tuples: int
    keys: int
    first_timestamp: int | None
    last_timestamp: int | None
    span_us: int | None
    rate_mean: float | None
    rate_min: float | None
    rate_max: float | None
    p1: float | None
    zipf_exponent: float | None
    drift: float | None
    drift_total: float | None
    in_order: bool
    out_of_order: int | None
    distinct_timestamps: int
    tied_tuples: int
    largest_tie: int
    rows_read: int | None
    rows_kept: int | None
    rows_rejected: int | None
    rows_filtered: int | None
    total_cost_ns: int | None
    mean_cost_us: float | None
    fingerprint: str | None
    top_keys: tuple[TopKey, ...]

    def to_json(self) -> dict[str, Any]:
        """Return all values as one JSON object, under their names."""
        values = dict(vars(self))
        values["top_keys"] = [vars(top) for top in self.top_keys]
        return values


class _Ties:
    """Lengths of runs of equal timestamps, over any chunking."""

    def __init__(self) -> None:
        self.distinct = self.tied = self.largest = 0
        self._open = 0
        self._value: int | None = None

    def add(self, stamps: NDArray[np.int64]) -> None:
        differs = stamps[1:] != stamps[:-1]
        first, last = int(stamps[0]), int(stamps[-1])
        if self._value != first and differs.all():
            # Runs of one each, as in most traces with times in us; the last may go on.
            self.end()
            self.distinct += len(stamps) - 1
            self.largest = max(self.largest, 1)
            self._open, self._value = 1, last
            return
        runs = np.diff(np.concatenate([[0], np.flatnonzero(differs) + 1, [len(stamps)]]))
        if self._value == first:
            runs[0] += self._open
        else:
            self.end()
        self._close(runs[:-1])
        self._open, self._value = int(runs[-1]), last

    def end(self) -> None:
        if self._open:
            self._close(np.array([self._open]))
        self._open = 0

    def _close(self, runs: NDArray[np.int64]) -> None:
        self.distinct += len(runs)
        self.tied += int(runs[runs > 1].sum())
        self.largest = max(self.largest, int(runs.max(initial=0)))


class _Drift:
    """Hot sets of slices of equal tuple counts."""

    def __init__(self, tuples: int, keys: int) -> None:
        slices = min(DRIFT_SLICES, tuples)
        self._ends = [tuples * (i + 1) // slices for i in range(slices)]
        self._count = np.zeros(keys, np.int64)
        self._seen = 0
        self.hot: list[set[int]] = []

    def add(self, ids: NDArray[np.uint32]) -> None:
        while len(ids):
            end = self._ends[len(self.hot)]
            piece = ids[: end - self._seen]
            add_counts(self._count, piece)
            self._seen += len(piece)
            ids = ids[len(piece) :]
            if self._seen == end:
                self.hot.append(set(top_ids(self._count, HOT_KEYS)))
                self._count[:] = 0

    def distances(self) -> tuple[float | None, float | None]:
        if len(self.hot) < 2:
            return None, None
        steps = [_distance(a, b) for a, b in zip(self.hot, self.hot[1:], strict=False)]
        return sum(steps) / len(steps), _distance(self.hot[0], self.hot[-1])


def _distance(a: set[int], b: set[int]) -> float:
    return 1 - len(a & b) / len(a | b)


def top_ids(count: NDArray[np.int64], k: int) -> list[int]:
    """Return the ids of the k largest counts above 0, ties by id."""
    if k < 1 or not len(count):
        return []
    # At least k counts are as large as the k-th largest of the maxima of blocks, and mostly few more.
    maxima = np.maximum.reduceat(count, np.arange(0, len(count), _BLOCK))
    found = np.flatnonzero(count >= max(1, _kth_largest(maxima, k)))
    found = found[count[found] >= _kth_largest(count[found], k)]
    return [int(key) for key in found[np.argsort(-count[found], kind="stable")[:k]]]


def _kth_largest(values: NDArray[np.int64], k: int) -> int:
    """Return the k-th largest value, 0 when there are fewer."""
    return int(np.partition(values, -k)[-k]) if len(values) >= k else 0


def zipf_exponent(count: NDArray[np.int64]) -> float | None:
    """Fit z of a Zipf law P(rank i) ~ i^-z, i = 1..K, to the counts of K keys by maximum likelihood.

    The most frequent key is taken as rank 1, and so on. z = 0 is uniform; None for fewer than two keys. The
    score, E_z[ln rank] - mean ln rank, falls in z, so Newton's steps stay between bounds that close in on the
    root.
    """
    ranked = np.sort(count[count > 0])[::-1].astype(np.float64)
    if len(ranked) < 2:
        return None
    if ranked[0] == ranked[-1]:
        return 0.0
    logs = np.log(np.arange(1, len(ranked) + 1))
    target = float(ranked @ logs) / float(ranked.sum())
    low, high, z = 0.0, 64.0, 1.0
    for _ in range(100):
        weights = np.exp(-z * logs)
        total = float(weights.sum())
        mean = float(weights @ logs) / total
        variance = float(weights @ (logs * logs)) / total - mean * mean
        low, high = (z, high) if mean > target else (low, z)
        step = (mean - target) / variance if variance > 0 else np.inf
        following = z + step if low < z + step < high else (low + high) / 2
        if abs(following - z) < 1e-10:
            return float(following)
        z = following
    return z


def describe(trace: Trace, top: int = 10) -> Description:
    """Compute the statistics of an open trace, with its `top` most frequent keys, in one pass; memory is O(keys)."""
    first, last = trace.first_timestamp, trace.last_timestamp
    ties, drift = _Ties(), _Drift(trace.tuples, trace.keys)
    width = 0 if first is None or last is None else last - first + 1
    edges = [(first or 0) + -(-width * i // RATE_SLICES) for i in range(1, RATE_SLICES)]
    before = np.zeros(RATE_SLICES - 1, np.int64)
    for batch in trace.batches():
        assert batch.timestamp is not None
        assert batch.key_id is not None
        ties.add(batch.timestamp)
        drift.add(batch.key_id)
        before += np.searchsorted(batch.timestamp, edges)
    ties.end()
    slices = np.diff(np.concatenate([[0], before, [trace.tuples]]))
    per_second = 1e6 / width if width > 1 else None
    step, total = drift.distances()
    count = trace.dictionary().count
    manifest = trace.manifest
    ids = top_ids(count, top)
    cost = trace.total_cost_ns
    return Description(
        name=trace.name,
        tuples=trace.tuples,
        keys=trace.keys,
        first_timestamp=first,
        last_timestamp=last,
        span_us=width - 1 if width else None,
        rate_mean=None if per_second is None else trace.tuples * per_second,
        rate_min=None if per_second is None else int(slices.min()) * RATE_SLICES * per_second,
        rate_max=None if per_second is None else int(slices.max()) * RATE_SLICES * per_second,
        p1=trace.p1,
        zipf_exponent=zipf_exponent(count),
        drift=step,
        drift_total=total,
        # A trace made by hand says nothing of its input; that its tuples are in order was checked on opening.
        in_order=True if manifest.in_order is None else manifest.in_order,
        out_of_order=manifest.out_of_order,
        distinct_timestamps=ties.distinct,
        tied_tuples=ties.tied,
        largest_tie=ties.largest,
        rows_read=manifest.rows_read,
        rows_kept=manifest.rows_kept,
        rows_rejected=manifest.rows_rejected,
        rows_filtered=manifest.rows_filtered,
        total_cost_ns=cost,
        mean_cost_us=cost / (1000 * trace.tuples) if cost is not None and trace.tuples else None,
        fingerprint=manifest.fingerprint,
        top_keys=tuple(
            TopKey(key, int(count[key_id]), int(count[key_id]) / trace.tuples)
            for key_id, key in zip(ids, trace.key_texts(ids), strict=True)
        ),
    )
