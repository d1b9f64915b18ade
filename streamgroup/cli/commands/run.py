"""`run`: one run inside a real engine."""

import dataclasses
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

import streamgroup as sg
from streamgroup.api.option_types import ReplayKeywords
from streamgroup.base.errors import UsageError
from streamgroup.cli.commands import compare, replay
from streamgroup.cli.commands.replay import print_plan, show
from streamgroup.cli.console import Console
from streamgroup.cli.shared_flags import DriverMemory, SparkConf
from streamgroup.cli.typer_command import utf8_path

__all__ = ["Options", "run"]


@dataclass(frozen=True, kw_only=True)
class Options(replay.Options):
    """The flags of `run`: those of `replay`, and how the engine is used."""

    engine: Annotated[
        Literal["spark", "spark-streaming", "flink"],
        typer.Option("--engine", help="A Spark job in two stages, a Structured Streaming query, or a job of Flink."),
    ] = "spark"
    micro_batch: Annotated[
        int | None,
        typer.Option(
            "--micro-batch", metavar="N", show_default=False,
            help="Tuples of a batch, with spark-streaming (default: 1000).",
        ),
    ] = None  # fmt: skip
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            "--checkpoint", metavar="DIR", show_default=False, callback=utf8_path,
            help="Keep the state of a streaming run there; if it is there already, go on with the run.",
        ),
    ] = None  # fmt: skip
    service_mode: Annotated[
        Literal["sleep", "spin"],
        typer.Option("--service-mode", help="How a worker spends a service: asleep, or keeping a core busy."),
    ] = "sleep"
    master: Annotated[
        str | None,
        typer.Option(
            "--master", metavar="URL", show_default=False,
            help="Spark master (default: local[N], with a slot for each worker).",
        ),
    ] = None  # fmt: skip
    flink_python: Annotated[
        str | None,
        typer.Option(
            "--flink-python", metavar="PATH", show_default=False,
            help="A Python that has PyFlink (default: that of .flink, which scripts/flink-environment makes).",
        ),
    ] = None  # fmt: skip
    spark_conf: SparkConf = ()  # type: ignore[assignment]
    driver_memory: DriverMemory = None
    log: Annotated[bool, typer.Option("--log/--no-log", help="Write the assignment log too, if there is -o.")] = True
    against_replay: Annotated[
        bool,
        typer.Option("--against-replay", help="Replay it too, and compare: predicted, measured, error."),
    ] = False
    fail_on: Annotated[
        list[str],
        typer.Option(
            "--fail-on", metavar="CONDITIONS",
            help="With --against-replay: exit 5 where one is true, as in 'makespan_error>3%'.",
        ),
    ] = ()  # type: ignore[assignment]  # fmt: skip


def run(console: Console, options: Options) -> None:
    """Run a trace through one grouping inside Spark or Flink, in real time, and measure what `replay` simulates.

    The tables of the run are those of `replay`; `run.json` has `"clock": "wall"` and what the machine did. With
    --against-replay the same is replayed and compared. What an engine cannot do is refused with the reason.
    """
    if len(options.grouping) != 1:
        raise UsageError("run takes one -g", "run it once for each grouping")
    if options.fail_on and not options.against_replay:
        raise UsageError("--fail-on judges a comparison", "add --against-replay")
    _check_conditions(options.fail_on)
    if options.baseline:
        raise UsageError("--baseline runs the same without a change of workers, and an engine has none", "leave it out")
    given = {name: getattr(options, name) for name in ReplayKeywords.__annotations__}
    where: dict[str, Any] = {
        "master": options.master,
        "spark_conf": options.spark_conf,
        "driver_memory": options.driver_memory,
        "flink_python": options.flink_python,
    }
    if options.dry_run:
        _check(options, given)
        # The log is on by default, and here nothing is written.
        print_plan(console, dataclasses.replace(options, log=options.log and options.output is not None), given)
        return
    with tempfile.TemporaryDirectory(prefix="streamgroup-") as scratch:
        output = options.output
        if output is None and options.against_replay:
            output = Path(scratch) / "measured"
        with console.bar("tasks") as bar:
            found = sg.run(
                options.trace, options.grouping[0], options.workers, output=output, log=options.log,
                overwrite=options.overwrite, progress=bar, engine=options.engine, service_mode=options.service_mode,
                micro_batch=options.micro_batch, checkpoint=options.checkpoint, **where, **given,
            )  # fmt: skip
        _describe(console, found)
        if not options.against_replay:
            show(console, options, found)
            return
        assert output is not None
        predicted = Path(scratch) / "predicted"
        given["engine_model"] = _model(found)
        with console.bar("tuples") as bar:
            sg.replay(
                options.trace, options.grouping[0], options.workers, output=predicted, log=True, progress=bar, **given
            )
        if options.output is not None:
            console.note(f"wrote {options.output}")
        asked = compare.Options(old=predicted, new=output, fail_on=options.fail_on, form=options.form)
        compare.run(console, dataclasses.replace(asked, json=options.json))


def _check_conditions(texts: list[str]) -> None:
    """Refuse a bad condition before anything runs: a run takes as long as the stream did."""
    if texts:
        from streamgroup.study.summary.compare_runs import check_conditions

        for text in texts:
            check_conditions(text)


def _check(options: Options, given: dict[str, Any]) -> None:
    from streamgroup.api.make_options import made_options
    from streamgroup.engine_runs.engine_options import engine_options
    from streamgroup.engine_runs.run_on_engine import check_run

    engine = engine_options(options.engine, options.service_mode, vars(options))
    check_run(options.trace, made_options(options.grouping[0], options.workers, given), engine)


def _model(found: sg.Run) -> str | None:
    """Return the engine model of the replay that a run is compared with: batches cost what they did on average."""
    engine = found.record["engine"]
    if "micro_batch" not in engine:
        return None
    return f"micro-batch={engine['micro_batch']},overhead={_us(engine['overhead_mean_ms'])}"


def _us(ms: float) -> str:
    return f"{max(0, round(1000 * ms))}us"


def _describe(console: Console, found: sg.Run) -> None:
    machine = found.record["engine"]["machine"]
    console.note(
        f"service: {machine['service_measured_ms']:.4g} ms on average, {machine['service_asked_ms']:.4g} ms were asked "
        f"for; wake-ups late by {machine['lateness_mean_ms']:.3g} ms on average, "
        f"{machine['lateness_p99_ms']:.3g} ms at the 99th percentile"
    )
    engine = found.record["engine"]
    if "micro_batch" in engine:
        console.note(
            f"{engine['batches']} batches of {engine['micro_batch']} tuples; beside its services a batch took "
            f"{engine['overhead_mean_ms']:.4g} ms on average"
        )
    if "feedback" in engine:
        feedback = engine["feedback"]
        console.note(
            f"reports of workers reached the sources {feedback['delay_mean_ms']:.4g} ms after the finish on average, "
            f"{feedback['delay_max_ms']:.4g} ms at most; in a replay they are as late with --control-delay "
            f"{_us(feedback['delay_mean_ms'])}"
        )
