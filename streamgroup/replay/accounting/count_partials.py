"""Partial results that workers send: one per key that a worker touched in each aggregation window."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamgroup.replay.accounting import key_worker_pairs
from streamgroup.replay.accounting.window_ends import WindowRule

__all__ = ["Partials", "count_partials"]

I64 = NDArray[np.int64]


def count_partials(key: Any, worker: Any, ends: Any, pairs: Any, done: Any) -> Any:
    """Count the pairs that are new in their window; `done` int64[3] is the place, the windows ended and the count.

    Worker -1 is none. It stops early, and says so, when the pairs need room.
    """
    i, ended, found = done[0], done[1], done[2]
    full = False
    while i < key.shape[0]:
        while ended < ends.shape[0] and ends[ended] <= i:
            pairs.forget_window()
            ended += 1
        if pairs.is_full(1):
            full = True
            break
        if worker[i] >= 0 and pairs.touch(np.int64(key[i]), np.int64(worker[i])) != 0:
            found += 1
        i += 1
    done[0], done[1], done[2] = i, ended, found
    return full


class Partials:
    """Counts the partial results of a run; `count` is `count_partials`, compiled or interpreted."""

    def __init__(self, count: Callable[..., bool], rule: WindowRule, keys: int, workers: int) -> None:
        self._count = count
        self._rule = rule
        self._pairs = key_worker_pairs.make_pairs(keys, workers)
        self._last: int | None = None
        self.messages = 0

    def add(self, offset: int, since: I64, key: NDArray[Any], worker: NDArray[Any], again: I64) -> None:
        """Add measured tuples from number `offset` of them on, which arrived `since` the first of them.

        `worker` is -1 for a tuple that none accepted; `again` int64[k, 2] are more deliveries: place here and worker.
        """
        place, number = self._rule.begins(offset, since)
        ends = place[int(number[0]) == self._last :] if self._last is not None else place[1:]
        self._last = int(number[-1])
        if len(again):
            ends = ends + np.searchsorted(again[:, 0], ends, side="left")
            key = np.insert(key, again[:, 0], key[again[:, 0]])
            worker = np.insert(worker, again[:, 0], again[:, 1].astype(worker.dtype))
        done = np.zeros(3, dtype=np.int64)
        key, worker, ends = np.ascontiguousarray(key), np.ascontiguousarray(worker), np.ascontiguousarray(ends)
        while self._count(key.astype(np.int64), worker.astype(np.int64), ends.copy(), self._pairs, done):
            assert isinstance(self._pairs, key_worker_pairs.HashPairs)
            self._pairs = key_worker_pairs.grown(self._pairs)
        self.messages += int(done[2])
