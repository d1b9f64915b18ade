"""The interface of hot-key detectors: the part of a grouping's state that decides whether a tuple's key is hot.

A detector is a module, found by its file name and named by `detector=` of a grouping that has this parameter. It holds

- `Params`, a subclass of `GroupingParams`: its own parameters, which are given in the grouping's text beside the
  grouping's (`d_choices:theta=1/8n,eps=0.001`); the grouping's `start` gets both in one object;
- `start(params, context)`, which returns its state: a `typing.NamedTuple` of arrays and numbers with the hooks below
  and the fields `entries` (int64[1]: what all sources hold) and `held` (int64[sources]: what each source holds). It may
  have `total` (int64[sources]: the tuples of each source so far, of which its estimates are shares), `entry_bytes`
  (int: the nominal size of what `held` counts), `detector_entry_bytes` (int: that of one of `entries`, if it is
  another), `detector_fixed_bytes` (int: what all sources hold beside the entries), `control_messages` and
  `control_bytes` (int64[1]), and `room` (int64[1]) with a method `grown`, as groupings have them.

An entry of a key has 16 bytes, and two cells of a sketch are one entry, so that detectors compare.

Hooks (argument names are fixed; see `groupings.protocol` for what may be done in them):

- `detect(self, source, key, now)`: count a tuple at its source, before anything else is done with it; 0 if its key
  is to be treated as cold, else the estimate of its count, or 1 if it makes none. A detector that forgets estimates a
  share of something else than `total`; it reports that share of `total`. Required.
- `hottest(self, source, estimates)`: for groupings that need the shares of all hot keys: fill `estimates` (int64) with
  those of the source's hot keys, largest first, and return how many there are, `most` (an int field) at most.
- `tick(self, now)`: timers and messages; may do nothing. Required.
- `workers_changed(self, change, context)`: plain Python; returns the new state.
"""

from collections.abc import Callable
from functools import cache
from typing import Annotated, Any, Protocol

from pydantic import AfterValidator, Field

from streamgroup.base import modules_by_name
from streamgroup.base.errors import UsageError
from streamgroup.base.spelling_hint import suggest
from streamgroup.groupings._hash_parameter import HashedParams
from streamgroup.groupings.protocol import Context, Destinations, GroupingParams

__all__ = ["DETECTORS", "Detector", "DetectorName", "HeadParams", "start_detector", "with_detector"]

DETECTORS = "streamgroup.groupings.detectors"
# What a detector may leave out, in words.
_REPORTED = {
    "hottest": "how frequent the hot keys are",
    "most": "how many hot keys there can be",
    "total": "how frequent a key is",
}


class Detector(Protocol):
    """A module that holds a detector."""

    __name__: str
    Params: type[GroupingParams]
    start: Callable[[Any, Any], Any]


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
