"""Partial key grouping (PKG): a key is split over two workers, each tuple goes to the less loaded one."""

from pydantic import Field

from streamgroup.groupings import greedy_d
from streamgroup.groupings.protocol import Context

__all__ = ["Params", "start"]


class Params(greedy_d.Params):
    """Parameters of PKG: `greedy_d` with two candidates unless told otherwise."""

    d: int = Field(default=2, ge=1, le=4096, description="candidates of each key (d in 001); 1 is key grouping")


def start(params: Params, context: Context) -> greedy_d.GreedyD:
    """Start Greedy-d with the two candidates of PKG (Nasir et al., ICDE 2015; 001 section II)."""
    return greedy_d.start(params, context)
