"""The simulation of one run whose aggregators hold workers back, and what its partial results become."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgroup.base.errors import DataError
from streamgroup.cluster.service_distribution import factors
from streamgroup.kernels.compiling.call_kernel import call
from streamgroup.replay.accounting.outcome import Aggregation
from streamgroup.replay.accounting.window_ends import WindowRule
from streamgroup.replay.aggregator_backpressure import gather_partial_results, loop, send_partial_results
from streamgroup.replay.compile_grouping import Code
from streamgroup.replay.input.prefetch import Ready
from streamgroup.replay.interpreted_or_compiled import Tiers
from streamgroup.replay.scenario.plan import Plan
from streamgroup.replay.simulation import tuples_in_flight
from streamgroup.replay.simulation.choose import Sources
from streamgroup.replay.simulation.chunk_driven import Setup, no_worker
from streamgroup.replay.simulation.event_driven import EventDriven, Taker
from streamgroup.replay.simulation.event_loop import FULL_TUPLES, Clock, Until
from streamgroup.replay.simulation.event_state import grown_rows
from streamgroup.replay.stages.aggregators import edge_plan
from streamgroup.replay.stages.partial_results import window_ends
from streamgroup.replay.stages.result_delays import ResultDelays

__all__ = ["HeldBack", "make_held_back"]

I64 = NDArray[np.int64]
# Partial results that there is room for at first, and those that are logged before they are accounted.
_ROWS = 1 << 10
_LOG = 1 << 16


class _Windows:
    """Numbers the windows of the stream that have tuples, in its order; `rule` says where they end.

    The first `warmup` tuples are in none.
    """

    def __init__(self, rule: WindowRule, warmup: int) -> None:
        self.rule, self._warmup = rule, warmup
        self.first_arrival: int | None = None
        # How many there are, and the number of the last one by the rule.
        self.count = 0
        self._number: int | None = None

    def of(self, offset: int, arrival: I64) -> tuple[I64, I64]:
        """Return the window of each tuple of a chunk, -1 for those of the warm-up, and the rule's numbers of the
        windows that begin in it."""
        found = np.full(len(arrival), -1, dtype=np.int64)
        skip = min(max(self._warmup - offset, 0), len(arrival))
        arrival = arrival[skip:]
        if not len(arrival):
            return found, arrival
        if self.first_arrival is None:
            self.first_arrival = int(arrival[0])
        place, number = self.rule.begins(offset + skip - self._warmup, arrival - self.first_arrival)
        goes_on = int(self._number == int(number[0]))
        window = self.count - goes_on + np.arange(len(number))
        found[skip:] = np.repeat(window, np.diff(place, append=len(arrival)))
        self.count += len(number) - goes_on
        self._number = int(number[-1])
        return found, number[goes_on:]


class _Results:
    """Accounts the partial results of windows, all of which were accepted."""

    def __init__(self, aggregators: int) -> None:
        self._busy = np.zeros(aggregators, dtype=np.int64)
        self._partials = 0
        self._delays = ResultDelays()
        # Of partial results of windows that may have others: window, key and finish, int64[3, p].
        self._kept = np.zeros((3, 0), dtype=np.int64)

    def take(self, log: Any, first: int, ends: Callable[[I64], I64]) -> None:
        """Take partial results that were accepted; no more come of windows before `first`, whose `ends` are known."""
        np.add.at(self._busy, log.aggregator, log.finish - log.start)
        self._partials += len(log)
        kept = np.concatenate([self._kept, np.stack([log.window, log.key, log.finish])], axis=1)
        complete = kept[0] < first
        self._kept = kept[:, ~complete]
        window, key, finish = kept[:, complete]
        if not len(window):
            return
        order = np.lexsort((key, window))
        window, key, finish = window[order], key[order], finish[order]
        begins = np.flatnonzero(np.append(True, (np.diff(window) | np.diff(key)) != 0))
        self._delays.add(np.maximum.reduceat(finish, begins), ends(window[begins]))

    def aggregation(self) -> Aggregation:
        """Return what the aggregators did."""
        assert not self._kept.size
        return self._delays.aggregation(self._busy, self._partials)


class Edge(NamedTuple):
    """The edge from the workers to the aggregators: its plan, and what it runs with."""

    plan: Plan
    setup: Setup
    every: WindowRule


class HeldBack(EventDriven):
    """Calls the loop in which full aggregators hold workers back."""

    def __init__(self, setup: Setup, plan: Plan, span: tuple[int, int], taker: Taker, tiers: Tiers, edge: Edge) -> None:
        shuffled = plan.options.source_assignment == "shuffle"
        super().__init__(setup, plan.queues, span, taker, round_robin=shuffled)
        self._edge_plan, self._to, every = edge
        workers, aggregators = len(self._edge.free), self._to.members.most
        self._run = tiers.made(loop.simulate, _both(setup, self._to))
        self._windows = _Windows(every, span[0])
        rows = max(_ROWS, 1 << (setup.edge.sources + 2).bit_length())
        self._gathering = gather_partial_results.make_gathering(
            setup.recorder.keys, workers, len(self._state.cost), rows
        )
        self._waiting_costs = np.zeros(workers, dtype=np.float64)
        self._log = send_partial_results.make_log(_LOG)
        self._to_queues = send_partial_results.make_queues(plan.queues.capacity, aggregators)
        self._in_flight = tuples_in_flight.make_in_flight(aggregators) if self._to.grouping.has_feedback else None
        self._drawn, self._costs_drawn = 0, self._draw(0)
        self._results = _Results(aggregators)
        # The first window that may have partial results to come.
        self._first_window = 0

    def _draw(self, first: int) -> NDArray[np.float64] | None:
        """Draw the costs of partial results from number `first` on, if they differ."""
        costs = self._edge_plan.costs
        if costs.distribution is None:
            return None
        index = np.arange(first, first + len(self._log))
        return float(costs.constant_ns or 0) * factors(
            costs.distribution, self._edge_plan.options.seed, index, "aggregator"
        )

    def _load(self, ready: Ready) -> None:
        self._account_log(more=True)
        super()._load(ready)
        # In a closed loop arrivals are not known; windows are of tuples there.
        arrival = np.zeros(len(ready.key), dtype=np.int64) if self._queues.max_pending else ready.arrival
        window, numbers = self._windows.of(ready.offset, arrival)
        self._take_windows(ready.offset, window, numbers)
        if not self._last:
            # The last tuple waits: only when the next one was read is it known whether it ends its window.
            self._end -= 1
            self._turn_all(self._state, self._stream, self._end, self._last)

    def _take_windows(self, offset: int, window: I64, numbers: I64) -> None:
        """Note the windows of tuples from number `offset` on; windows of these `numbers` begin."""
        assert self._stream is not None
        known = self._gathering
        window_of, windows = known.window_of, known.windows
        while len(window_of) < len(self._stream.key):
            window_of = grown_rows(window_of, max(offset - len(window_of), 0), offset)
        window_of[np.arange(offset, offset + len(window)) & (len(window_of) - 1)] = window
        count, begun = self._windows.count, np.arange(self._windows.count - len(numbers), self._windows.count)
        while count - self._first_window > len(windows):
            windows = gather_partial_results.grown_windows(windows, self._first_window, count - len(numbers))
        place = begun & (len(windows) - 1)
        windows.unaccepted[place], windows.unsent[place] = 0, 0
        windows.ends[place], windows.first_part[place], windows.number[place] = -1, -1, numbers
        measured = window[window >= 0]
        if len(measured):
            sizes = np.bincount(measured - measured[0])
            windows.unaccepted[np.arange(measured[0], count) & (len(windows) - 1)] += sizes
        self._gathering = known._replace(window_of=window_of, windows=windows)

    def _account_log(self, *, more: bool) -> None:
        """Account the partial results in the log, and make room in it; `more` of the stream may be to come."""
        marks, windows = self._gathering.marks, self._gathering.windows
        open_windows = np.arange(self._first_window, self._windows.count)
        place = open_windows & (len(windows) - 1)
        done = (windows.unaccepted[place] == 0) & (windows.unsent[place] == 0)
        if more:
            # So may tuples of the last window.
            done[-1:] = False
        self._first_window += len(done) if done.all() else int(np.argmin(done))
        self._results.take(self._log[: int(marks.logged[0])], self._first_window, self._ends)
        marks.logged = 0

    def _ends(self, window: I64) -> I64:
        """Return when windows end."""
        windows, first = self._gathering.windows, self._windows.first_arrival
        assert first is not None
        place = window & (len(windows) - 1)
        return window_ends(self._windows.rule, first, windows.number[place], windows.ends[place])

    def _simulate(self, sources: Sources, until: Until) -> tuple[int, Clock]:
        to = self._to.grouping
        edge = send_partial_results.Sending(
            Sources(
                self._to.members.most, None, None, None, to.choices, to.entries, to.detector, to.room,
                self._to.recorder.largest_state,
            ),
            self._to.edge.service, self._to.edge.delay, self._in_flight, to.next_read, self._costs_drawn, self._drawn,
            self._log, self._to_queues,
        )  # fmt: skip
        assert self._stream is not None
        job = loop.Job(sources, self._workers, self._state, self._stream, self._events, self._waiting_costs)
        found: tuple[int, Clock] = self._run(self._grouping.hooks, to.hooks, job, self._gathering, edge, until)
        return found

    def _answer(self, why: int) -> None:
        if why == send_partial_results.FULL_LOG:
            self._account_log(more=not self._last)
            self._drawn = int(self._gathering.marks.chosen[0])
            self._costs_drawn = self._draw(self._drawn)
        elif why == send_partial_results.FULL_POOLS:
            self._gathering, table = gather_partial_results.grown_pools(self._gathering)
            call(gather_partial_results.enter_all, table, self._gathering.table)
        elif why == send_partial_results.FULL_FLIGHT:
            assert self._in_flight is not None
            self._in_flight = tuples_in_flight.grown(self._in_flight)
        elif why == send_partial_results.FULL_SENDER:
            self._to.grouping.grow(1)
        elif why == send_partial_results.NO_AGGREGATOR:
            raise no_worker(self._to.grouping, self._to.members, int(self._gathering.marks.fault[0]))
        elif why == send_partial_results.LATE_RESULT:
            raise DataError(
                "a partial result would be merged past the clock's 146 years", "use a shorter --aggregator-service"
            )
        else:
            super()._answer(why)
            if why == FULL_TUPLES:
                self._gathering = gather_partial_results.grown_tuples(self._gathering, len(self._state.cost))

    def finish(self) -> None:
        """Account what is left and end the last window."""
        super().finish()
        self._account_log(more=False)

    def aggregation(self) -> Aggregation:
        """Return what the aggregators did, after the end."""
        return self._results.aggregation()


def _both(setup: Setup, to: Setup) -> Code:
    """Name what a function is compiled with that has the hooks of two groupings."""
    one, two = setup.grouping.code, to.grouping.code
    return Code(
        f"{one.name}_to_{two.name}",
        tuple(sorted({*one.modules, *two.modules})),
        "-".join(digest for digest in (one.outside_digest, two.outside_digest) if digest),
    )


def make_held_back(
    setup: Setup,
    plan: Plan,
    span: tuple[int, int],
    taker: Taker,
    tiers: Tiers,
    edge: Callable[[Plan], tuple[Setup, Tiers]],
) -> HeldBack:
    """Make the simulation of a run of `span` tuples: those of the warm-up, and all.

    The edge to the aggregators is made by `edge`, as in `make_merging`.
    """
    to_aggregators = edge_plan(plan, setup.members.most)
    rule = WindowRule(plan.options.aggregate_every or "100%", span[1] - span[0])
    return HeldBack(setup, plan, span, taker, tiers, Edge(to_aggregators, edge(to_aggregators)[0], rule))
