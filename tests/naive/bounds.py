"""What the papers say of a stream, from their text: lists of counts, exact fractions, enumeration where it is short."""

from decimal import Decimal, getcontext
from fractions import Fraction
from itertools import product
from math import gcd

getcontext().prec = 60

__all__ = [
    "distinct_workers",
    "estimate",
    "expected_estimate",
    "expected_presence",
    "least_choices",
    "most_machines",
    "moved",
    "precision",
    "split_floor",
]


def split_floor(counts: list[int], choices: int, n: int) -> Fraction:
    """The hottest key dealt to its workers as evenly as fractions of tuples allow, all else to the other workers."""
    shares = [Fraction(count, sum(counts)) for count in counts]
    fullest = max(shares) / choices
    return fullest - Fraction(1, n) if fullest > Fraction(1, n) else Fraction(0)


def least_choices(counts: list[int], theta: Fraction, eps: Fraction, n: int) -> tuple[int, Fraction]:
    """001 section IV-A: d, and how close an inequality came to being an equation on the way."""
    m = sum(counts)
    p = sorted((Fraction(count, m) for count in counts), reverse=True)
    head = [share for share in p if share >= theta]
    tail = sum(p) - sum(head)
    d = 2
    while Fraction(d, n) < p[0]:
        d += 1
    closest = Fraction(1)
    while d < n:
        fits = True
        for h in {1, len(head)}:
            b = n - n * Fraction(n - 1, n) ** (h * d)
            load = sum(head[:h]) + (b / n) ** d * sum(head[h:]) + (b / n) ** 2 * tail
            room = b * (Fraction(1, n) + eps)
            closest = min(closest, abs(room - load))
            fits = fits and load <= room
        if fits:
            return d, closest
        d += 1
    return n, closest


def estimate(counts: list[int], hot: int, choices: int, others: int) -> int:
    """001 section IV-B: each key uses all workers that it may, or as many as it has tuples."""
    total = 0
    for place, count in enumerate(sorted(counts, reverse=True)):
        total += min(count, choices if place < hot else others)
    return total


def distinct_workers(tuples: int, n: int) -> Fraction:
    """Expected distinct workers of a key's tuples: every way to send them, equally likely."""
    ways = list(product(range(n), repeat=tuples))
    return Fraction(sum(len(set(way)) for way in ways), len(ways))


def expected_estimate(costs: list[int], item: int, columns: int) -> Fraction:
    """004 section IV-B: W/F of an item over every set of the others that may share its cell, all equally frequent."""
    others = costs[:item] + costs[item + 1 :]
    total = Fraction(0)
    for shares in product((False, True), repeat=len(others)):
        here = [costs[item], *(cost for cost, share in zip(others, shares, strict=True) if share)]
        probability = Fraction(1)
        for share in shares:
            probability *= Fraction(1, columns) if share else 1 - Fraction(1, columns)
        total += probability * Fraction(sum(here), len(here))
    return total


def most_machines(n: int) -> int:
    """003 table 1: how often the threshold goes into all of the load, and one more."""
    ideal = Decimal(100) / n
    threshold = ideal + ideal.sqrt()
    times = 0
    while (times + 1) * threshold <= 100:
        times += 1
    return min(times + 1, n)


def precision(c: int, r: int) -> Decimal:
    """002 inequality 2, in percent."""
    x = Decimal(2) ** (c - r)
    return 100 * (1 + x) * (-x).exp()


def moved(before: int, after: int) -> Fraction:
    """Which part of all hashes has another remainder by `after` than by `before`."""
    every = before * after // gcd(before, after)
    return Fraction(sum(h % before != h % after for h in range(every)), every)


def expected_presence(share: float, p: float, bits: int, updates: int) -> float:
    """002: the probability that a key is in the synopsis after so many updates, vector by vector.

    At each update the report is the key's with probability `share`, and sets bit j with 2^-(j + 1), the last bit with
    the rest; then the vector is shifted to the right with probability p.
    """
    chances = {0: 1.0}
    for _ in range(updates):
        reported: dict[int, float] = {}
        for vector, chance in chances.items():
            reported[vector] = reported.get(vector, 0.0) + chance * (1 - share)
            for j in range(bits):
                bit = 2.0 ** -(j + 1) if j < bits - 1 else 2.0**-j
                reported[vector | 1 << j] = reported.get(vector | 1 << j, 0.0) + chance * share * bit
        chances = {}
        for vector, chance in reported.items():
            chances[vector] = chances.get(vector, 0.0) + chance * (1 - p)
            chances[vector >> 1] = chances.get(vector >> 1, 0.0) + chance * p
    return 1.0 - chances[0]
