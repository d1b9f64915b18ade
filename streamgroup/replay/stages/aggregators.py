"""The aggregators: the edge from the workers, which send partial results, to the servers that merge them."""

from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgroup.cluster.service_distribution import factors
from streamgroup.cluster.worker_speeds import make_speeds
from streamgroup.replay.accounting.outcome import Aggregation
from streamgroup.replay.input.prefetch import Ready
from streamgroup.replay.interpreted_or_compiled import Tiers
from streamgroup.replay.scenario.plan import Costs, Plan
from streamgroup.replay.simulation.chunk_driven import FeedForward, Setup
from streamgroup.replay.simulation.event_driven import Queues
from streamgroup.replay.stages.partial_results import Partials
from streamgroup.replay.stages.result_delays import ResultDelays

__all__ = ["Aggregators", "edge_plan"]

I64 = NDArray[np.int64]
# Partial results that are sent in one go.
_CHUNK = 1 << 20


def edge_plan(plan: Plan, workers: int) -> Plan:
    """Return the edge to the aggregators as a plan: `workers` workers are its sources, the aggregators its workers."""
    aggregators = plan.aggregators
    assert aggregators is not None
    count, service, distribution, selection = aggregators
    options = replace(
        plan.options, grouping=selection.text, workers=count, sources=workers, join=(), leave=(), crash=(),
        redeliver=False, slowdown=None, slowdown_at=(), speed_jitter=None, window="100%", source_service=None,
        combine=None, state_cost=None, memory_limit=None,
    )  # fmt: skip
    speeds = make_speeds(None, (), None, workers=count, joiners=0, tuples=1, seed=options.seed)
    return plan._replace(
        selection=selection, options=options, speeds=speeds, events=[], queues=Queues(0, False, False, 0),
        costs=Costs(service, None, None, Fraction(service), distribution), aggregators=None, app=None,
        source_service=None, combine=None, state=None,
    )  # fmt: skip


class _Waiting(NamedTuple):
    """Partial results whose way is not simulated yet, one element each, those of a window and worker by key id."""

    leaves: I64
    worker: I64
    window: I64
    key: I64
    result: I64


class _Open(NamedTuple):
    """Results that are not complete, one element each: partial results to come, when served so far, window's end."""

    left: I64
    served: I64
    ends: I64


class Aggregators:
    """Sends partial results through an edge that is `set up` as an `edge_plan` says."""

    def __init__(self, plan: Plan, setup: Setup, tiers: Tiers) -> None:
        self._costs, self._seed = plan.costs, plan.options.seed
        self._setup, self._tiers = setup, tiers
        self._simulation = FeedForward(setup)
        none = np.zeros(0, dtype=np.int64)
        self._waiting = _Waiting(none, none, none, none, none)
        self._open = _Open(none, none, none)
        self._sent = 0
        self._last: Ready | None = None
        self._delays = ResultDelays()

    def take(self, partials: Partials) -> None:
        """Take the partial results of windows that ended, and send what leaves before all that is to come."""
        order, first = partials.by_result, partials.first
        number = np.cumsum(first) - 1
        opened = _Open(
            np.bincount(number).astype(np.int64),
            np.zeros(int(first.sum()), dtype=np.int64),
            partials.ends[order][first],
        )
        result = np.empty(len(order), dtype=np.int64)
        result[order] = number + len(self._open.left)
        new = _Waiting(partials.leaves, partials.worker, partials.window, partials.key, result)
        self._open = _Open(*map(np.concatenate, zip(self._open, opened, strict=True)))
        waiting = _Waiting(*map(np.concatenate, zip(self._waiting, new, strict=True)))
        leave = waiting.leaves < partials.horizon
        if not leave.all():
            self._waiting = _Waiting(*(column[~leave] for column in waiting))
            waiting = _Waiting(*(column[leave] for column in waiting))
        else:
            self._waiting = _Waiting(*(column[:0] for column in waiting))
        order = _departures(waiting)
        for begin in range(0, len(order), _CHUNK):
            self._send_chunk(_Waiting(*(column[order[begin : begin + _CHUNK]] for column in waiting)))
        self._close_results()

    def _send_chunk(self, some: _Waiting) -> None:
        size = len(some.key)
        cost = None
        if self._costs.distribution is not None:
            index = np.arange(self._sent, self._sent + size)
            cost = float(self._costs.constant_ns or 0) * factors(
                self._costs.distribution, self._seed, index, "aggregator"
            )
        # A stream without warm-up, in one window.
        zero = np.zeros(1, dtype=np.int64)
        ready = Ready(
            self._sent,
            some.leaves,
            some.key.astype(np.uint32),
            cost,
            some.worker.astype(np.int32),
            0,
            zero,
            zero.copy(),
        )
        for array in ready:
            if isinstance(array, np.ndarray):
                array.flags.writeable = False
        self._sent += size
        place = 0
        for piece in self._tiers.pieces(ready, ready.offset):
            with self._setup.grouping.blamed("a hook failed"):
                finish = self._simulation.chunk(piece, keep=True).finish
            np.maximum.at(self._open.served, some.result[place : place + len(finish)], finish)
            place += len(finish)
            self._last = piece
        np.subtract.at(self._open.left, some.result, 1)

    def _close_results(self) -> None:
        """Count the results that are complete, and forget them."""
        complete = self._open.left == 0
        if not complete.any():
            return
        self._delays.add(self._open.served[complete], self._open.ends[complete])
        moved = np.cumsum(~complete) - 1
        self._waiting = self._waiting._replace(result=moved[self._waiting.result])
        self._open = _Open(*(column[~complete] for column in self._open))

    def finish(self) -> Aggregation:
        """Return what they did, after all partial results were taken."""
        assert not len(self._waiting.leaves)
        busy = np.zeros(self._setup.members.ever, dtype=np.int64)
        if self._last is not None:
            self._simulation.finish(self._last)
            recorder, members = self._setup.recorder, self._setup.members
            busy = recorder.worker_table(members, 0, self._delays.last_served, keep_pairs=False).busy_ns
        return self._delays.aggregation(busy, self._sent)


def _departures(some: _Waiting) -> I64:
    """Return the order of time, worker, window and key, in which those of one window and worker lie together."""
    changed = np.ones(len(some.key), dtype=bool)
    changed[1:] = (np.diff(some.window) | np.diff(some.worker)) != 0
    begins = np.flatnonzero(changed)
    groups = np.lexsort((some.window[begins], some.worker[begins], some.leaves[begins]))
    sizes = np.diff(begins, append=len(some.key))[groups]
    starts = np.cumsum(sizes) - sizes
    return np.repeat(begins[groups] - starts, sizes) + np.arange(len(some.key))
