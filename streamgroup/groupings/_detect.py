"""What groupings that treat hot keys apart share: a detector, chosen by name."""

from functools import cache
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from streamgroup.base import discover
from streamgroup.base.errors import UsageError
from streamgroup.groupings.protocol import Context, GroupingParams

__all__ = ["DETECTORS", "DetectorName", "HeadParams", "needs", "start_detector", "with_detector"]

DETECTORS = "streamgroup.groupings.detectors"


def _known(name: str) -> str:
    if name not in discover.names(DETECTORS):
        raise ValueError(f"there is no detector {name!r}: {discover.suggest(name, discover.names(DETECTORS))}")
    return name


DetectorName = Annotated[str, AfterValidator(_known)]


class HeadParams(GroupingParams):
    """Parameters of groupings that treat hot keys apart: the detector; its own parameters come with it."""

    detector: DetectorName = Field(default="space_saving", description="what tells hot keys from cold ones")

    def cold_choices(self, workers: int) -> int:
        """A key that is not hot has two candidates."""
        return min(2, workers)


@cache
def with_detector(kind: type[GroupingParams], detector: str) -> type[GroupingParams]:
    """Give the parameters of a grouping together with those of its detector, checked as one."""
    own: type[GroupingParams] = discover.load(DETECTORS, detector, "detector").Params
    return type("Params", (kind, own), {"__doc__": kind.__doc__, "__module__": kind.__module__})


def start_detector(params: Any, context: Context) -> Any:
    """Start the detector that the parameters name, with its own parameters among them."""
    return discover.load(DETECTORS, params.detector, "detector").start(params, context)


def needs(detector: Any, hook: str, what: str) -> None:
    """Refuse a detector that lacks what a grouping needs of it."""
    if not hasattr(detector, hook):
        name = type(detector).__module__.rpartition(".")[2]
        raise UsageError(f"detector={name} does not tell {what}", "take another, such as detector=space_saving")
