"""`compare`: runs before and after a change."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

import streamgroup as sg
from streamgroup.base.output_formats import PEOPLE, for_people
from streamgroup.base.storage.atomic_files import check_free, write_files
from streamgroup.cli.commands.plot import picture_files
from streamgroup.cli.commands.summarize import SHOWN, split_names
from streamgroup.cli.console import Console
from streamgroup.cli.typer_command import Formatted, utf8_path

__all__ = ["Options", "run"]

# What people see of a run in an engine beside its replay.
_WITNESSED = (
    "imbalance", "replicas", "replication_factor", "state_entries_max", "makespan_s", "throughput_tps",
    "latency_mean_ms", "latency_p50_ms", "latency_p99_ms", "latency_max_ms", "backlog_max_ms",
)  # fmt: skip
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
    picture: Annotated[
        Path | None,
        typer.Option(
            "--picture", metavar="FILE", callback=utf8_path,
            help="Draw the latency distributions of two runs: FILE.svg or FILE.png, each with FILE.csv beside; without "
            "an ending all three.",
        ),
    ] = None  # fmt: skip
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace existing files.")] = False


def run(console: Console, options: Options) -> None:
    """Compare runs before and after a change: each metric's old and new value and its change.

    Cells are matched by trace and options; those without a partner are named. Two single runs are compared whatever
    their options: of runs with an assignment log it also says whether each tuple went to the same worker. A replay and
    a run in an engine are a prediction and a measurement, and each metric has an error. People see what changed.
    """
    places = _free_places(options)
    people = console.form in PEOPLE
    chosen = split_names("--metrics", options.metrics)
    from streamgroup.study.summary.compare_runs import check_metrics

    check_metrics(chosen)
    found = sg.compare(options.old, options.new)
    broken = [line for condition in options.fail_on for line in found.broken(condition)]
    pictures = _draw(options, places) if places else {}
    rows = found.table.to_dicts()
    shown = [row for row in rows if row["metric"] in (chosen or (SHOWN if people else [row["metric"]]))]
    for note in found.notes:
        console.note(note)
    for warning in found.warnings:
        console.warn(warning)
    if found.witness is not None:
        _show_witness(console, found.witness, chosen)
    elif people:
        changed = [row for row in shown if row["old"] != row["new"]]
        if len(changed) < len(shown):
            console.note(f"{len(shown) - len(changed)} of {len(shown)} values are unchanged")
        console.rows([_for_people(row) for row in changed], [*found.naming, "metric", "old", "new", "change"])
    else:
        console.rows(shown)
    if pictures:
        write_files(pictures, overwrite=options.overwrite)
        for place in pictures:
            console.note(f"wrote {place}")
    for side, cells in (("OLD", found.only_old), ("NEW", found.only_new)):
        for cell in cells:
            console.warn(f"only in {side}: {cell}")
    if broken:
        raise sg.GateError("\n".join(broken), f"--fail-on {' --fail-on '.join(options.fail_on)}")


def _free_places(options: Options) -> dict[str, Path]:
    """Return the files of the picture by ending, none without one; UsageError where they may not be written."""
    if options.picture is None:
        return {}
    # A directory is no name without an ending.
    check_free(options.picture, overwrite=True)
    places = picture_files(options.picture)
    for place in places.values():
        check_free(place, overwrite=options.overwrite)
    return places


def _draw(options: Options, places: Mapping[str, Path]) -> dict[Path, bytes]:
    from streamgroup.report.compare_latency import two_latencies

    makers = two_latencies(options.old, options.new)
    return {place: makers[ending]() for ending, place in places.items()}


def _show_witness(console: Console, witness: Any, chosen: Sequence[str]) -> None:
    """Print what a replay predicts and an engine measured."""
    people = console.form in PEOPLE
    names = chosen or (_WITNESSED if people else ())
    rows = [row for row in witness.table.to_dicts() if not names or row["metric"] in names]
    if people:
        rows = [row for row in rows if row["predicted"] is not None or row["measured"] is not None]
        share = {name: name for name in ("error", "calibrated_error")}
        rows = [{**row, **{name: _percent(row[name]) for name in share}} for row in rows]
    console.note(f"calibrated: every service {witness.factor:.4g} times as long as was asked for, as it was measured")
    if witness.refused is not None:
        console.warn(f"{witness.refused}; times are left out")
    console.rows(rows)


def _percent(share: float | None) -> str | None:
    return None if share is None else f"{'+' * (share > 0)}{for_people(float(f'{100 * share:.3g}'))} %"


def _for_people(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "change": _percent(row["change"])}
