"""A consistent-hash ring: where each worker's virtual nodes are, and which workers come next from a position.

Positions are 0..2^32-1. From a key one goes clockwise, to the first point that is not before it, and on; behind the
last point comes the first. A worker that leaves takes its points with it, and every other stays where it is, but for
one that had moved aside because of them (Karger et al., STOC 1997; 000 section 4.2.2).
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgroup.base.errors import UsageError
from streamgroup.kernels.compiling.kernel_decorators import njit
from streamgroup.kernels.hash_placement import node_positions

__all__ = ["RING_POSITIONS", "Ring", "first_point", "first_two", "make_ring", "walk"]

RING_POSITIONS = 1 << 32
_POINT_BITS = 24
_MOST_POINTS = 1 << _POINT_BITS


class Ring(NamedTuple):
    """`position` int64[points], ascending and distinct, and `owner` uint16[points], the worker of each point."""

    position: NDArray[np.int64]
    owner: NDArray[np.uint16]


def make_ring(live: NDArray[np.int64], nodes: int) -> Ring:
    """Place `nodes` points (1 to 10,000) of each of the `live` workers (int64, ascending).

    A point that falls on one that is there already (workers by id, nodes by number) is hashed again as node v + nodes,
    v + 2 nodes, ... until its place is free. UsageError for more than 2^24 points.
    """
    if len(live) * nodes > _MOST_POINTS:
        raise UsageError(
            f"a ring of {len(live)} workers with {nodes} virtual nodes each is too large",
            f"take at most {_MOST_POINTS // len(live)} virtual nodes",
        )
    worker, number = np.repeat(live, nodes), np.tile(np.arange(nodes, dtype=np.int64), len(live))
    position, point = node_positions(worker, number), np.arange(len(worker), dtype=np.int64)
    while True:
        # Of points at one place the first stays, whoever came there in which round: as all places prefer the same
        # points, that ends as if points were placed one after another (stable matching: Gale and Shapley 1962).
        placed = np.sort(position << _POINT_BITS | point)
        place, which = placed >> _POINT_BITS, placed & (_MOST_POINTS - 1)
        displaced = which[1:][place[1:] == place[:-1]]
        if len(displaced) == 0:
            return Ring(place, worker[which].astype(np.uint16))
        number[displaced] += nodes
        position[displaced] = node_positions(worker[displaced], number[displaced])


def first_point(ring: Ring, positions: NDArray[np.int64]) -> NDArray[np.int32]:
    """Give the first point from each position on; one at the position itself counts."""
    place = np.searchsorted(ring.position, positions, side="left")
    return (place % len(ring.position)).astype(np.int32)


def first_two(ring: Ring) -> NDArray[np.uint16]:
    """Give, for each point, the first two distinct workers from there on, uint16[points, 2]; one alone comes twice."""
    owner, points = ring.owner, len(ring.owner)
    following = np.roll(owner, -1)
    ends = np.flatnonzero(owner != following)
    if len(ends) == 0:
        return np.stack([owner, owner], axis=1)
    run = np.searchsorted(ends, np.arange(points), side="left") % len(ends)
    return np.ascontiguousarray(np.stack([owner, following[ends[run]]], axis=1))


@njit
def walk(owner: Any, point: Any, d: Any, seen: Any, stamp: Any, lists: Any, row: Any) -> None:
    """Write the first d distinct workers from `point` on to `lists[row]`; at least d have points.

    `seen` int64[N] takes `stamp`, which must be new, for each worker that was met.
    """
    found = 0
    while found < d:
        worker = owner[point]
        if seen[worker] != stamp:
            seen[worker] = stamp
            lists[row, found] = worker
            found += 1
        point += 1
        if point == owner.shape[0]:
            point = 0
