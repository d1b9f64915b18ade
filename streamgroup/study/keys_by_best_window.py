"""The keys of a trace by the share that they have of their best window."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamgroup.base.errors import DataError, UsageError
from streamgroup.replay.accounting.window_ends import WindowRule
from streamgroup.traces.statistics.count_ids import add_counts
from streamgroup.traces.trace import Trace

__all__ = ["KeyPeak", "find_peaks"]

I64 = NDArray[np.int64]
_NS_PER_US = 1000
_LONGEST_US = (1 << 63) // _NS_PER_US - 1
# In a window with a smaller part of the mean tuples, any key may have it all.
_FEW = 10
# Windows with fewer tuples than one in so many keys are counted key by key.
_SPARSE = 8


@dataclass(frozen=True)
class KeyPeak:
    """A key (None: the null key), its share of all tuples, and of the window that has the most of it: over 0..1.

    The window has `window_tuples`, from tuple `first_tuple` on; its times are us since 1970: for windows of time where
    they begin and end, for others those of the first and the last tuple. They are None in a trace without times.
    """

    key: str | None
    share: float
    peak_share: float
    from_timestamp: int | None
    to_timestamp: int | None
    first_tuple: int
    window_tuples: int

    def to_json(self) -> dict[str, Any]:
        """Return all values under their names."""
        return dict(vars(self))


class _Peaks:
    """The best window so far of each key: its number among those seen, and the key's tuples over all of it."""

    def __init__(self, keys: int, least: int) -> None:
        self._count = np.zeros(keys, np.int64)
        self._pieces: list[NDArray[np.uint32]] = []
        self._least = least
        self.share = np.zeros(keys)
        self.window = np.full(keys, -1, np.int64)
        # First tuple, tuples, number, first and last timestamp of each window.
        self.windows: list[list[int]] = []

    def begin(self, first: int, number: int, stamp: int) -> None:
        """Begin a window; the one before it has ended."""
        self.windows.append([first, 0, number, stamp, stamp])

    def add(self, ids: NDArray[np.uint32], last: int) -> None:
        """Add tuples of the window at hand, up to the timestamp `last`."""
        self.windows[-1][1] += len(ids)
        self.windows[-1][4] = last
        self._pieces.append(ids)
        if sum(map(len, self._pieces)) * _SPARSE > len(self._count):
            self._flush()

    def _flush(self) -> None:
        for piece in self._pieces:
            add_counts(self._count, piece)
        self._pieces = []

    def end(self) -> None:
        """End the window at hand, if any."""
        if not self.windows:
            return
        tuples = self.windows[-1][1]
        if self._pieces and not self._count.any():
            found, count = np.unique(np.concatenate(self._pieces), return_counts=True)
            ids = found.astype(np.int64)
        else:
            self._flush()
            ids = np.flatnonzero(self._count)
            count = self._count[ids]
            self._count[ids] = 0
        self._pieces = []
        if tuples * _FEW < self._least:
            return
        share = count / tuples
        better = share > self.share[ids]
        self.share[ids[better]] = share[better]
        self.window[ids[better]] = len(self.windows) - 1


def find_peaks(trace: Trace, over: str, top: int) -> list[KeyPeak]:
    """Return the `top` keys with the largest share of any window, ties to the more frequent, then by id.

    `over` is the length of the windows: a time (`30m`) from the first tuple on, tuples (`50000`), or a share of them
    (`1%`). Windows with fewer than a tenth of the mean tuples of a window count for nothing. Of equal windows it is the
    first. One pass; memory is O(keys + windows). UsageError for a length that is wrong, or a time in a trace without.
    """
    rule = WindowRule(over, trace.tuples, "--over")
    first, last = trace.first_timestamp, trace.last_timestamp
    timeless = trace.manifest.times == "none"
    if rule.width_ns is not None and timeless:
        raise UsageError(f"--over {over}: {trace.path} has no times", "write a number of tuples, as in 50000, or 1%")
    if first is None or last is None or top < 1:
        return []
    if last - first > _LONGEST_US:
        raise DataError(f"{trace.path}: its times are over 292 years apart", "export and ingest a part of it")
    span = (last - first) * _NS_PER_US
    peaks = _Peaks(trace.keys, trace.tuples // max(1, rule.most(span)))
    for batch in trace.batches():
        stamps, ids = batch.timestamp, batch.key_id
        assert stamps is not None
        assert ids is not None
        places, numbers = rule.begins(batch.offset, (stamps - first) * _NS_PER_US)
        ends = [*places[1:].tolist(), len(ids)]
        for begin, end, number in zip(places.tolist(), ends, numbers.tolist(), strict=True):
            if not peaks.windows or peaks.windows[-1][2] != number:
                peaks.end()
                peaks.begin(batch.offset + begin, number, int(stamps[begin]))
            peaks.add(ids[begin:end], int(stamps[end - 1]))
    peaks.end()
    count = trace.dictionary().count
    found = np.flatnonzero(peaks.window >= 0)
    order = found[np.lexsort((found, -count[found], -peaks.share[found]))][:top].tolist()

    def peak(key_id: int, name: str | None) -> KeyPeak:
        begin, tuples, number, start, stop = peaks.windows[int(peaks.window[key_id])]
        if rule.width_ns is not None:
            start = first + number * rule.width_ns // _NS_PER_US
            stop = first + (number + 1) * rule.width_ns // _NS_PER_US
        return KeyPeak(
            key=name,
            share=int(count[key_id]) / trace.tuples,
            peak_share=float(peaks.share[key_id]),
            from_timestamp=None if timeless else start,
            to_timestamp=None if timeless else stop,
            first_tuple=begin,
            window_tuples=tuples,
        )

    return [peak(key_id, name) for key_id, name in zip(order, trace.key_texts(order), strict=True)]
