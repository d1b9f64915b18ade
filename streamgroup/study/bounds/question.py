"""What is asked: of which stream, for how many workers and sources, and of which grouping and run, if any."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from streamgroup.replay.scenario.grouping_selection import Selection, select
from streamgroup.study.bounds.key_frequencies import KeyStream

if TYPE_CHECKING:
    from streamgroup.study.bounds.measured_run import MeasuredRun

__all__ = ["Question"]


@dataclass(frozen=True, eq=False)
class Question:
    """A question; without a `selection` it is about every grouping, each with its defaults.

    `sources` is None where each grouping has its own default.
    """

    stream: KeyStream
    workers: int
    sources: int | None = None
    selection: Selection | None = None
    run: "MeasuredRun | None" = None

    def concerns(self, *groupings: str) -> bool:
        """Return whether one of these groupings is asked for."""
        return self.selection is None or self.selection.name in groupings

    def params(self, grouping: str) -> Any:
        """Return the parameters asked for, or the defaults."""
        if self.selection is not None and self.selection.name == grouping:
            return self.selection.params
        return select(grouping).params

    def sources_of(self, grouping: str) -> int:
        """Return the number of sources, by default the grouping's own."""
        return int(self.params(grouping).default_sources()) if self.sources is None else self.sources

    @property
    def choices(self) -> int | None:
        """Return how many workers each key has under the grouping asked for; None where it is not one number."""
        return None if self.selection is None else self.selection.choices_per_key(self.workers)

    def measured(self, metric: str, *groupings: str) -> Any:
        """Return a metric of the run if it is a run of one of these groupings (none named: of any); else None."""
        run = self.run
        if run is None or (groupings and run.selection.name not in groupings):
            return None
        return run.metric(metric)
