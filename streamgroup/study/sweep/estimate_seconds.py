"""Estimates the time of a cell, to start the longest first and to predict the end of a sweep."""

import math

from streamgroup.replay.scenario.plan import Plan
from streamgroup.study.run_cost import TUPLES_PER_S, what_slows

__all__ = ["loop_seconds"]

# Workers, and ns a tuple of the loop with so many of them, on two cores of 2.5 GHz (docs/speed.md). A grouping that is
# not listed is taken as the dry run of a replay takes it.
_WORKERS = (16, 128, 1024)
_NS = {
    "bounded_load": (20, 31, 57),
    "consistent_grouping": (70, 100, 140),
    "d_choices": (70, 100, 385),
    "dstream": (29, 40, 54),
    "dynamic_kg": (50, 77, 85),
    "fish": (119, 150, 290),
    "full_knowledge": (60, 70, 90),
    "greedy_d": (12, 18, 30),
    "greedy_freq": (59, 77, 205),
    "kg": (11, 16, 28),
    "oracle": (60, 70, 90),
    "pkg": (11, 17, 29),
    "posg": (60, 167, 800),
    "rivetti_dkg": (22, 26, 32),
    "rr": (52, 60, 119),
    "sg": (11, 17, 29),
    "sg_random": (14, 20, 32),
    "w_choices": (66, 55, 80),
}
# What queues with a limit, or a closed loop, and random numbers add.
_ORDERED_NS = 120
_RANDOM_NS = 25
_NS_PER_S = 10**9


def loop_seconds(plan: Plan, tuples: int) -> float:
    """Estimate the seconds that the loop takes for a plan, on one core."""
    slow = set(what_slows(plan, log=False))
    known = _NS.get(plan.selection.name)
    if known is None:
        each = _NS_PER_S / min(TUPLES_PER_S[name] for name in slow)
    else:
        each = _between(known, plan.options.workers + len(plan.options.join))
        each += _ORDERED_NS * plan.is_ordered + _RANDOM_NS * ("random factors" in slow)
    return tuples * each / _NS_PER_S


def _between(known: tuple[int, ...], workers: int) -> float:
    """Interpolate along the logarithm of the number of workers; past the last the growth goes on."""
    place = 0 if workers < _WORKERS[1] else 1
    low, high = _WORKERS[place : place + 2]
    share = max(0.0, math.log(workers / low) / math.log(high / low))
    return known[place] + share * (known[place + 1] - known[place])
