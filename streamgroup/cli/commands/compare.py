"""`compare`: runs before and after a change."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

import streamgroup as sg
from streamgroup.base.row_formats import PEOPLE, for_people
from streamgroup.cli.command import Formatted, utf8_path
from streamgroup.cli.commands.summarize import SHOWN, split_names
from streamgroup.cli.console import Console

__all__ = ["Options", "run"]

_SIDES = "A run, a sweep, or a directory that holds some runs."


@dataclass(frozen=True, kw_only=True)
class Options(Formatted):
    """The flags of `compare`."""

    old: Annotated[Path, typer.Argument(metavar="OLD", help=_SIDES, show_default=False, callback=utf8_path)]
    new: Annotated[Path, typer.Argument(metavar="NEW", help=_SIDES, show_default=False, callback=utf8_path)]
    metrics: Annotated[
        list[str],
        typer.Option("--metrics", metavar="NAMES", help="Metrics to compare (people see a few, programs all)."),
    ] = ()  # type: ignore[assignment]
    fail_on: Annotated[
        list[str],
        typer.Option("--fail-on", metavar="CHANGES", help="Exit 5 where one is true, as in 'latency_p99_ms>+5%'."),
    ] = ()  # type: ignore[assignment]


def run(console: Console, options: Options) -> None:
    """Compare runs before and after a change: each metric's old and new value and its change.

    Cells are matched by trace and options; those without a partner are named. Two single runs are compared whatever
    their options. People see what changed.
    """
    people = console.form in PEOPLE
    chosen = split_names("--metrics", options.metrics)
    found = sg.compare(options.old, options.new)
    broken = [line for condition in options.fail_on for line in found.broken(condition)]
    rows = found.table.to_dicts()
    shown = [row for row in rows if row["metric"] in (chosen or (SHOWN if people else [row["metric"]]))]
    for note in found.notes:
        console.note(note)
    if people:
        changed = [row for row in shown if row["old"] != row["new"]]
        if len(changed) < len(shown):
            console.note(f"{len(shown) - len(changed)} of {len(shown)} values are unchanged")
        console.rows([_for_people(row) for row in changed], [*found.naming, "metric", "old", "new", "change"])
    else:
        console.rows(shown)
    for side, cells in (("OLD", found.only_old), ("NEW", found.only_new)):
        for cell in cells:
            console.warn(f"only in {side}: {cell}")
    if broken:
        raise sg.GateError("\n".join(broken), f"--fail-on {' --fail-on '.join(options.fail_on)}")


def _for_people(row: dict[str, Any]) -> dict[str, Any]:
    change = row["change"]
    return {
        **row,
        "change": None if change is None else f"{'+' * (change > 0)}{for_people(float(f'{100 * change:.3g}'))} %",
    }
