"""`advise`: recommends a grouping for a trace and a number of workers."""

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from streamgroup.cli.commands.replay import as_replay
from streamgroup.cli.console import Console, wrapped
from streamgroup.cli.plugins import complete_grouping
from streamgroup.cli.replay_flags import DEFAULTS, Conditions
from streamgroup.cli.shared_flags import Trace, Workers

if TYPE_CHECKING:
    from streamgroup.study.advise.run import Advice, Question

__all__ = ["Options", "run"]


@dataclass(frozen=True, kw_only=True)
class Options(Conditions):
    """The flags of `advise`."""

    trace: Trace
    workers: Workers
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
    budget: Annotated[
        float, typer.Option("--budget", metavar="S", help="Seconds on two cores; longer traces are sampled.")
    ] = 60.0
    jobs: Annotated[
        int | None, typer.Option("--jobs", min=1, help="Threads (default: the cores there are).", show_default=False)
    ] = None
    sources: Annotated[int, as_replay("sources")] = DEFAULTS.sources
    arrivals: Annotated[str, as_replay("arrivals")] = DEFAULTS.arrivals
    capacity: Annotated[str | None, as_replay("capacity")] = None
    seed: Annotated[int, as_replay("seed")] = DEFAULTS.seed


def run(console: Console, options: Options) -> None:
    """Recommend a grouping for a trace: why, the next best, the hot keys, the least workers, what kg would cost.

    Replays the trace, or segments of it, through the groupings that make sense for it, in bounded time. Without a
    known service time or with a trace of one instant the workers are taken to be 80 % busy.
    """
    from streamgroup.replay.scenario.options import ReplayOptions
    from streamgroup.study.advise.run import Watcher, advise

    known = {field.name for field in dataclasses.fields(ReplayOptions)} - {"grouping"}
    chosen = ReplayOptions("kg", **{name: value for name, value in vars(options).items() if name in known})
    with console.bar("tuples") as bar:
        watcher = Watcher(bar.start, bar.advance, console.note)
        advice = advise(options.trace, chosen, _question(options), watcher)
    for line in advice.warnings:
        console.warn(line)
    _print(console, advice)


def _question(options: Options) -> "Question":
    from streamgroup.study.advise.recommendation import Targets
    from streamgroup.study.advise.run import Question
    from streamgroup.study.sweep.threads import default_jobs

    return Question(
        targets=Targets(options.max_p99, options.max_replication),
        groupings=tuple(options.grouping or ()),
        budget=options.budget,
        jobs=options.jobs or default_jobs(),
    )


def _print(console: Console, advice: "Advice") -> None:
    from streamgroup.study.advise.advice_text import as_json, compared, headline, remarks, why

    if console.form not in ("table", "markdown"):
        console.record(as_json(advice))
        return
    for text in (headline(advice), *(f"- {line}" for line in why(advice))):
        console.text(wrapped(text, console.form))
    console.text("")
    console.rows(compared(advice))
    console.text("")
    for text in remarks(advice):
        console.text(wrapped(text, console.form))
