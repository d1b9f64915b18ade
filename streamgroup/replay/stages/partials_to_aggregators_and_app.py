"""What follows the workers: partial results of each window, their results, and the aggregators that merge them."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamgroup.replay.accounting.outcome import Aggregation, AppResults
from streamgroup.replay.accounting.window_ends import WindowRule
from streamgroup.replay.compile_grouping import COMMON
from streamgroup.replay.interpreted_or_compiled import Tiers
from streamgroup.replay.scenario.plan import Plan
from streamgroup.replay.simulation.chunk_driven import Setup
from streamgroup.replay.stages.aggregators import Aggregators, edge_plan
from streamgroup.replay.stages.app_states import make_states
from streamgroup.replay.stages.application import Application
from streamgroup.replay.stages.partial_results import PartialResults, Partials
from streamgroup.traces.trace import Trace

__all__ = ["Merging", "make_merging"]

I64 = NDArray[np.int64]


class Merging:
    """Takes every measured tuple in the order of the stream, and hands the partial results of windows that end on.

    `messages` counts these, None where workers send them once, at the end.
    """

    def __init__(
        self,
        partials: PartialResults,
        aggregators: Aggregators | None,
        application: Application | None,
        *,
        counts: bool,
    ) -> None:
        self._partials, self._aggregators, self._application = partials, aggregators, application
        self.messages = 0 if counts else None

    def add(self, offset: int, arrival: I64, key: NDArray[Any], worker: NDArray[Any], finish: I64) -> None:
        """Add measured tuples from number `offset` of them on; `finish` is negative where no worker finished it."""
        slot, ended = self._partials.add(offset, arrival, key, worker, finish)
        if self._application is not None:
            assert slot is not None
            self._application.add(slot, key)
        self._end(ended)

    def _end(self, ended: Partials | None) -> None:
        if ended is not None and self.messages is not None:
            self.messages += len(ended.row)
        if ended is not None and self._application is not None:
            self._application.take(ended)
        if ended is not None and self._aggregators is not None:
            self._aggregators.take(ended)

    def finish(self) -> tuple[Aggregation | None, AppResults | None]:
        """End the last window; return what the aggregators did and the results, each None where it is not there."""
        self._end(self._partials.finish())
        merged = None if self._aggregators is None else self._aggregators.finish()
        return merged, None if self._application is None else self._application.finish()


def make_merging(
    trace: Trace, plan: Plan, warmup: int, workers: int, tiers: Tiers, edge: Callable[[Plan], tuple[Setup, Tiers]]
) -> Merging | None:
    """Make what merges the partial results of a run; None where it has neither aggregators nor an application.

    Aggregators that hold workers back are a part of the simulation (see `aggregator_backpressure`). The edge to others
    is a run of its own, from as many sources as there ever are `workers`: `edge` makes it.
    """
    aggregators = application = None
    if plan.aggregators is not None and not plan.holds_back:
        to_aggregators = edge_plan(plan, workers)
        aggregators = Aggregators(to_aggregators, *edge(to_aggregators))
    if plan.app is not None:
        states = make_states(plan.app, trace.tuples, interpreted=tiers.interpreted)
        application = Application(plan.app, states, trace, warmup)
    if aggregators is None and application is None:
        return None
    each = plan.options.aggregate_every
    rule = WindowRule(each or "100%", trace.tuples - warmup)
    found = PartialResults(
        lambda function: tiers.made(function, COMMON), rule, trace.keys, workers, slots=application is not None
    )
    return Merging(found, aggregators, application, counts=each is not None)
