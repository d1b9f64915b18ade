"""What the groupings share that look at what a source sent in a sliding window."""

from typing import Self

import numpy as np
from pydantic import Field, model_validator

from streamgroup.base.limits import MOST_CELLS, fits
from streamgroup.groupings._hashed import HashedParams
from streamgroup.groupings._membership import carry_loads
from streamgroup.groupings._times import Period, period_ns
from streamgroup.groupings.protocol import Context, WorkersChange
from streamgroup.kernels.key_windows import KeyWindows, make_key_windows, with_counts

__all__ = ["ENTRY_BYTES", "WindowParams", "begun", "moved"]

# A key at a worker and its slide.
ENTRY_BYTES = 16
_MOST_SLIDES = 1000


class WindowParams(HashedParams):
    """Parameters of groupings that look at what a source sent lately."""

    window: Period = Field(default="10s", description="how far back a source looks: a multiple of slide, as in 10s")
    slide: Period = Field(default="1s", description="time by which the window moves on, as in 1s")

    def seeds_used(self) -> tuple[str, ...]:
        """Candidates move with the hash seed."""
        return ("hash_seed",)

    @model_validator(mode="after")
    def _slides(self) -> Self:
        window, slide = period_ns(self.window), period_ns(self.slide)
        if window % slide or window > _MOST_SLIDES * slide:
            raise ValueError(f"window must be a multiple of slide, 1 to {_MOST_SLIDES} times as long")
        return self


def begun(params: WindowParams, context: Context, name: str) -> KeyWindows:
    """Make empty windows; UsageError if they would be too large."""
    slide = period_ns(params.slide)
    slides = period_ns(params.window) // slide
    _check_size(name, context.sources, slides, context.workers)
    return make_key_windows(context.sources, context.live, slides, slide)


def _check_size(name: str, sources: int, slides: int, workers: int) -> None:
    what = f"{name}: {slides} slides of {workers} workers at {sources} sources"
    fits(2 * sources * slides * workers, MOST_CELLS, what, "raise slide, or lower window")


def moved(windows: KeyWindows, change: WorkersChange, name: str) -> KeyWindows:
    """Return the windows after a change of workers: a joiner starts at the smallest counts, booked in the last slide.

    What was sent to workers that left is still there, and leaves with its slides. UsageError if the windows would be
    too large.
    """
    sources, slides, workers = windows.slide_tuples.shape
    _check_size(name, sources, slides, max(workers, int(change.live[-1]) + 1))
    tuples, distinct = carry_loads(windows.tuples, change), carry_loads(windows.distinct, change)
    joined = np.intersect1d(change.live, np.array(change.joined, dtype=np.int64))
    return with_counts(windows, change.live, joined, tuples, distinct)
