"""Load-aware shuffle: any worker for any key, idle ones first, as Flink's adaptive partitioner or Storm's grouping."""

from typing import Literal

from pydantic import Field

from streamgroup.groupings._time_parameters import Period, period_ns
from streamgroup.groupings.load_aware import idle_first, weighted_shuffle
from streamgroup.groupings.load_aware.idle_first import IdleFirst
from streamgroup.groupings.load_aware.weighted_shuffle import WeightedRing
from streamgroup.groupings.protocol import Context, GroupingParams

__all__ = ["Params", "start"]


class Params(GroupingParams):
    """Parameters of load-aware shuffle."""

    rule: Literal["flink", "storm"] = Field(default="flink", description="engine whose rule is used")
    traverse: int = Field(default=4, ge=2, le=65_536, description="flink: workers that a source looks at for a tuple")
    buffer: int = Field(default=1, ge=1, le=1_000_000, description="flink: tuples of a network buffer, and of a credit")
    report: Period = Field(default="5s", description="storm: time between two reports of a worker")
    refresh: Period = Field(default="1s", description="storm: time after which weights and rings are made anew")
    queue: int = Field(default=32_768, ge=20, le=1 << 40, description="storm: capacity of a worker's queue, in tuples")

    def seeds_used(self) -> tuple[str, ...]:
        """Storm's ring is shuffled; Flink's rule draws nothing."""
        return ("seed",) if self.rule == "storm" else ()

    def choices_per_key(self, workers: int) -> int:
        """Any key may go to any worker."""
        return workers

    def needs_every_delivery(self) -> bool:
        """Workers know what they still have to do, and for whom, by counting."""
        return True


def start(params: Params, context: Context) -> IdleFirst | WeightedRing:
    """Nothing has been sent."""
    if params.rule == "storm":
        return weighted_shuffle.begin(context, period_ns(params.report), period_ns(params.refresh), params.queue)
    return idle_first.begin(context, params.traverse, params.buffer)
