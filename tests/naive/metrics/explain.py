"""What workers' loads are made of, tuple by tuple, in units of the mean load of all workers."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

Pair = tuple[str | None, int]


def hot_keys(pairs: Sequence[Pair], workers: int) -> list[str | None]:
    """Keys with a tenth of a worker's mean load and twice the tuples of the mean key."""
    count = Counter(key for key, _ in pairs)
    total, mean_key = len(pairs), len(pairs) / len(count)
    return [key for key, found in count.items() if found * workers >= 0.1 * total and found >= 2 * mean_key]


def loads(pairs: Sequence[Pair], workers: int) -> list[int]:
    found = [0] * workers
    for _, worker in pairs:
        found[worker] += 1
    return found


def composition(pairs: Sequence[Pair], workers: int, worker: int) -> dict[str, Any]:
    """The load of a worker, its hot keys with their loads, hottest first, and its other keys."""
    mean = len(pairs) / workers
    hot = set(hot_keys(pairs, workers))
    mine = Counter(key for key, place in pairs if place == worker)
    other = [count for key, count in mine.items() if key not in hot]
    return {
        "load": sum(mine.values()) / mean,
        "hot": {key: count / mean for key, count in mine.most_common() if key in hot},
        "other_keys": len(other),
        "other_load": sum(other) / mean,
    }


def worst_window(pairs: Sequence[Pair], workers: int, length: int) -> int:
    """The number of the window of `length` tuples in which a worker has most over the mean; the first of equals."""
    over = []
    for begin in range(0, len(pairs), length):
        window = pairs[begin : begin + length]
        over.append(max(loads(window, workers)) * workers - len(window))
    return over.index(max(over))
