"""The parameter `detector` of groupings: finds the hot-key detector by its name, adds its parameters, and starts it."""

from functools import cache
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from streamgroup.base import modules_by_name
from streamgroup.base.errors import UsageError
from streamgroup.base.spelling_hint import suggest
from streamgroup.groupings._hash_parameter import HashedParams
from streamgroup.groupings.protocol import Context, Destinations, GroupingParams

__all__ = ["DETECTORS", "DetectorName", "HeadParams", "start_detector", "with_detector"]

DETECTORS = "streamgroup.groupings.detectors"
# What a detector may leave out, in words.
_REPORTED = {
    "hottest": "how frequent the hot keys are",
    "most": "how many hot keys there can be",
    "total": "how frequent a key is",
}


def _known(name: str) -> str:
    if name not in modules_by_name.names(DETECTORS):
        raise ValueError(f"there is no detector {name!r}: {suggest(name, modules_by_name.names(DETECTORS))}")
    return name


DetectorName = Annotated[str, AfterValidator(_known)]


class HeadParams(HashedParams):
    """Parameters of groupings with a hot-key detector: the detector; its own parameters come with it."""

    detector: DetectorName = Field(default="space_saving", description="detects hot keys")

    def seeds_used(self) -> tuple[str, ...]:
        """Candidates move with the hash seed, and the detector may draw."""
        return ("hash_seed", *super().seeds_used())

    def cold_choices(self, workers: int) -> int:
        """A key that is not hot has two candidates."""
        return min(2, workers)

    def destinations(self, context: Context) -> Destinations:
        """A key that is not hot goes to F_1 or F_2."""
        return Destinations(context.candidates(2), "a key that is treated as hot may go to more, up to all workers")


@cache
def with_detector(kind: type[GroupingParams], detector: str) -> type[GroupingParams]:
    """Return the parameters of a grouping together with those of its detector, checked as one."""
    own: type[GroupingParams] = modules_by_name.load(DETECTORS, detector, "detector").Params
    if both := sorted(set(kind.model_fields) & set(own.model_fields)):
        raise UsageError(f"detector={detector} and the grouping both have a parameter {both[0]}", "rename one of them")
    return type("Params", (kind, own), {"__doc__": kind.__doc__, "__module__": kind.__module__})


def start_detector(params: Any, context: Context, *needed: str) -> Any:
    """Start the detector that the parameters name, with its parameters among them; it needs the fields `needed`."""
    detector = modules_by_name.load(DETECTORS, params.detector, "detector").start(params, context)
    for field in needed:
        if not hasattr(detector, field):
            raise UsageError(
                f"detector={params.detector} does not report {_REPORTED[field]}",
                "take another, such as detector=space_saving",
            )
    return detector
