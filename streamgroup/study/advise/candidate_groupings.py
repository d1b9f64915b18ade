"""The groupings that `advise` replays by default."""

from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.traces.trace import Trace

__all__ = ["KEY_GROUPING", "candidates"]

KEY_GROUPING = "kg"

# Whatever the stream. What shares are hot is the parameter that matters with hot keys: from 1/5n on by default.
_ALWAYS = (
    KEY_GROUPING,
    "pkg",
    "greedy_freq",
    "d_choices",
    "d_choices:theta=1/n",
    "w_choices",
    "w_choices:theta=1/n",
    "dstream",
    "fish",
    "fish:f_mode=ratio",
    "sg",
)
# Where a tuple is not like another, or a worker not like another.
_UNEVEN = ("consistent_grouping", "posg")


def candidates(trace: Trace, options: ReplayOptions) -> list[str]:
    """List the groupings to ask, in an order that decides between equals: simple ones first.

    `options` with what their capacity file says. Groupings that follow what tuples take are asked where tuples or
    workers differ.
    """
    costs = trace.has_cost and options.service is None
    workers = options.slowdown is not None or options.speed_jitter is not None
    uneven = costs or workers or options.key_cost is not None
    return [*_ALWAYS, *(_UNEVEN if uneven else ())]
