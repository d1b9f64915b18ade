"""Sketches on their way from workers to the sources: a ring, as all take equally long and arrive in order."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgroup.groupings.posg import count_min
from streamgroup.kernels.compiling.kernel_decorators import njit

__all__ = ["NEVER", "InFlight", "doubled", "make_in_flight", "next_due", "pop", "push", "without"]

# Later than any time there is.
NEVER = (1 << 63) - 1
I64 = NDArray[np.int64]


class InFlight(NamedTuple):
    """`cells` int64[room, rows x columns, 2], `sender` and `due` int64[room]: what, of whom, and when it arrives, ns.

    `ring` int64[2]: the place of the next to arrive, and how many there are.
    """

    cells: I64
    sender: I64
    due: I64
    ring: I64


def make_in_flight(room: int, cells: int) -> InFlight:
    """Make a ring for that many sketches of that many cells."""
    return InFlight(
        np.zeros((room, cells, 2), dtype=np.int64),
        np.zeros(room, dtype=np.int64),
        np.zeros(room, dtype=np.int64),
        np.zeros(2, dtype=np.int64),
    )


def _moved(flight: InFlight, places: I64, room: int) -> InFlight:
    """Copy the sketches at some places, in order, into a ring of at least as much room."""
    made = make_in_flight(room, flight.cells.shape[1])
    for old, new in zip(flight[:3], made[:3], strict=True):
        new[: len(places)] = old[places]
    made.ring[1] = len(places)
    return made


def _places(flight: InFlight) -> I64:
    first, count = flight.ring
    return np.asarray((first + np.arange(count)) % len(flight.due))


def doubled(flight: InFlight) -> InFlight:
    """Return a ring with the same sketches and twice the room."""
    return _moved(flight, _places(flight), 2 * len(flight.due))


def without(flight: InFlight, gone: I64) -> InFlight:
    """Return a ring without the sketches of some workers."""
    places = _places(flight)
    return _moved(flight, places[~np.isin(flight.sender[places], gone)], len(flight.due))


@njit(forceinline=True)
def next_due(flight: Any) -> Any:
    """Return when the next sketch arrives, NEVER if there is none."""
    return flight.due[flight.ring[0]] if flight.ring[1] > 0 else np.int64(NEVER)


@njit(forceinline=True)
def push(flight: Any, cells: Any, worker: Any, due: Any) -> None:
    """Send a copy of a worker's cells, due no earlier than those before; there must be room."""
    ring = flight.ring
    place = (ring[0] + ring[1]) % flight.due.shape[0]
    ring[1] += 1
    count_min.copy(cells, worker, flight.cells, place)
    flight.sender[place] = worker
    flight.due[place] = due


@njit(forceinline=True)
def pop(flight: Any) -> Any:
    """Take the next sketch out of the ring; return its place, where it stays until another is sent."""
    ring = flight.ring
    place = ring[0]
    ring[0] = (place + 1) % flight.due.shape[0]
    ring[1] -= 1
    return place
