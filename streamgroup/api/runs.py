"""One run: `replay`, and what it gives."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack

from streamgroup.api.option_types import EngineRunKeywords, ReplayKeywords
from streamgroup.base.progress import Progress

if TYPE_CHECKING:
    import polars as pl

    from streamgroup.base.storage.storage_path import StoragePath

__all__ = ["Run", "Tables", "open_run", "replay", "run"]


class Tables:
    """The tables of a run as Polars frames; columns and units are those of the run directory (docs/metrics.md)."""

    def __init__(self, tables: Mapping[str, Any]) -> None:
        self._tables = tables

    def _frame(self, name: str) -> "pl.DataFrame":
        import polars as pl

        frame = pl.from_arrow(self._tables[name])
        assert isinstance(frame, pl.DataFrame)
        return frame

    @cached_property
    def summary(self) -> "pl.DataFrame":
        """One row: every option, then every metric."""
        return self._frame("summary")

    @cached_property
    def windows(self) -> "pl.DataFrame":
        """A row for each window."""
        return self._frame("windows")

    @cached_property
    def workers(self) -> "pl.DataFrame":
        """A row for each worker."""
        return self._frame("workers")

    @cached_property
    def loads(self) -> "pl.DataFrame":
        """A row for each window and worker."""
        return self._frame("loads")

    @cached_property
    def latency(self) -> "pl.DataFrame":
        """The latency histogram."""
        return self._frame("latency")

    @cached_property
    def results(self) -> "pl.DataFrame | None":
        """A row for each window and key, None without an application (`app=`)."""
        return self._frame("results") if "results" in self._tables else None

    @cached_property
    def lag(self) -> "pl.DataFrame":
        """A row for each worker and cell of time: how far it is behind."""
        return self._frame("lag")

    @cached_property
    def keys(self) -> "pl.DataFrame":
        """A row for each of the most frequent keys."""
        return self._frame("keys")

    @cached_property
    def trials(self) -> "pl.DataFrame | None":
        """A row for each trial of `arrivals="max"`; None of a run at a given rate."""
        return self._frame("trials") if "trials" in self._tables else None


@dataclass(frozen=True)
class Run:
    """What a replay gave, in memory.

    `grouping` is the canonical text with all parameters. `options` and `metrics` are by name, None where a metric does
    not exist; `row` has both, as `replay --json` prints them. `record` is the content of `run.json`. `warnings` and
    `notes` are sentences for people. `output` is the run directory, None where none was asked for.
    """

    grouping: str
    options: dict[str, Any]
    metrics: dict[str, Any]
    row: dict[str, Any]
    tables: Tables
    record: dict[str, Any]
    warnings: list[str]
    notes: list[str]
    output: Path | None

    def __repr__(self) -> str:
        trace, workers = self.options["trace"], self.options["workers"]
        return f"<Run: {self.grouping} on {workers} workers of {trace}>"


def replay(
    trace: "str | Path | StoragePath",
    grouping: str | Path,
    workers: int,
    *,
    output: str | Path | None = None,
    log: bool = False,
    overwrite: bool = False,
    baseline: bool = False,
    progress: Progress | None = None,
    **options: Unpack[ReplayKeywords],
) -> Run:
    """Replay a trace through a grouping and measure balance, latency and state.

    `trace` is a directory or URL; `grouping` a name with parameters (`"greedy_d:d=3"`) or a file. The tables are in
    memory; with `output` they are also written to that directory, and with `log` the assignment log. `baseline` also
    runs it without workers that join, leave or crash, for `remapped_replicas`. Other options are the flags of
    `streamgroup replay`. `progress` receives the tuples as they are replayed.

    Raises UsageError for options, DataError for a trace that is not sound or empty.
    """
    from streamgroup.api.make_options import made_options
    from streamgroup.study.replay_run import run_to_directory

    result = run_to_directory(
        trace, made_options(grouping, workers, options), None if output is None else Path(output),
        log=log, overwrite=overwrite, baseline=baseline, progress=progress,
    )  # fmt: skip
    run = _run(result.tables, result.record, result.output)
    return dataclasses.replace(run, warnings=list(result.warnings), notes=list(result.notes))


def run(
    trace: "str | Path | StoragePath",
    grouping: str | Path,
    workers: int,
    *,
    output: str | Path | None = None,
    log: bool = True,
    overwrite: bool = False,
    progress: Progress | None = None,
    engine: Literal["spark", "spark-streaming", "flink"] = "spark",
    service_mode: Literal["sleep", "spin"] = "sleep",
    **options: Unpack[EngineRunKeywords],
) -> Run:
    """Run a trace through a grouping inside an engine, in real time, and measure what `replay` simulates.

    Workers sleep or spin for as long as a service takes, and count by key. Tables and options are those of
    `replay`; `record["clock"]` is `"wall"`, and `record["engine"]` says what the machine did. `master`, `spark_conf`
    and `driver_memory` say where Spark runs, by default on this machine with a slot for each worker. `flink_python` is
    a Python that has PyFlink, by default that of `.flink`.

    The engine `spark-streaming` is a Structured Streaming query; `micro_batch` is the number of tuples of a batch (1000
    by default), and `checkpoint` a directory from which a run goes on that was broken off.

    Raises UsageError for what an engine cannot do, RunError for a lost worker, EnvironmentFault where the engine is
    missing.
    """
    from streamgroup.api.make_options import made_options
    from streamgroup.api.option_texts import spark_values
    from streamgroup.engine_runs.engine_options import engine_options
    from streamgroup.engine_runs.run_on_engine import run_on_engine
    from streamgroup.spark.options import SparkOptions, checked

    beside = ("master", "spark_conf", "driver_memory", "micro_batch", "checkpoint", "flink_python")
    made = made_options(grouping, workers, {name: value for name, value in options.items() if name not in beside})
    where = spark_values(options)
    where.setdefault("master", f"local[{max(made.workers, made.sources)}]")
    used = engine_options(engine, service_mode, options, checked(SparkOptions, where))
    result = run_on_engine(
        trace, made, used,
        None if output is None else Path(output), log=log, overwrite=overwrite, progress=progress,
    )  # fmt: skip
    found = _run(result.tables, result.record, result.output)
    return dataclasses.replace(found, warnings=list(result.warnings), notes=list(result.notes))


def open_run(path: str | Path) -> Run:
    """Read a run directory; UsageError where there is none, DataError for one that is damaged.

    Warnings and notes are those of the replay alone: here there are none.
    """
    from streamgroup.study.read_run import read_tables

    return _run(*read_tables(Path(path)), Path(path))


def _run(tables: Mapping[str, Any], record: dict[str, Any], output: Path | None) -> Run:
    from streamgroup.metrics.metric_names import METRICS
    from streamgroup.study.run_option_columns import OPTION_COLUMNS

    row = tables["summary"].to_pylist()[0]
    options = {name: row[name] for name in OPTION_COLUMNS if name in row}
    metrics = {name: row.get(name) for name in METRICS}
    return Run(row["grouping"], options, metrics, row, Tables(tables), record, [], [], output)
