"""What the load of a worker is made of, in units of the mean load of all workers."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

__all__ = ["BALANCED", "HOT_LOAD", "Cause", "KeyLoad", "Period", "WorkerLoad", "compose", "find_hot", "most_loaded"]

I64 = NDArray[np.int64]

Cause = Literal["hot key", "collision", "parts", "few keys", "balanced"]

# Up to this load a worker counts as balanced.
BALANCED = 1.2
# A key is hot from this part of a worker's mean load on, if it is also so many times as frequent as the mean key.
HOT_LOAD = 0.1
_HOT_KEY = 2
# Other hot keys of a worker are a collision from this part of its hottest on.
_COLLISION = 0.5


@dataclass(frozen=True)
class KeyLoad:
    """A hot key on a worker: its id, its tuples there, and those over the mean tuples of a worker."""

    key_id: int
    tuples: int
    load: float


@dataclass(frozen=True)
class WorkerLoad:
    """A worker: its tuples, and `load`, those over the mean of all workers.

    `load` is the sum of those of `hot` keys, hottest first, and of `other_load`, of `other_keys` keys. `parts` is the
    load if all keys were equal and many: its key groups or partitions over the mean; None where there are none.
    `hot_mean` is the load that all hot keys put on a worker on average.
    """

    worker: int
    tuples: int
    load: float
    hot: tuple[KeyLoad, ...]
    other_keys: int
    other_load: float
    parts: float | None
    hot_mean: float

    @property
    def excess(self) -> dict[str, float]:
        """Return what makes the load differ from 1, the mean, by cause; the three sum up to `load` - 1.

        A worker with more key groups than others gets more by these alone; hot keys and all others count by what goes
        beyond that.
        """
        parts = 1.0 if self.parts is None else self.parts
        return {
            "keys": sum(key.load for key in self.hot) - self.hot_mean * parts,
            "parts": parts - 1,
            "chance": self.other_load - (1 - self.hot_mean) * parts,
        }

    @property
    def cause(self) -> Cause:
        """Return the largest part of what is over the mean; of hot keys, whether one is large or several collide."""
        if self.load <= BALANCED:
            return "balanced"
        excess = self.excess
        largest = max(excess, key=lambda name: excess[name])
        if largest == "keys":
            others = sum(key.load for key in self.hot[1:])
            return "collision" if others >= _COLLISION * self.hot[0].load else "hot key"
        return "parts" if largest == "parts" else "few keys"


@dataclass(frozen=True, eq=False)
class Period:
    """A part of a stream: tuples `first` to `end` - 1, `tuples` int64[n] that each worker got, `count` int64[keys].

    `top` are the most loaded workers, `hot` the ids of all hot keys, hottest first. `from_us` and `to_us` are the
    timestamps of the first and the last tuple, None for tuples without times.
    """

    first: int
    end: int
    tuples: I64
    count: I64
    hot: I64
    top: tuple[WorkerLoad, ...] = ()
    from_us: int | None = None
    to_us: int | None = None

    @property
    def keys(self) -> int:
        """Count the keys that come."""
        return int(np.count_nonzero(self.count))

    @property
    def peak(self) -> float:
        """Return the load of the most loaded worker over the mean."""
        return float(self.tuples.max() * len(self.tuples) / self.tuples.sum())

    def load_of(self, key_id: int) -> float:
        """Return all tuples of a key over the mean tuples of a worker."""
        return float(self.count[key_id] * len(self.tuples) / self.tuples.sum())


def find_hot(count: I64, workers: int) -> I64:
    """Return the ids of the hot keys of counts (int64[keys]), hottest first, ties by id."""
    total, keys = int(count.sum()), int(np.count_nonzero(count))
    if total == 0:
        return np.zeros(0, dtype=np.int64)
    least = max(HOT_LOAD * total / workers, _HOT_KEY * total / keys)
    found = np.flatnonzero(count >= least)
    return found[np.argsort(-count[found], kind="stable")]


def most_loaded(tuples: I64, most: int) -> list[int]:
    """Return up to `most` workers by their tuples (int64[n]), the most loaded first, ties by id."""
    return [int(worker) for worker in np.argsort(-tuples, kind="stable")[:most]]


def compose(period: Period, worker: int, ids: I64, tuples: I64, parts: I64 | None) -> WorkerLoad:
    """Return what the load of a worker is made of: `ids` of the keys that it got and their `tuples` there, int64[k].

    `parts` int64[n] are the key groups or partitions of each worker.
    """
    mean = float(period.tuples.sum()) / len(period.tuples)
    order = np.argsort(-tuples, kind="stable")
    ids, tuples = ids[order], tuples[order]
    is_hot = np.isin(ids, period.hot)
    hot = tuple(
        KeyLoad(int(key), int(count), float(count / mean))
        for key, count in zip(ids[is_hot].tolist(), tuples[is_hot].tolist(), strict=True)
    )
    got = int(period.tuples[worker])
    return WorkerLoad(
        worker=worker,
        tuples=got,
        load=got / mean,
        hot=hot,
        other_keys=int(np.count_nonzero(~is_hot)),
        other_load=(got - sum(key.tuples for key in hot)) / mean,
        parts=None if parts is None else float(parts[worker] * len(parts) / parts.sum()),
        hot_mean=float(period.count[period.hot].sum() / period.count.sum()),
    )
