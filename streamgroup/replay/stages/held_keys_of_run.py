"""The keys that workers hold in a run where state costs: made from the plan, and what was found of them."""

import contextlib
from collections.abc import Generator
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgroup.replay.accounting.account import Meters
from streamgroup.replay.accounting.window_ends import WindowRule
from streamgroup.replay.input.prefetch import Ready
from streamgroup.replay.scenario.plan import Plan
from streamgroup.replay.simulation.keys_held_by_workers import Held, Windows, make_held, windows_of
from streamgroup.replay.stages.combiner import Members
from streamgroup.traces.trace import Trace

__all__ = ["HeldFindings", "MergedWindows", "findings", "held_keys"]

I64 = NDArray[np.int64]


class HeldFindings(NamedTuple):
    """The most entries that a finished tuple found on its worker, and the sum of the factors of all of them.

    Both are None where state costs nothing.
    """

    most: int | None
    slowdown_sum: Fraction | None


def held_keys(trace: Trace, plan: Plan, warmup: int, workers: int) -> Held | None:
    """Make what `workers` workers hold at the start, None where state costs nothing; `warmup` tuples are not measured.

    UsageError for windows that cannot be counted in 64 bits.
    """
    if plan.state is None:
        return None
    windows = None
    if (every := plan.options.aggregate_every) is not None:
        rule, warm = (WindowRule(every, count, "--aggregate-every") for count in (trace.tuples - warmup, trace.tuples))
        windows = Windows(rule.width_ns or 0, rule.length, warm.length, warmup)
    return make_held(plan.state, trace.keys, workers, windows, trace.tuples, merged=plan.combine is not None)


class MergedWindows:
    """Adds to merged tuples the window that workers hold their key for: that of the last original."""

    def __init__(self, held: Held) -> None:
        self._held, self._origin = held, 0
        self._windows: I64 | None = None

    def see(self, ready: Ready) -> None:
        """Note when the first measured tuple arrives, as the combiner reads the stream."""
        place = self._held.measured_from - ready.offset
        if 0 <= place < len(ready.key):
            self._origin = int(ready.arrival[place])

    def expect(self, members: Members) -> None:
        """Note the originals of the merged tuples that come next."""
        last = np.append(members.unit[1:] != members.unit[:-1], True)
        self._windows = windows_of(self._held, members.seq[last], members.arrival[last], self._origin)
        self._windows.flags.writeable = False

    def chunks(self, merged: Generator[Ready]) -> Generator[Ready]:
        """Yield chunks of merged tuples with their windows."""
        with contextlib.closing(merged):
            for ready in merged:
                yield ready._replace(held_window=self._windows)


def findings(plan: Plan, meters: Meters) -> HeldFindings:
    """Return what was measured of the finished tuples."""
    if plan.state is None:
        return HeldFindings(None, None)
    _, most, over, entries_over, entries = meters.held.tolist()
    finished = int(meters.sums.parts.sum()) - int(meters.sums.lost.sum())
    return HeldFindings(most, plan.state.slowdown_sum(finished, entries, over, entries_over))
