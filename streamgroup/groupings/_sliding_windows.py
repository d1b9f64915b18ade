"""Shared by groupings that look at what a source sent in a sliding window: parameters, start, changes of workers."""

from typing import Any, Self

import numpy as np
from pydantic import Field, model_validator

from streamgroup.base.limits import MOST_CELLS, fits
from streamgroup.groupings._hash_parameter import HashedParams
from streamgroup.groupings._loads_when_workers_change import carry_loads
from streamgroup.groupings._time_parameters import Period, period_ns
from streamgroup.groupings.protocol import Context, Destinations, WorkersChange
from streamgroup.kernels.counts.sent_in_sliding_window import PAIRS, KeyWindows, make_key_windows, with_counts

__all__ = ["HotKeyParams", "TwoCandidateParams", "begun", "moved"]

# A key at a worker and its slide.
_ENTRY_BYTES = 16
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


class TwoCandidateParams(WindowParams):
    """Parameters of those that split every key over two candidates."""

    def choices_per_key(self, workers: int) -> int:
        """A key has two candidates."""
        return min(2, workers)

    def destinations(self, context: Context) -> Destinations:
        """A key goes to F_1 or F_2."""
        return Destinations(context.candidates(2))


class HotKeyParams(WindowParams):
    """Parameters of those that hash a cold key to one worker, and may send a hot one to any."""

    def cold_choices(self, workers: int) -> int:
        """A cold key goes to F_1."""
        del workers
        return 1

    def destinations(self, context: Context) -> Destinations:
        """A cold key goes to F_1."""
        return Destinations(context.candidates(1), "a hot key may go to any worker")


def begun(params: WindowParams, context: Context, name: str) -> dict[str, Any]:
    """Return the fields that all of them have at the start, with empty windows; UsageError if these are too large."""
    slide = period_ns(params.slide)
    slides = period_ns(params.window) // slide
    _check_size(name, context.sources, slides, context.workers)
    windows = make_key_windows(context.sources, context.live, slides, slide)
    return {
        "windows": windows,
        "room": windows.room,
        "state_entries": np.full(context.sources, context.workers, dtype=np.int64),
        "state_entry_bytes": _ENTRY_BYTES,
    }


def _check_size(name: str, sources: int, slides: int, workers: int) -> None:
    what = f"{name}: {slides} slides of {workers} workers at {sources} sources"
    fits(2 * sources * slides * workers, MOST_CELLS, what, "raise slide, or lower window")


def moved(windows: KeyWindows, change: WorkersChange, context: Context, name: str) -> dict[str, Any]:
    """Return the fields that a change of workers changes: a joiner starts at the smallest counts, in the last slide.

    What was sent to workers that left is still there, and leaves with its slides. UsageError if the windows would be
    too large.
    """
    sources, slides, workers = windows.slide_tuples.shape
    _check_size(name, sources, slides, max(workers, int(change.live[-1]) + 1))
    tuples, distinct = carry_loads(windows.tuples, change), carry_loads(windows.distinct, change)
    joined = np.intersect1d(change.live, np.array(change.joined, dtype=np.int64))
    changed = with_counts(windows, change.live, joined, tuples, distinct)
    return {"windows": changed, "room": changed.room, "state_entries": context.workers + changed.clock[:, PAIRS]}
