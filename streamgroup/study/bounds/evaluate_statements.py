"""Runs `bounds`: all that theory states about a stream, or one statement by its name."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamgroup.base import modules_by_name
from streamgroup.base.errors import UsageError
from streamgroup.base.limits import MOST_WORKERS
from streamgroup.base.spelling_hint import suggest
from streamgroup.base.storage.storage_path import StoragePath
from streamgroup.replay.scenario.grouping_selection import Selection, select
from streamgroup.study.bounds.key_frequencies import open_stream
from streamgroup.study.bounds.question import Question
from streamgroup.study.bounds.statement import Statement

if TYPE_CHECKING:
    from streamgroup.study.bounds.measured_run import MeasuredRun

__all__ = ["Bounds", "bounds"]


@dataclass(frozen=True, eq=False)
class Bounds:
    """The statements on a stream, in a fixed order: `bounds["pkg_floor"].value` is one, by its name.

    The row of each has its name, formula, value, unit, relation, measured value, tolerance, verdict, source and note.
    """

    statements: list[Statement]
    workers: int

    def __getitem__(self, name: str) -> Statement:
        """Return a statement; UsageError for a name that none has."""
        found = {one.name: one for one in self.statements}
        if name not in found:
            raise UsageError(f"there is no statement {name!r}", suggest(name, found))
        return found[name]

    def __iter__(self) -> Iterator[Statement]:
        return iter(self.statements)

    def __len__(self) -> int:
        return len(self.statements)

    def to_json(self) -> list[dict[str, Any]]:
        """Return all rows."""
        return [one.to_json() for one in self.statements]


def bounds(
    stream: str | Path | StoragePath,
    workers: int | None = None,
    *,
    grouping: str | None = None,
    run: Path | None = None,
    sources: int | None = None,
) -> Bounds:
    """Evaluate all statements on a trace or a law, for so many workers and sources; see `sg.bounds`."""
    for name, given in (("workers", workers), ("sources", sources)):
        if given is not None and not 1 <= given <= MOST_WORKERS:
            raise UsageError(f"--{name} {given} is not between 1 and {MOST_WORKERS}")
    selection = None if grouping is None else select(grouping)
    if workers is None and run is None:
        raise UsageError("bounds needs a number of workers", "add -n N, or --run RUN")
    keys = open_stream(stream)
    made = None
    if run is not None:
        # What reads runs takes longer to import than all statements to evaluate.
        from streamgroup.study.bounds.measured_run import measured_part, open_measured

        made = open_measured(run, keys)
        selection = _agreed(run, made, selection, workers, sources)
        workers, sources = made.row["workers"], made.row["sources"]
        keys = measured_part(keys, made)
    assert workers is not None
    question = Question(keys, workers, sources, selection, made)
    return Bounds([one for family in _families() for one in family.statements(question)], workers)


def _families() -> Iterator[Any]:
    for name in modules_by_name.names(modules_by_name.BOUNDS):
        yield modules_by_name.load(modules_by_name.BOUNDS, name, "family of bounds")


def _agreed(
    path: Path, run: "MeasuredRun", selection: Selection | None, workers: int | None, sources: int | None
) -> Selection:
    """Return the grouping of the run; UsageError where something else is asked for."""
    asked = {"workers": workers, "sources": sources}
    if selection is not None:
        asked["grouping"] = selection.text  # type: ignore[assignment]  # compared as it is
    for name, value in asked.items():
        own = run.selection.text if name == "grouping" else run.row[name]
        if value is not None and value != own:
            raise UsageError(f"--{name} {value}: the run {path} has {own}", "leave it out: a run has its own")
    return run.selection
