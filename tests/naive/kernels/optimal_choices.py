"""FINDOPTIMALCHOICES (D-Choices): how many candidates keep the head balanced."""

from collections.abc import Sequence
from math import ceil, floor
from typing import NamedTuple

__all__ = ["Prefix", "Shares", "find_d", "shares_of_counts", "shares_of_weights", "workers_hit"]


class Prefix(NamedTuple):
    """The first h keys of the head: their share of the tuples, and that of the rest of the head."""

    h: int
    share: float
    rest: float


class Shares(NamedTuple):
    """Of the most frequent key, of prefixes of the head, of the tail."""

    top: float
    prefixes: list[Prefix]
    tail: float


def power(x: float, k: int) -> float:
    result = 1.0
    while k:
        if k & 1:
            result *= x
        x *= x
        k >>= 1
    return result


def prefixes(size: int, which: str) -> list[int]:
    return sorted({1, size}) if which == "ends" else list(range(1, size + 1))


def shares_of_counts(estimates: Sequence[int], m: int, which: str = "ends") -> Shares:
    """Of the head's estimates, largest first, among m tuples."""
    total = sum(estimates)
    found = []
    for h in prefixes(len(estimates), which):
        first = sum(estimates[:h])
        found.append(Prefix(h, min(1.0, first / m), (total - first) / m))
    return Shares(estimates[0] / m, found, (m - min(total, m)) / m)


def shares_of_weights(weights: Sequence[float], m: float) -> Shares:
    """The same for weights that decay: summed from the first, as they come."""
    sums, total = [], 0.0
    for weight in weights:
        total += weight
        sums.append(total)
    ends = prefixes(len(weights), "ends")
    found = [Prefix(h, min(1.0, sums[h - 1] / m), (total - sums[h - 1]) / m) for h in ends]
    return Shares(weights[0] / m, found, 1.0 - min(1.0, total / m))


def workers_hit(n: int, h: int, d: int) -> float:
    """The share of n workers that h keys with d candidates each are expected to reach: b_h / n."""
    return 1.0 - power((n - 1) / n, h * d)


def holds(prefix: Prefix, d: int, n: int, tail: float, eps: float, slack: str) -> bool:
    x = workers_hit(n, prefix.h, d)
    left = prefix.share + power(x, d) * prefix.rest + (x * x) * tail
    right = (x * n) * (1.0 / n + eps) if slack == "scaled" else (x * n) * (1.0 / n) + eps
    return left <= right


def find_d(shares: Shares, n: int, eps: float = 1e-4, start: str = "ceil", slack: str = "scaled") -> int:
    """The least d, from about p_1 n on, that fulfils all; n: any worker."""
    starts = {"ceil": max(2, ceil(shares.top * n - 1e-9)), "round": max(1, floor(shares.top * n + 0.5))}
    d = starts[start]
    while d < n:
        if all(holds(prefix, d, n, shares.tail, eps, slack) for prefix in shares.prefixes):
            return d
        d += 1
    return n
