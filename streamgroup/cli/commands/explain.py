"""`explain`: what the loads of the most loaded workers are made of."""

from dataclasses import dataclass
from typing import Annotated, Any

import typer

import streamgroup as sg
from streamgroup.api.option_types import ExplainKeywords
from streamgroup.base.errors import UsageError
from streamgroup.base.output_formats import PEOPLE
from streamgroup.cli.commands.replay import as_replay
from streamgroup.cli.console import Console
from streamgroup.cli.reader_and_generator_commands import complete_grouping
from streamgroup.cli.replay_flags import DEFAULTS, Conditions

__all__ = ["Options", "run"]


@dataclass(frozen=True, kw_only=True)
class Options(Conditions):
    """The flags of `explain`."""

    trace: Annotated[
        str,
        typer.Argument(metavar="TRACE|RUN", help="A trace, or the directory of a run.", show_default=False),
    ]
    grouping: Annotated[
        list[str],
        typer.Option(
            "--grouping", "-g", metavar="GROUPING", autocompletion=complete_grouping, show_default=False,
            help="Name and parameters, as in flink_keyby:max_parallelism=128, or a file; a run has its own.",
        ),
    ] = ()  # type: ignore[assignment]  # fmt: skip
    workers: Annotated[
        int | None, typer.Option("--workers", "-n", help="Number of workers; a run has its own.", show_default=False)
    ] = None
    top_workers: Annotated[
        int, typer.Option("--top-workers", min=1, help="Workers to take apart, the most loaded first.")
    ] = 3
    top_keys: Annotated[int, typer.Option("--top-keys", min=0, help="Hot keys to name on each worker.")] = 5
    window: Annotated[str, as_replay("window")] = DEFAULTS.window
    warmup: Annotated[str, as_replay("warmup")] = DEFAULTS.warmup
    sources: Annotated[int | None, as_replay("sources")] = None
    arrivals: Annotated[str, as_replay("arrivals")] = DEFAULTS.arrivals
    capacity: Annotated[str | None, as_replay("capacity")] = None
    seed: Annotated[int, as_replay("seed")] = DEFAULTS.seed


# What a run is asked for; all else it has in its record.
_OF_RUN = {"trace", "top_workers", "top_keys", "form", "json"}


def run(console: Console, options: Options) -> None:
    """Explain the load of the most loaded workers: hot keys, collisions of them, key groups, too few keys or drift.

    For the whole trace and its worst window. A grouping that gives each key one worker is counted, not replayed; any
    other is replayed. Prints one verdict and what would help. A run is explained by its record, trace and log.
    """
    from streamgroup.study.explain.explain_loads import is_run
    from streamgroup.study.explain.explain_text import as_text

    given: dict[str, Any] = {}
    if is_run(options.trace):
        if own := console.asked - _OF_RUN:
            name = min(own).replace("_", "-")
            raise UsageError(f"--{name}: a run has its own options", "explain its trace to change them")
    else:
        if len(options.grouping) != 1:
            raise UsageError("explain takes one -g", "add -g NAME; run it once for each grouping")
        if options.workers is None:
            raise UsageError("explain needs a number of workers", "add -n N")
        given = {name: getattr(options, name) for name in ("workers", *ExplainKeywords.__annotations__)}
        given["grouping"] = options.grouping[0]
    with console.bar("tuples") as bar:
        found = sg.explain(options.trace, top_workers=options.top_workers, progress=bar, **given)
        seconds = bar.seconds
    console.detail(f"{found.trace.tuples:,} tuples in {seconds:.2f} s")
    console.note(_HOW[found.how])
    if console.form in PEOPLE:
        console.write(as_text(found, options.top_keys, console.form))
    else:
        console.record(found.to_json())


_HOW = {
    "counted": "counted by key: under this grouping every key has one worker",
    "log": "from the log of the run",
    "replayed": "replayed: under this grouping a key has no one worker",
}
