"""Values of theory that are no statements of `bounds`: of two laws in one stream, and of small schedules."""

import itertools
from collections.abc import Sequence

import numpy as np

from streamgroup.synth.zipf_ranks import zipf_weights

__all__ = ["evolving_replicas", "greedy_makespan", "top_share", "worst_greedy_ratio"]


def top_share(exponent: float, keys: int, part: float) -> float:
    """Return the share of a Zipf stream that the given part of its keys has, the most frequent ones."""
    weight = zipf_weights(1, keys + 1, exponent)
    return float(weight[: round(part * keys)].sum() / weight.sum())


def evolving_replicas(exponent: float, keys: int, tuples: float, workers: int, change: float, reading: str) -> float:
    """Return the expected replicas per key of shuffle grouping, where the law is another from `change` of the tuples.

    `reading` is that of the generator `evolving-zipf`: A nothing changes, B ranks are reversed.
    """
    share = zipf_weights(1, keys + 1, exponent)
    share /= share.sum()
    later = share if reading == "A" else share[::-1]
    parts = ((change * tuples, share), ((1 - change) * tuples, later))

    def missed(places: int) -> np.ndarray:
        """Return the probability that a key is in none of the tuples that one of `places` workers gets."""
        logarithm = sum(count * np.log1p(-law / places) for count, law in parts)
        found: np.ndarray = np.exp(logarithm)
        return found

    return float(workers * (1 - missed(workers)).sum() / (1 - missed(1)).sum())


def greedy_makespan(work: Sequence[int], workers: int) -> int:
    """Return the makespan if each job in turn goes to the worker with the least work so far."""
    loads = [0] * workers
    for job in work:
        loads[loads.index(min(loads))] += job
    return max(loads)


def worst_greedy_ratio(workers: int, jobs: int, longest: int) -> float:
    """Return the largest makespan of greedy scheduling over the least possible one, over all small instances.

    These are all sequences of at most so many jobs of 1 to `longest`.
    """
    worst = 1.0
    for count in range(1, jobs + 1):
        for bag in itertools.combinations_with_replacement(range(1, longest + 1), count):
            best = min(_makespans(bag, workers))
            worst = max(worst, *(greedy_makespan(order, workers) / best for order in set(itertools.permutations(bag))))
    return worst


def _makespans(work: Sequence[int], workers: int) -> "itertools.chain[int]":
    def of(places: tuple[int, ...]) -> int:
        loads = [0] * workers
        for job, place in zip(work, places, strict=True):
            loads[place] += job
        return max(loads)

    return itertools.chain(map(of, itertools.product(range(workers), repeat=len(work))))
