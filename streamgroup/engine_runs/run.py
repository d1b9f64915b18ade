"""One run inside an engine, and its run directory: the tables of a replay, measured instead of simulated."""

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from streamgroup.base.errors import RunError
from streamgroup.base.progress import Progress, Silent
from streamgroup.base.storage.places import Place
from streamgroup.base.storage.staging import staged_directory
from streamgroup.engine_runs.columns import READ
from streamgroup.engine_runs.machine import machine_of
from streamgroup.engine_runs.refusals import MODES, refuse
from streamgroup.replay.account_measured import Measured, Sent, account_measured
from streamgroup.replay.one_run import Run
from streamgroup.replay.run import prepared
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.replay.scenario.plan import make_plan
from streamgroup.spark.options import SparkOptions
from streamgroup.study.read_run import MARKER
from streamgroup.study.replay_run import LOG, RunResult, checked, result_of, write_run
from streamgroup.traces.trace import Trace

if TYPE_CHECKING:
    from streamgroup.spark.session import Session

__all__ = ["EngineOptions", "check_run", "run_on_engine"]

I64 = NDArray[np.int64]
# From when the last worker is ready to the first arrival.
_LEAD_NS = 3_000_000_000


@dataclass(frozen=True)
class EngineOptions:
    """How a run uses an engine: workers `sleep` or `spin` as long as a service takes."""

    spark: SparkOptions | None = None
    service_mode: str = "sleep"
    lead_ns: int = _LEAD_NS


def run_on_engine(
    trace_path: str | Path | Place,
    options: ReplayOptions,
    engine: EngineOptions,
    output: Path | None = None,
    *,
    log: bool = True,
    overwrite: bool = False,
    progress: Progress | None = None,
    session: "Session | None" = None,
) -> RunResult:
    """Run a trace through a grouping inside Spark and write the run to `output`.

    See `study.replay_run.run_to_directory`. `session` is one that is open. UsageError for what an engine cannot do,
    RunError when a worker is lost or the result of the application is wrong, EnvironmentFault when Spark does not
    start.
    """
    trace, options = checked(trace_path, options, log=False)
    run = prepared(trace, options)
    refuse(run.plan, engine.service_mode)
    progress = progress or Silent()
    table = _tuples(run)
    source = table["source"].to_numpy()
    if output is None:
        return _result(run, engine, source, _served(run, engine, table, progress, session), None)
    with staged_directory(output, overwrite=overwrite, marker=MARKER) as directory:
        served = _served(run, engine, table, progress, session)
        result = _result(run, engine, source, served, directory / LOG if log else None)
        write_run(directory, result.tables, result.record)
    return dataclasses.replace(result, output=output)


def check_run(trace_path: str | Path | Place, options: ReplayOptions, service_mode: str) -> None:
    """Raise what `run_on_engine` would, of what shows before anything starts."""
    trace, options = checked(trace_path, options, log=False)
    refuse(make_plan(trace, options), service_mode)


def _tuples(run: Run) -> pa.Table:
    """Read the tuples as the sources get them."""
    keys = pa.array(list(run.trace.all_keys()), pa.binary())
    parts = []
    for ready in run.chunks(None):
        size = len(ready.key)
        seq = np.arange(ready.offset, ready.offset + size)
        source = ready.source if ready.source is not None else (seq % run.plan.options.sources).astype(np.int32)
        cost = pa.nulls(size, pa.float64()) if ready.cost is None else pa.array(ready.cost.astype(np.float64))
        columns = [
            pa.array(seq), pa.array(source), pa.array(ready.key.astype(np.int64)), keys.take(pa.array(ready.key)),
            pa.array(ready.arrival), cost,
        ]  # fmt: skip
        parts.append(pa.table(dict(zip(READ.names, columns, strict=True)), schema=READ))
    return pa.concat_tables(parts)


def _served(
    run: Run, engine: EngineOptions, table: pa.Table, progress: Progress, session: "Session | None"
) -> pa.Table:
    """Run the job, in the session that is given or in one of its own."""
    # What else is imported here takes longer than all checks.
    from streamgroup.engine_runs.on_spark import run_job, with_settings
    from streamgroup.engine_runs.source_task import SourceJob
    from streamgroup.engine_runs.worker_task import WorkerJob
    from streamgroup.spark.session import start_session

    options = run.plan.options
    sources = SourceJob(options, run.service)
    workers = WorkerJob(engine.lead_ns, run.plan.network_delay, spins=engine.service_mode == MODES[1])
    if session is not None:
        return run_job(session, table, sources, workers, progress)
    spark = engine.spark or SparkOptions(master=f"local[{max(options.workers, options.sources)}]")
    with start_session(with_settings(spark), progress) as opened:
        return run_job(opened, table, sources, workers, progress)


def _result(run: Run, engine: EngineOptions, source: NDArray[Any], served: pa.Table, log: Path | None) -> RunResult:
    said = [json.loads(text) for text in served["report"].to_pylist() if text is not None]
    sources, workers = ([one for one in said if who in one] for who in ("source", "worker"))
    tuples = served.filter(served["report"].is_null()).sort_by("seq")
    trace, options = run.trace, run.plan.options
    if not np.array_equal(tuples["seq"].to_numpy(), np.arange(trace.tuples)) or len(workers) != options.workers:
        raise RunError(
            f"Spark returned {len(tuples)} of {trace.tuples} tuples, and reports of {len(workers)} of "
            f"{options.workers} workers",
        )
    # Null where the grouping reports no such thing.
    column: dict[str, Any] = {
        name: None if tuples[name].null_count else tuples[name].to_numpy() for name in tuples.column_names[:-1]
    }
    start, finish, entries = column["start"], column["finish"], column["entries"]
    found = Measured(
        column["worker"], start, finish, column["hot"], None if entries is None else _of_all(entries, source)
    )
    sent = Sent(
        max((one["state"] for one in sources), default=0),
        sum(one["messages"] for one in sources),
        sum(one["bytes"] for one in sources),
    )
    machine = machine_of(column["service"], start, finish, column["late"], workers)
    result = result_of(trace, options, account_measured(run, found, sent, log))
    record = {
        **result.record, "clock": "wall",
        "engine": {
            "name": "spark", "service_mode": engine.service_mode, "state": _checked_counts(trace, workers),
            "machine": machine._asdict(),
        },
    }  # fmt: skip
    return dataclasses.replace(result, record=record)


def _of_all(entries: I64, source: NDArray[Any]) -> I64:
    """Return the size of all detectors at each tuple, from that of its source's."""
    change = entries.copy()
    for each in np.unique(source):
        mine = np.flatnonzero(source == each)
        change[mine[1:]] -= entries[mine[:-1]]
    return np.cumsum(change)


def _checked_counts(trace: Trace, workers: list[Mapping[str, Any]]) -> dict[str, Any]:
    """Compare the counts by key of all workers with the trace's own; RunError where they differ."""
    counts = np.zeros(trace.keys, dtype=np.int64)
    entries = 0
    for worker in workers:
        for key, count in worker["state"]:
            counts[key] += count
        entries += len(worker["state"])
    if not np.array_equal(counts, trace.dictionary().count):
        raise RunError("the workers counted other tuples than the trace has", "this is a defect: please report it")
    return {"entries": entries, "equals_direct": True}
