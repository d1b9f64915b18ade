"""`advise`: recommends a grouping for a trace and a number of workers."""

from dataclasses import dataclass
from typing import Annotated

import typer

import streamgroup as sg
from streamgroup.api.option_types import AdviseKeywords
from streamgroup.base.errors import GateError
from streamgroup.base.output_formats import PEOPLE
from streamgroup.cli.commands.replay import as_replay
from streamgroup.cli.console import Console
from streamgroup.cli.reader_and_generator_commands import complete_grouping
from streamgroup.cli.replay_flags import DEFAULTS, Conditions
from streamgroup.cli.shared_flags import Trace

__all__ = ["Options", "run"]


@dataclass(frozen=True, kw_only=True)
class Options(Conditions):
    """The flags of `advise`."""

    trace: Trace
    workers: Annotated[
        int | None,
        typer.Option(
            "--workers", "-n", help="Number of workers (default: as many as --max-p99 needs).", show_default=False
        ),
    ] = None
    max_p99: Annotated[
        float | None,
        typer.Option("--max-p99", metavar="MS", help="The 99th percentile of the latency may be this, at any time."),
    ] = None
    max_replication: Annotated[
        float | None,
        typer.Option("--max-replication", metavar="X", help="Upper bound of state entries a key, on average."),
    ] = None
    grouping: Annotated[
        list[str],
        typer.Option(
            "--grouping", "-g", metavar="GROUPING", autocompletion=complete_grouping,
            help="Ask this one, too, besides the usual ones. Can be repeated.",
        ),
    ] = ()  # type: ignore[assignment]  # fmt: skip
    fail: Annotated[bool, typer.Option("--fail", help="Exit 5 where the recommended one misses a target.")] = False
    budget: Annotated[
        float, typer.Option("--budget", metavar="S", help="Seconds on two cores; longer traces are sampled.")
    ] = 60.0
    jobs: Annotated[
        int | None, typer.Option("--jobs", min=1, help="Threads (default: the cores there are).", show_default=False)
    ] = None
    sources: Annotated[int, typer.Option("--sources", help="Number of sources, the same for every grouping.")] = (
        DEFAULTS.sources
    )
    arrivals: Annotated[str, as_replay("arrivals")] = DEFAULTS.arrivals
    capacity: Annotated[str | None, as_replay("capacity")] = None
    seed: Annotated[int, as_replay("seed")] = DEFAULTS.seed
    aggregate_every: Annotated[str | None, as_replay("aggregate_every")] = None
    aggregators: Annotated[int | None, as_replay("aggregators")] = None
    aggregator_service: Annotated[str | None, as_replay("aggregator_service")] = None


def run(console: Console, options: Options) -> None:
    """Recommend a grouping for a trace: why, the next best, the hot keys, the least workers, what kg would cost.

    Replays the trace, or segments of it, through the groupings that make sense for it, in bounded time. Without a
    known service time or with a trace of one instant the workers are taken to be 80 % busy.
    """
    from streamgroup.study.advise.advice_text import as_text

    asked = {name: getattr(options, name) for name in AdviseKeywords.__annotations__}
    with console.bar("tuples") as bar:
        advice = sg.advise(
            options.trace, options.workers, max_p99=options.max_p99, max_replication=options.max_replication,
            grouping=options.grouping, budget=options.budget, jobs=options.jobs, progress=bar, **asked,
        )  # fmt: skip
    for line in advice.warnings:
        console.warn(line)
    if console.form in PEOPLE:
        console.write(as_text(advice, **console.layout))
    else:
        console.record(advice.to_json())
    if options.fail and not advice.met:
        raise GateError(f"{advice.recommended} misses the target", "allow more, or take more workers")
