"""The parameter `hash` of groupings: how the hash of a key becomes the place of a live worker."""

from typing import Literal

from pydantic import Field

from streamgroup.groupings.protocol import GroupingParams

__all__ = ["HashedParams"]


class HashedParams(GroupingParams):
    """Parameters of a grouping whose keys have candidates F_1, F_2, ...: places in the list of live workers.

    A hash h of 32 bits is scaled to h n / 2^32, rounded down, or taken modulo n. The workers are as even; what differs
    is how many keys move when a worker joins or leaves: up to about half of them by scaling, all but 1/n by `mod`.
    """

    hash: Literal["scaled", "mod"] = Field(
        default="scaled",
        description="a key's place among the live workers: its hash scaled to n, or modulo n, where more keys move",
    )

    def modulo(self) -> bool:
        """Return whether hashes are taken modulo n (`hash=mod`)."""
        return self.hash == "mod"

    def doubts_of_ring(self, ring: bool) -> list[str]:
        """Return a warning if `hash=mod` is set for keys that are placed on a ring."""
        return ["hash=mod has no effect with ring=true: set ring=false"] if ring and self.modulo() else []
