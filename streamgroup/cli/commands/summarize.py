"""`summarize`: many runs in one table."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

import streamgroup as sg
from streamgroup.base.errors import GateError, UsageError
from streamgroup.base.output_formats import PEOPLE, for_people
from streamgroup.cli.console import Console
from streamgroup.cli.shared_flags import Where
from streamgroup.cli.typer_command import Formatted, utf8_path

__all__ = ["SHOWN", "Options", "run", "split_names"]

Row = dict[str, Any]

# What people see of each run unless they choose.
SHOWN = (
    "peak_to_mean", "imbalance", "replication_factor", "throughput_tps", "latency_p50_ms", "latency_p99_ms",
    "latency_max_ms",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Options(Formatted):
    """The flags of `summarize`."""

    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN|SWEEP...",
            help="Run directories, sweeps, or directories that hold some runs.",
            show_default=False,
            callback=utf8_path,
        ),
    ]
    by: Annotated[
        list[str],
        typer.Option(
            "--by",
            metavar="COLUMNS",
            help="Average over all other options, as in grouping,workers: mean, 95 % interval, least and largest.",
        ),
    ] = ()  # type: ignore[assignment]
    metrics: Annotated[
        list[str], typer.Option("--metrics", metavar="NAMES", help="Metrics to show (people see a few, programs all).")
    ] = ()  # type: ignore[assignment]
    where: Where = None
    relative_to: Annotated[
        str | None, typer.Option("--relative-to", metavar="GROUPING", help="Add ratios to this grouping.")
    ] = None
    fail_on: Annotated[
        list[str],
        typer.Option("--fail-on", metavar="CONDITIONS", help="Exit 5 where one is true, as in peak_to_mean>1.2."),
    ] = ()  # type: ignore[assignment]


def run(console: Console, options: Options) -> None:
    """Read runs and print them as one table: chosen, averaged, compared with a baseline, held to conditions."""
    metrics, by = split_names("--metrics", options.metrics), split_names("--by", options.by)
    frame = sg.load_runs(options.runs)
    people = console.form in PEOPLE
    table = sg.summarize(
        frame,
        by=by,
        metrics=metrics or (SHOWN if people else ()),
        where=options.where,
        relative_to=options.relative_to,
    )
    broken = []
    if options.fail_on:
        judged = sg.summarize(frame, by=by, where=options.where, relative_to=options.relative_to)
        broken = [line for condition in options.fail_on for line in sg.check_gate(judged, condition)]
    rows, columns = table.to_dicts(), table.columns
    if people and by:
        rows, columns = _with_spreads(rows, columns)
    elif people:
        columns = _varying(columns, rows)
    console.rows(rows, columns)
    if table.is_empty() and not frame.is_empty():
        console.warn(f"none of {frame.height} runs meets --where {options.where}")
    if "status" in frame.columns and (count := (frame["status"] != "ok").sum()):
        console.warn(f"{count} of {frame.height} cells failed")
    if broken:
        raise GateError("\n".join(broken), f"--fail-on {' --fail-on '.join(options.fail_on)}")


def _with_spreads(rows: list[Row], columns: list[str]) -> tuple[list[Row], list[str]]:
    """Merge a mean and its spread into one cell, as in `1.2 +-0.1 (1.1..1.3)`; a single run has no spread."""
    from streamgroup.study.summary.averages import SPREAD

    means = [name for name in columns if all(f"{name}{suffix}" in columns for suffix in SPREAD)]
    beside = {f"{name}{suffix}" for name in means for suffix in SPREAD}
    # Where nothing failed, two columns have nothing to say.
    beside |= {name for name in ("failed", "error") if not any(row.get(name) for row in rows)}
    found = [{**row, **{name: _spread(row, name) for name in means}} for row in rows]
    return found, [name for name in columns if name not in beside]


def _spread(row: Row, name: str) -> str | float | None:
    mean, least, largest, half = (row[f"{name}{suffix}"] for suffix in ("", "_min", "_max", "_ci95"))
    if half is None or least == largest:
        return mean  # type: ignore[no-any-return]
    # Two digits of the interval are enough.
    about = for_people(float(f"{half:.1e}"))
    return f"{for_people(mean)} +-{about} ({for_people(least)}..{for_people(largest)})"


def split_names(flag: str, texts: list[str]) -> list[str]:
    """Return the names in texts with commas between them; UsageError for an option that names nothing."""
    found = [piece.strip() for text in texts for piece in text.split(",") if piece.strip()]
    if texts and not found:
        raise UsageError(f"{flag} names nothing", "name columns with commas between them, or leave the flag out")
    return found


def _varying(columns: list[str], rows: list[Row]) -> list[str]:
    """Leave out what is the same in all runs of the options and of what became of them, but never what names a run."""
    from streamgroup.study.run_option_columns import OPTION_COLUMNS

    always = {"trace", "grouping", "workers"}
    if any(row.get("error") is not None for row in rows):
        always |= {"status", "error"}
    return [
        name
        for name in columns
        if name in always
        or name not in {*OPTION_COLUMNS, "schema_version", "status", "error"}
        or len({row[name] for row in rows}) > 1
    ]
