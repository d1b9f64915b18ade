"""One run inside an engine, and its run directory: the tables of a replay, measured instead of simulated."""

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from streamgroup.base.errors import RunError
from streamgroup.base.progress import Progress, Silent
from streamgroup.base.storage.atomic_local_directories import staged_directory
from streamgroup.base.storage.storage_path import StoragePath
from streamgroup.engine_runs.engine_options import EngineOptions
from streamgroup.engine_runs.engine_outcome import (
    EngineOutcome,
    check_complete,
    checked_counts,
    of_all,
    out_of_order,
    sent,
)
from streamgroup.engine_runs.flink.find_python import FlinkPlace, find_flink
from streamgroup.engine_runs.machine_fast_enough import machine_of
from streamgroup.engine_runs.tuple_columns import READ
from streamgroup.engine_runs.unsupported_options import MODES, refuse
from streamgroup.replay.account_given_times import Measured, account_measured
from streamgroup.replay.prepared_run import Run
from streamgroup.replay.replay_trace import prepared
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.replay.scenario.plan import make_plan
from streamgroup.study.read_run import MARKER
from streamgroup.study.replay_run import LOG, RunResult, checked, result_of, write_run
from streamgroup.traces.trace import Trace

if TYPE_CHECKING:
    from streamgroup.spark.session import Session

__all__ = ["EngineOptions", "check_run", "run_on_engine"]


def run_on_engine(
    trace_path: str | Path | StoragePath,
    options: ReplayOptions,
    engine: EngineOptions,
    output: Path | None = None,
    *,
    log: bool = True,
    overwrite: bool = False,
    progress: Progress | None = None,
    session: "Session | None" = None,
) -> RunResult:
    """Run a trace through a grouping inside an engine and write the run to `output`.

    See `study.replay_run.run_to_directory`. `session` is one of Spark that is open. UsageError for what an engine
    cannot do, RunError when a worker is lost or the result of the application is wrong, EnvironmentFault when the
    engine does not start.
    """
    trace, options = checked(trace_path, options, log=False)
    run = prepared(trace, options)
    refuse(run.plan, engine.service_mode, engine.form, one_batch=_is_one_batch(trace, engine))
    if engine.flink is not None:
        find_flink(engine.flink)
    progress = progress or Silent()
    table = _tuples(run)
    job = _one_job if engine.micro_batch is None else _streaming_job
    if output is None:
        return _result(run, engine, job(run, engine, table, progress, session), None)
    with staged_directory(output, overwrite=overwrite, marker=MARKER) as directory:
        result = _result(run, engine, job(run, engine, table, progress, session), directory / LOG if log else None)
        write_run(directory, result.tables, result.record)
    return dataclasses.replace(result, output=output)


def check_run(trace_path: str | Path | StoragePath, options: ReplayOptions, engine: EngineOptions) -> None:
    """Raise what `run_on_engine` would, of what shows before anything starts."""
    trace, options = checked(trace_path, options, log=False)
    one_batch = _is_one_batch(trace, engine)
    refuse(make_plan(trace, options), engine.service_mode, engine.form, one_batch=one_batch)


def _is_one_batch(trace: Trace, engine: EngineOptions) -> bool:
    return engine.micro_batch is not None and trace.tuples <= engine.micro_batch


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


def _streaming_job(
    run: Run, engine: EngineOptions, table: pa.Table, progress: Progress, session: "Session | None"
) -> EngineOutcome:
    from streamgroup.engine_runs.spark_streaming.streaming_run import streamed

    return streamed(run, engine, table, progress, session)


def _one_job(
    run: Run, engine: EngineOptions, table: pa.Table, progress: Progress, session: "Session | None"
) -> EngineOutcome:
    """Run the job on Flink, or in two stages on Spark, in the session that is given or in one of its own."""
    # What is imported here takes longer than all checks.
    from streamgroup.engine_runs.source_task import SourceJob
    from streamgroup.engine_runs.worker_task import WorkerJob

    options = run.plan.options
    sources = SourceJob(options, run.service)
    workers = WorkerJob(engine.lead_ns, run.plan.network_delay, spins=engine.service_mode == MODES[1])
    if engine.flink is not None:
        from streamgroup.engine_runs.on_flink import run_job as run_on_flink

        return _outcome(run, engine, table, run_on_flink(engine.flink, table, sources, workers, progress))
    from streamgroup.engine_runs.on_spark import run_job, with_settings
    from streamgroup.spark.session import start_session

    if session is not None:
        return _outcome(run, engine, table, run_job(session, table, sources, workers, progress))
    with start_session(with_settings(engine.place(options)), progress) as opened:
        served = run_job(opened, table, sources, workers, progress)
    return _outcome(run, engine, table, served)


def _outcome(run: Run, engine: EngineOptions, table: pa.Table, served: pa.Table) -> EngineOutcome:
    said = [json.loads(text) for text in served["report"].to_pylist() if text is not None]
    sources, workers = ([one for one in said if who in one] for who in ("source", "worker"))
    tuples = served.filter(served["report"].is_null()).sort_by("seq")
    trace, options = run.trace, run.plan.options
    check_complete(tuples["seq"].to_numpy(), trace, engine.form.engine)
    if len(workers) != options.workers:
        raise RunError(f"{engine.form.engine} returned reports of {len(workers)} of {options.workers} workers")
    # Null where the grouping reports no such thing.
    column: dict[str, Any] = {
        name: None if tuples[name].null_count else tuples[name].to_numpy() for name in tuples.column_names[:-1]
    }
    start, finish, entries = column["start"], column["finish"], column["entries"]
    source, arrival = table["source"].to_numpy(), table["arrival"].to_numpy()
    found = Measured(
        column["worker"], start, finish, column["hot"], None if entries is None else of_all(entries, source)
    )
    state = checked_counts(trace, ((key, count) for worker in workers for key, count in worker["state"]))
    machine = machine_of(column["service"], start, finish, column["late"], workers)
    more = {} if engine.flink is None else _of_flink(engine.flink, sources, out_of_order(found.worker, arrival, start))
    return EngineOutcome(found, sent(sources), state, machine, more)


def _of_flink(flink: FlinkPlace, sources: list[dict[str, Any]], disorder: float) -> dict[str, Any]:
    """Return what else is known of a run on Flink: version, how late its sources sent tuples, how much out of order."""
    late = np.array([at for one in sources for at in one["sent_late_ns"]]) / 1e6
    return {
        "name": f"flink {find_flink(flink)[1]}",
        "sources": {
            "sent_late_mean_ms": float(late.mean()),
            "sent_late_p99_ms": float(np.quantile(late, 0.99)),
            "sent_late_max_ms": float(late.max()),
            "out_of_order": disorder,
        },
    }


def _result(run: Run, engine: EngineOptions, outcome: EngineOutcome, log: Path | None) -> RunResult:
    result = result_of(run.trace, run.plan.options, account_measured(run, outcome.found, outcome.sent, log))
    record = {
        **result.record, "clock": "wall",
        "engine": {
            "name": engine.name, "service_mode": engine.service_mode, "state": outcome.state,
            "machine": outcome.machine._asdict(), **outcome.more,
        },
    }  # fmt: skip
    return dataclasses.replace(result, record=record)
