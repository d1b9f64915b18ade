"""`advise`: recommends a grouping for a trace and a number of workers."""

import dataclasses
import textwrap
import typing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from streamgroup.cli.commands import replay
from streamgroup.cli.console import Console
from streamgroup.cli.plugins import complete_grouping
from streamgroup.cli.replay_flags import DEFAULTS, Conditions
from streamgroup.cli.shared_flags import Trace, Workers

if TYPE_CHECKING:
    from streamgroup.study.advise.run import Advice, Question

__all__ = ["Options", "run"]

_OF_REPLAY = typing.get_type_hints(replay.Options, include_extras=True)
# Columns of the sentences.
_WIDTH = 110


def _as_replay(name: str) -> Any:
    """Return the flag and the help that `replay` has."""
    return _OF_REPLAY[name].__metadata__[0]


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
    sources: Annotated[int, _as_replay("sources")] = DEFAULTS.sources
    arrivals: Annotated[str, _as_replay("arrivals")] = DEFAULTS.arrivals
    capacity: Annotated[str | None, _as_replay("capacity")] = None
    seed: Annotated[int, _as_replay("seed")] = DEFAULTS.seed


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
    width = None if console.form == "markdown" else _WIDTH
    for text in (headline(advice), *(f"- {line}" for line in why(advice))):
        console.text(_wrapped(text, width))
    console.text("")
    console.rows(compared(advice))
    console.text("")
    for text in remarks(advice):
        console.text(_wrapped(text, width))


def _wrapped(text: str, width: int | None) -> str:
    if width is None:
        return text
    # A number and its percent sign stay in one line.
    lines = textwrap.fill(
        text.replace(" %", "\0%"), width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )
    return lines.replace("\0%", " %")
