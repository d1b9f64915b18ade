"""The aggregators: the edge from the workers, which send partial results, to the servers that merge them."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple

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


class _Groups(NamedTuple):
    """Partial results of one window and worker, which leave together, one element each: when, whose, how many."""

    leaves: I64
    worker: I64
    window: I64
    size: I64


class _Waiting(NamedTuple):
    """Partial results whose way is not simulated yet, one element each, those of a group by key id."""

    key: NDArray[np.uint32]
    result: I64

    def at(self, places: I64) -> "_Waiting":
        """Return those at some places."""
        return _Waiting(self.key[places], self.result[places])


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
        self._groups = _Groups(none, none, none, none)
        self._waiting = _Waiting(none.astype(np.uint32), none)
        self._open = _Open(none, none, none)
        self._sent = 0
        self._last: Ready | None = None
        self._delays = ResultDelays()

    def take(self, partials: Partials) -> None:
        """Take the partial results of windows that ended, and send what leaves before all that is to come."""
        order, begins = partials.by_result, np.flatnonzero(partials.first)
        result = np.empty(len(order), dtype=np.int64)
        result[order] = np.cumsum(partials.first) + (len(self._open.left) - 1)
        opened = _sizes(begins, len(order)), np.zeros(len(begins), dtype=np.int64), partials.ends[order[begins]]
        changed = np.ones(len(order), dtype=bool)
        changed[1:] = (np.diff(partials.window) | np.diff(partials.worker)) != 0
        heads = np.flatnonzero(changed)
        of_group = (column[heads] for column in (partials.leaves, partials.worker, partials.window))
        groups = _Groups(*_joined(self._groups, (*of_group, _sizes(heads, len(order)))))
        waiting = _Waiting(*_joined(self._waiting, (partials.key.astype(np.uint32), result)))
        self._open = _Open(*_joined(self._open, opened))
        stays = groups.leaves >= partials.horizon
        # In the order of time, worker, window and key.
        leaving = np.flatnonzero(~stays)
        leaving = leaving[np.lexsort([column[leaving] for column in (groups.window, groups.worker, groups.leaves)])]
        begin = np.cumsum(groups.size) - groups.size
        self._groups = _Groups(*(column[stays] for column in groups))
        self._waiting = waiting.at(_places(begin[stays], self._groups.size))
        sizes = groups.size[leaving]
        leaves, worker = np.repeat(groups.leaves[leaving], sizes), np.repeat(groups.worker[leaving], sizes)
        places = _places(begin[leaving], sizes)
        for first in range(0, len(places), _CHUNK):
            some = slice(first, first + _CHUNK)
            self._send_chunk(leaves[some], worker[some], *waiting.at(places[some]))
        self._close_results()

    def _send_chunk(self, leaves: I64, worker: I64, key: NDArray[np.uint32], result: I64) -> None:
        size = len(key)
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
            leaves.view(),
            key,
            cost,
            worker.astype(np.int32),
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
            np.maximum.at(self._open.served, result[place : place + len(finish)], finish)
            place += len(finish)
            self._last = piece
        np.subtract.at(self._open.left, result, 1)

    def _close_results(self) -> None:
        """Count results that are complete, and forget them, if they are half of all: the others move."""
        complete = self._open.left == 0
        # Mostly they are those of the windows that ended before.
        first = len(complete) if complete.all() else int(complete.argmin())
        result = self._waiting.result
        if 0 < len(complete) <= 2 * first:
            self._delays.add(self._open.served[:first], self._open.ends[:first])
            self._open = _Open(*(column[first:] for column in self._open))
            self._waiting = self._waiting._replace(result=result - first)
        elif 2 * np.count_nonzero(complete) > len(complete):
            closed, left = np.flatnonzero(complete), np.flatnonzero(~complete)
            self._delays.add(self._open.served[closed], self._open.ends[closed])
            self._open = _Open(*(column[left] for column in self._open))
            self._waiting = self._waiting._replace(result=(np.cumsum(~complete) - 1)[result])

    def finish(self) -> Aggregation:
        """Return what they did, after all partial results were taken."""
        assert not len(self._waiting.key)
        assert not self._open.left.any()
        self._close_results()
        busy = np.zeros(self._setup.members.ever, dtype=np.int64)
        if self._last is not None:
            self._simulation.finish(self._last)
            recorder, members = self._setup.recorder, self._setup.members
            busy = recorder.worker_table(members, 0, self._delays.last_served, keep_pairs=False).busy_ns
        return self._delays.aggregation(busy, self._sent)


def _sizes(begins: I64, end: int) -> I64:
    """Return how many elements there are from each of some places to the next one."""
    return np.diff(begins, append=end)


def _places(begins: I64, sizes: I64) -> I64:
    """Return the places of the elements of groups, one group after the other."""
    return np.repeat(begins - (np.cumsum(sizes) - sizes), sizes) + np.arange(sizes.sum())


def _joined(columns: Iterable[NDArray[Any]], more: Iterable[NDArray[Any]]) -> Iterator[NDArray[Any]]:
    """Append columns to others."""
    return (np.concatenate(pair) if len(pair[0]) else pair[1] for pair in zip(columns, more, strict=True))
