"""Shuffle grouping: the replicas to expect if each tuple goes to any worker, whatever its key."""

from collections.abc import Iterator
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from streamgroup.study.bounds.key_frequencies import KeyStream
from streamgroup.study.bounds.question import Question
from streamgroup.study.bounds.statement import DEVIATIONS, Statement

__all__ = ["pair_probabilities", "statements"]


def pair_probabilities(stream: KeyStream, workers: int) -> NDArray[np.float64]:
    """Return the probability that a worker gets a key, for each key: 1 - (1 - 1/n)^f, or by the law 1 - (1 - p/n)^m."""
    if stream.exact:
        if workers == 1:
            return np.ones(stream.keys)
        logarithm = stream.weight * np.log1p(-1.0 / workers)
    else:
        share = stream.weight / (stream.total * workers)
        with np.errstate(divide="ignore"):
            logarithm = stream.tuples * np.log1p(-share)
    found: NDArray[np.float64] = -np.expm1(logarithm)
    return found


def statements(question: Question) -> Iterator[Statement]:
    """Yield the expected replicas of SG, in all and for each key."""
    if not question.concerns("sg", "sg_random"):
        return
    stream, n = question.stream, question.workers
    probability = pair_probabilities(stream, n)
    pairs = n * float(probability.sum())
    # Pairs of one key exclude each other rather than come together, so their variances add up to a bound.
    chance = DEVIATIONS * sqrt(n * float((probability * (1 - probability)).sum()))
    order, note = _random_order(question), ""
    if not order:
        note = "not for round robin in this order: bursts of a key meet more workers, or fewer, than by chance"
    elif question.run is None:
        note = "exact at random, and for round robin if tuples come in random order"
    words = "n (1 - (1 - 1/n)^f_k)" if stream.exact else "n (1 - (1 - p_k/n)^m)"
    yield Statement(
        name="sg_replicas", formula=f"sum over keys of {words}: expected replicas of shuffle grouping", value=pairs,
        unit="pairs", source="001, section IV-B, and occupancy", relation="~", applies=order,
        measured=question.measured("replicas", "sg", "sg_random"), tolerance=chance, note=note,
    )  # fmt: skip
    # Of a law, keys that may never come are no keys of the stream.
    keys = stream.keys if stream.exact else float(pair_probabilities(stream, 1).sum())
    yield Statement(
        name="sg_replicas_per_key", formula="expected replicas / expected keys: memory relative to key grouping",
        value=pairs / keys, unit="pairs", source="000, figs. 3 and 11",
    )  # fmt: skip


def _random_order(question: Question) -> bool:
    """Return whether the run's workers do not depend on the order of the keys; of no run it is assumed."""
    run, stream = question.run, question.stream
    if run is None or run.selection.name != "sg" or stream.trace is None:
        return True
    return stream.trace.manifest.generator in ("zipf", "uniform")
