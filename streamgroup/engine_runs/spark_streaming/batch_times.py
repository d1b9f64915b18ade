"""When batches began and ended, and what they cost besides the services."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Batches", "batches_of"]

I64 = NDArray[np.int64]


class Batches(NamedTuple):
    """Of each batch, in ns: when its last tuple arrived or, if that is later, the batch before was committed; when it
    was committed; and how long its most loaded worker served.
    """

    begin: I64
    commit: I64
    most_busy: I64

    def overhead(self, delay: int) -> I64:
        """Return what each batch took besides the services of its most loaded worker and the network's `delay`."""
        return self.commit - self.begin - self.most_busy - delay

    def record(self, size: int, delay: int) -> dict[str, Any]:
        """Return the entries of `run.json`."""
        overhead = self.overhead(delay) / 1e6
        return {
            "micro_batch": size,
            "batches": len(overhead),
            "overhead_mean_ms": float(overhead.mean()),
            "overhead_ms": [round(float(one), 3) for one in overhead],
        }


def batches_of(number: I64, arrival: I64, worker: NDArray[Any], busy: I64, commit: I64) -> Batches:
    """Return the batches of tuples in the stream's order.

    `number` is the batch of each tuple, 0, 1, ...; `busy` how long it was served; `commit` has a time for each batch.
    """
    ends = np.searchsorted(number, np.arange(len(commit)), side="right")
    begin = np.maximum(arrival[ends - 1], np.concatenate([[0], commit[:-1]]))
    work = np.zeros((len(commit), int(worker.max()) + 1), dtype=np.int64)
    np.add.at(work, (number, worker), busy)
    return Batches(begin, commit, work.max(axis=1))
