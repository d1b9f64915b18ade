"""`bounds`: what theory says of a stream before anything is replayed."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

import streamgroup as sg
from streamgroup.base.output_formats import PEOPLE, wrapped
from streamgroup.cli.console import Console
from streamgroup.cli.reader_and_generator_commands import complete_grouping
from streamgroup.cli.typer_command import Formatted

__all__ = ["Options", "run"]


@dataclass(frozen=True, kw_only=True)
class Options(Formatted):
    """The flags of `bounds`."""

    stream: Annotated[
        str,
        typer.Argument(metavar="TRACE|LAW", help="A trace, or zipf:z=1,keys=10000,tuples=1e7.", show_default=False),
    ]
    workers: Annotated[
        int | None, typer.Option("--workers", "-n", help="Number of workers; a run has its own.", show_default=False)
    ] = None
    grouping: Annotated[
        str | None,
        typer.Option(
            "--grouping", "-g", metavar="GROUPING", autocompletion=complete_grouping, show_default=False,
            help="Only what concerns this one, with its parameters, as in greedy_d:d=3.",
        ),
    ] = None  # fmt: skip
    run: Annotated[
        Path | None,
        typer.Option("--run", metavar="RUN", help="A run of the stream: what it measured, and a verdict."),
    ] = None
    sources: Annotated[
        int | None, typer.Option("--sources", help="Number of sources (default: the grouping's own, as in replay).")
    ] = None


def run(console: Console, options: Options) -> None:
    """State what theory says of a stream from its key counts alone: floors of imbalance, choices, memory, replicas.

    A statement a row, with its value and its source in the papers. With --run also what was measured, and whether the
    statement holds. Nothing is replayed.
    """
    found = sg.bounds(
        options.stream, options.workers, grouping=options.grouping, run=options.run, sources=options.sources
    )
    rows = found.to_json()
    if console.form not in PEOPLE:
        console.rows(rows)
        return
    shown = ["value", "unit", "measured", "verdict"] if options.run is not None else ["value", "unit"]
    console.rows(rows, ["name", *shown, "formula", "source"])
    notes = [f"{row['name']}: {row['note']}" for row in rows if row["note"]]
    if notes:
        console.text("")
        for note in notes:
            console.text(wrapped(note, console.form))
