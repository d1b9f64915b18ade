"""Key grouping (KG, also FG): a key's tuples all go to one worker, by hash."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from streamgroup.groupings._hash_parameter import HashedParams
from streamgroup.groupings.protocol import Context, Destinations, Parts, WorkersChange
from streamgroup.kernels.hash_placement import ring_positions
from streamgroup.kernels.hash_ring import RING_POSITIONS, first_point, make_ring

__all__ = ["KeyGrouping", "Params", "start"]


class Params(HashedParams):
    """Parameters of key grouping."""

    ring: bool = Field(
        default=False, description="the worker is the next on a consistent-hash ring: fewer keys move as workers change"
    )
    vnodes: int = Field(default=100, ge=1, le=10_000, description="virtual nodes of a worker on the ring (V in 000)")

    def seeds_used(self) -> tuple[str, ...]:
        """Candidates move with the hash seed, and the ring does not."""
        return () if self.ring else ("hash_seed",)

    def choices_per_key(self, workers: int) -> int:
        """A key has one worker."""
        return 1

    def parts_by_worker(self, workers: int) -> Parts | None:
        """Return how many positions on the ring lead to each worker."""
        if not self.ring:
            return None
        ring = make_ring(np.arange(workers), self.vnodes)
        sizes = np.diff(ring.position, prepend=ring.position[-1] - RING_POSITIONS)
        return Parts("ring positions", np.bincount(ring.owner, sizes, minlength=workers).astype(np.int64))

    def doubts(self, workers: int, sources: int, keys: int) -> list[str]:
        """With `ring=true` the parameter `hash` has no effect."""
        return [*super().doubts(workers, sources, keys), *self.doubts_of_ring(self.ring)]

    def destinations(self, context: Context) -> Destinations:
        """It is F_1, or the next on the ring."""
        return Destinations(_first_workers(context, self.vnodes if self.ring else 0)[:, np.newaxis])


class KeyGrouping(NamedTuple):
    """The worker of a key is its first candidate F_1 (001 section II; "FG" in 000).

    One replica of each key's state, and a worker that cannot do less than its hottest key brings. F_1 is a place in the
    list of live workers: when that changes, a quarter to a half of the keys move, not just those of who left. With
    `vnodes` > 0 it is the next worker on a ring (000 section 4.2.2), where just those move; the price is that workers
    have unequal parts of the ring, some 1/sqrt(vnodes) apart.

    Departures from the paper: none.
    """

    worker_of: NDArray[np.uint16]
    vnodes: int
    state_entries: int
    state_entry_bytes: int

    def choose(self, source: int, key: int, now: int) -> int:
        """Look the key's worker up."""
        return self.worker_of[key]

    def workers_changed(self, change: WorkersChange, context: Context) -> "KeyGrouping":
        """Hash every key anew to the live workers, or take those who are on the ring now."""
        return self._replace(worker_of=_first_workers(context, self.vnodes))


def _first_workers(context: Context, vnodes: int) -> NDArray[np.uint16]:
    if vnodes == 0:
        return context.candidates(1)[:, 0].copy()
    ring = make_ring(context.live, vnodes)
    return ring.owner[first_point(ring, ring_positions(context.hash_lo))]


def start(params: Params, context: Context) -> KeyGrouping:
    """Compute the worker of every key."""
    vnodes = params.vnodes if params.ring else 0
    return KeyGrouping(_first_workers(context, vnodes), vnodes, state_entries=0, state_entry_bytes=8)
