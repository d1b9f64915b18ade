"""Partial key grouping (PKG): a key is split over two workers, each tuple goes to the less loaded one."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from streamgroup.groupings import greedy_d
from streamgroup.groupings._hash_parameter import HashedParams
from streamgroup.groupings._loads_when_workers_change import carry_loads
from streamgroup.groupings.protocol import Context, Destinations, WorkersChange
from streamgroup.kernels.least_loaded_of_few import send_to_less_loaded

__all__ = ["CITE", "Params", "TwoChoices", "start"]

CITE = ("PKG",)


class Params(HashedParams):
    """Parameters of PKG."""

    d: int = Field(default=2, ge=1, le=4096, description="candidates of each key (d in 001); 1 is key grouping")

    def seeds_used(self) -> tuple[str, ...]:
        """Candidates move with the hash seed."""
        return ("hash_seed",)

    def choices_per_key(self, workers: int) -> int:
        """A key may go to d workers, and never to more than there are."""
        return min(self.d, workers)

    def destinations(self, context: Context) -> Destinations:
        """A key has F_1 to F_d, of which some may be the same."""
        return Destinations(context.candidates(self.d))


class TwoChoices(NamedTuple):
    """The less loaded of F_1 and F_2, ties to F_1 (Nasir et al., ICDE 2015; 001 section II).

    Each source counts the tuples that it sent itself (`load[source, worker]`). At most two replicas of a key's state,
    whatever the number of sources, since the candidates are the same at each. If the hottest key has a share
    p1 > 2/n, the imbalance is at least p1/2 - 1/n.

    Departures from the paper: none. F_1 and F_2 coincide for one key in n, as in the papers; 003's remark that PKG
    does not guarantee two workers is that case.
    """

    candidates: NDArray[np.uint16]
    load: NDArray[np.int64]
    state_entries: int
    state_entry_bytes: int

    def choose(self, source: int, key: int, now: int) -> int:
        """Take the less loaded of the two candidates and count the tuple."""
        return send_to_less_loaded(self.candidates, self.load, source, key)

    def workers_changed(self, change: WorkersChange, context: Context) -> "TwoChoices":
        """Hash every key anew to the live workers, and keep what was counted (see `carry_loads`)."""
        return self._replace(
            candidates=context.candidates(2), load=carry_loads(self.load, change), state_entries=context.workers
        )


def start(params: Params, context: Context) -> TwoChoices | greedy_d.GreedyD:
    """Compute the candidates of every key. With d other than 2 this is Greedy-d."""
    state = greedy_d.start_for_all(params.d, context)
    return TwoChoices(*state) if params.d == 2 else state
