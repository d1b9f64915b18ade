"""A streaming run: its session and checkpoint, and what it measured."""

import contextlib
import dataclasses
import importlib
import itertools
import json
import shutil
import uuid
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from streamgroup.base.errors import EnvironmentFault, RunError
from streamgroup.base.progress import Progress
from streamgroup.engine_runs.engine_outcome import EngineOutcome, check_complete, checked_counts, of_all, sent
from streamgroup.engine_runs.machine_fast_enough import machine_of
from streamgroup.engine_runs.on_spark import with_settings
from streamgroup.engine_runs.source_task import SourceJob
from streamgroup.engine_runs.spark_streaming.batch_times import batches_of
from streamgroup.engine_runs.spark_streaming.checkpoint import WARM_UPS, Checkpoint, belongings, opened
from streamgroup.engine_runs.spark_streaming.query import Streamed, run_query
from streamgroup.engine_runs.spark_streaming.worker_reports import delays
from streamgroup.engine_runs.unsupported_options import MODES
from streamgroup.engine_runs.worker_task import WorkerJob
from streamgroup.replay.account_given_times import Measured
from streamgroup.replay.prepared_run import Run
from streamgroup.spark.session import start_session, terminable

if TYPE_CHECKING:
    from streamgroup.engine_runs.run_on_engine import EngineOptions
    from streamgroup.spark.session import Session

__all__ = ["streamed"]


def streamed(
    run: Run, engine: "EngineOptions", table: pa.Table, progress: Progress, session: "Session | None"
) -> EngineOutcome:
    """Run the query, in the session that is given or in one of its own, from its checkpoint if there is one."""
    assert engine.micro_batch is not None
    _check_protobuf()
    options, listens = run.plan.options, run.grouping.has_feedback
    belongs = belongings(run, engine.service_mode, engine.micro_batch)
    # Reports take the time that they take, and nothing on top of it.
    sources = SourceJob(dataclasses.replace(options, control_delay="0") if listens else options, run.service)
    workers = WorkerJob(0, run.plan.network_delay, spins=engine.service_mode == MODES[1])
    with terminable(), contextlib.ExitStack() as stack:
        checkpoint = None
        if engine.checkpoint is not None:
            # What is wrong with it shows before Spark starts.
            checkpoint = stack.enter_context(
                opened(engine.checkpoint.absolute(), belongs, table, options.workers, listens=listens)
            )
        if session is None:
            session = stack.enter_context(start_session(with_settings(engine.place(options)), progress))
        if checkpoint is None:
            path = session.scratch / f"checkpoint-{uuid.uuid4().hex}"
            stack.callback(shutil.rmtree, path, ignore_errors=True)
            checkpoint = stack.enter_context(opened(path, belongs, table, options.workers, listens=listens))
        left = run_query(session, checkpoint, sources, workers, progress)
        return _outcome(run, engine.micro_batch, table, checkpoint, left)


def _check_protobuf() -> None:
    """Raise EnvironmentFault without the package that PySpark's stateful operators talk to Spark with."""
    try:
        importlib.import_module("google.protobuf")
    except ImportError:
        raise EnvironmentFault(
            "stateful operators of PySpark need protobuf, which is not installed", "pip install 'streamgroup[connect]'"
        ) from None


def _outcome(run: Run, micro_batch: int, table: pa.Table, checkpoint: Checkpoint, left: Streamed) -> EngineOutcome:
    rows = zip(left.served["batch"].to_pylist(), left.served["report"].to_pylist(), strict=True)
    said = [{"batch": batch, **json.loads(text)} for batch, text in rows if text is not None]
    workers = [one for one in said if "worker" in one]
    _check_partitions(workers)
    tuples = left.served.filter(left.served["report"].is_null()).sort_by("seq")
    column: dict[str, Any] = {name: tuples[name].to_numpy() for name in tuples.column_names[:-1]}
    check_complete(column["seq"], run.trace, "Spark")
    assert checkpoint.origin_ns is not None
    arrival, worker, number = table["arrival"].to_numpy(), column["worker"], column["batch"] - WARM_UPS
    if not np.array_equal(number, np.arange(len(number)) // micro_batch):
        raise RunError("Spark cut the stream into other batches than it was given")
    busy = column["finish"] - column["start"]
    commits = np.array([checkpoint.commits[at] for at in range(WARM_UPS, checkpoint.batches)], dtype=np.int64)
    commit = commits - checkpoint.origin_ns
    batches = batches_of(number, arrival, worker, busy, commit)
    # As a replay accounts it: the next stage does not see a tuple before its batch is committed.
    finish = commit[number]
    hot, entries = (None if (column[name] < 0).any() else column[name] for name in ("hot", "entries"))
    found = Measured(
        worker, finish - busy, finish, hot, None if entries is None else of_all(entries, table["source"].to_numpy())
    )
    sources = sorted((one for one in said if "source" in one), key=_batch)
    last = {one["source"]: one for one in sources}
    _check_state(left.state, table["key_id"].to_numpy(), worker)
    held = zip(left.state["key_id"].to_pylist(), left.state["count"].to_pylist(), strict=True)
    state = {**checked_counts(run.trace, held), "spark_rows": left.state_rows}
    began = [[one["begin_ns"] for one in workers if one["batch"] == batch] for batch in np.unique(column["batch"])]
    spread = max(max(times) - min(times) for times in began)
    reports = [{**one, "ready_spread_ns": spread, "behind_ns": 0} for one in workers]
    machine = machine_of(
        column["service"], column["start"] - checkpoint.origin_ns, column["finish"] - checkpoint.origin_ns,
        np.full(len(worker), -1), reports,
    )  # fmt: skip
    more = {**batches.record(micro_batch, run.plan.network_delay), "starts": checkpoint.starts}
    if checkpoint.listens:
        taken = {batch: [one["taken_ns"] for one in found] for batch, found in _by_batch(sources).items()}
        more["feedback"] = delays(column["finish"], column["batch"], taken)
    return EngineOutcome(found, sent(list(last.values()), listens=checkpoint.listens), state, machine, more)


def _check_state(state: pa.Table, key: NDArray[np.int64], worker: NDArray[np.int32]) -> None:
    """Raise RunError where workers hold other counts of keys than they were sent."""
    kept = np.array([state[name].to_numpy() for name in ("worker", "key_id", "count")], dtype=np.int64)
    pairs, counts = np.unique(np.array([worker, key], dtype=np.int64), axis=1, return_counts=True)
    if not np.array_equal(kept[:, np.lexsort(kept[1::-1])], [*pairs, counts]):
        raise RunError("workers hold other counts than they were sent", "this is a defect: please report it")


def _batch(report: dict[str, Any]) -> int:
    return int(report["batch"])


def _by_batch(reports: list[dict[str, Any]]) -> dict[int, list[dict[str, Any]]]:
    return {batch: list(found) for batch, found in itertools.groupby(reports, key=_batch)}


def _check_partitions(workers: list[dict[str, Any]]) -> None:
    """Raise RunError where a worker was not alone in its task."""
    for one in workers:
        if one["worker"] != one["partition"]:
            raise RunError(f"worker {one['worker']} ran in partition {one['partition']}")
