"""Consistent hashing with bounded loads: the first worker on a ring, from the key's place on, that is not full."""

from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from streamgroup.groupings._loads_when_workers_change import carry_loads
from streamgroup.groupings._six_decimals import Millionths
from streamgroup.groupings.bounded_load.ring_search import find_worker, make_memory, raised
from streamgroup.groupings.protocol import Context, Destinations, GroupingParams, WorkersChange
from streamgroup.kernels.hash_placement import ring_positions
from streamgroup.kernels.hash_ring import Ring, first_point, make_ring

__all__ = ["CITE", "BoundedLoad", "Params", "start"]

CITE = ("CHBL",)


class Params(GroupingParams):
    """Parameters of consistent hashing with bounded loads."""

    # With so few decimals, `step` and `whole` stay far below 2^63.
    c: Millionths = Field(
        default=0.25, gt=0, le=10, description="a worker is full at (1 + c) times the mean load (epsilon in the paper)"
    )
    vnodes: int = Field(default=100, ge=1, le=10_000, description="virtual nodes of a worker on the ring")

    def seeds_used(self) -> tuple[str, ...]:
        """The ring does not move with a seed."""
        return ()

    def destinations(self, context: Context) -> Destinations:
        """All workers, in their order on the ring from the key's place on."""
        ring, home = _ring_and_places(context, self.vnodes)
        return Destinations(_in_order(ring, home, context.live), "of these the first that is below the bound")


class BoundedLoad(NamedTuple):
    """The first worker clockwise from a key's place whose load stays within the bound (Mirrokni et al., SODA 2018).

    Each source counts the tuples that it sent itself (`load[source, worker]`). With m of them, the current one
    included, and n live workers the bound is ceil((1 + c) m / n); the worker must not exceed it with the current tuple.
    So no source sends any worker more than its bound, and there is always a worker below it. Ring and places are those
    of `kg:ring=true`; with 1 + c >= n the choices are the same.

    The bound is exact: c is a decimal, 1 + c = `step` / `unit` and `whole` = `unit` x n are integers; see `raised` for
    `bound` and `remainder`. `home` int32[keys] is the first point of each key, `owner` uint16[points] the worker of
    each point. `memory` int64[sources, 256, 3] holds where long searches ended, so that a hot key does not start each
    one at its place again; it changes no choice.

    When workers change, a joiner starts at the smallest load of each source, and m becomes the sum over the live. A
    worker that is above the new bound gets nothing until the bound has caught up.

    Departures from the paper: there balls also leave, m counts those present, and balls move to keep within a bound
    that falls. Here a load counts all tuples sent so far, finished or not, so it only grows, and no tuple moves. There
    each ball has a place of its own and one bin; here all tuples of a key share a place, and each is placed anew. There
    the state is shared; here each source has its own. Virtual nodes are from 000, section 4.2.2.
    """

    home: NDArray[np.int32]
    owner: NDArray[np.uint16]
    load: NDArray[np.int64]
    bound: NDArray[np.int64]
    remainder: NDArray[np.int64]
    memory: NDArray[np.int64]
    step: int
    unit: int
    whole: int
    vnodes: int
    state_entries: int
    state_entry_bytes: int

    def choose(self, source: int, key: int, now: int) -> int:
        """Raise the bound by the current tuple, take the first worker below it, and count the tuple there."""
        bound = raised(self.bound, self.remainder, source, self.step, self.whole)
        point = self.home[np.uint64(key)]
        worker = find_worker(self.owner, self.load, self.memory, source, key, point, bound)
        self.load[np.uint64(source), np.uint64(worker)] += 1
        return worker

    def workers_changed(self, change: WorkersChange, context: Context) -> "BoundedLoad":
        """Take the ring and the bound of the live workers, and keep what was counted (see `carry_loads`)."""
        return _begun(context, self.step, self.unit, self.vnodes, carry_loads(self.load, change))


def _ring_and_places(context: Context, vnodes: int) -> tuple[Ring, NDArray[np.int32]]:
    ring = make_ring(context.live, vnodes)
    return ring, first_point(ring, ring_positions(context.hash_lo))


def _in_order(ring: Ring, home: NDArray[np.int32], live: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return workers [keys, n], all live ones in the order in which each place comes to them."""
    first = np.empty((len(home), len(live)), dtype=np.int64)
    for column, worker in enumerate(live):
        own = np.flatnonzero(ring.owner == worker)
        next_own = np.searchsorted(own, home)
        first[:, column] = own[next_own % len(own)] + (next_own == len(own)) * len(ring.owner)
    return live[np.argsort(first, axis=1)]


def _begun(context: Context, step: int, unit: int, vnodes: int, load: NDArray[np.int64]) -> BoundedLoad:
    """Return the state of the live workers with these loads."""
    ring, home = _ring_and_places(context, vnodes)
    whole = unit * context.workers
    # In Python's integers, which have no limit.
    tuples = [int(sent) for sent in load[:, context.live].sum(axis=1)]
    bound = [-(-step * sent // whole) for sent in tuples]
    remainder = [most * whole - step * sent for most, sent in zip(bound, tuples, strict=True)]
    return BoundedLoad(
        home=home,
        owner=ring.owner,
        load=load,
        bound=np.array(bound, dtype=np.int64),
        remainder=np.array(remainder, dtype=np.int64),
        memory=make_memory(context.sources),
        step=step,
        unit=unit,
        whole=whole,
        vnodes=vnodes,
        state_entries=context.workers,
        state_entry_bytes=8,
    )


def start(params: Params, context: Context) -> BoundedLoad:
    """Place workers and keys on the ring, with nothing sent; UsageError for a ring of more than 2^24 points."""
    factor = 1 + Fraction(str(params.c))
    load = np.zeros((context.sources, context.workers), dtype=np.int64)
    return _begun(context, factor.numerator, factor.denominator, params.vnodes, load)
