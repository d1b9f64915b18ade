"""The query: source, sources' groupings, workers, sink; and its driver, which hands it batches as they arrive."""

import contextlib
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from streamgroup.base.errors import RunError, StreamgroupError
from streamgroup.base.progress import Progress, Silent
from streamgroup.base.storage.atomic_files import write_files
from streamgroup.engine_runs.on_spark import explained
from streamgroup.engine_runs.source_task import SourceJob
from streamgroup.engine_runs.spark_streaming.checkpoint import WARM_UPS, Checkpoint, file_name
from streamgroup.engine_runs.spark_streaming.one_worker_per_partition import partition_labels
from streamgroup.engine_runs.spark_streaming.query_columns import CHOSEN, READ_TYPES, SERVED
from streamgroup.engine_runs.spark_streaming.source_operator import SourceOperator
from streamgroup.engine_runs.spark_streaming.worker_operator import COUNTS, WorkerOperator
from streamgroup.engine_runs.unsupported_options import STREAMING, check_slots
from streamgroup.engine_runs.worker_task import WorkerJob
from streamgroup.spark.executor_package import ensure_package
from streamgroup.spark.session import Session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

__all__ = ["Streamed", "run_query"]

_ROCKS = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
# Spark waits 10 s for the process that names the operators' state when a query starts. A busy machine takes longer: the
# query is started so often in all.
_TOO_BUSY, _STARTS = "Python worker failed to connect back", 5
# A batch writes what changed in the state, not all of it.
_CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
# Seconds between two looks at arrivals and commits, and at whether the query still runs.
_POLL, _ALIVE = 0.005, 0.2
# Seconds that Spark is given to report on the last batch.
_REPORT = 10
# From the last warm-up to the first arrival.
_LEAD_NS = 1_000_000_000


class Streamed(NamedTuple):
    """What the query left: `served` has the columns `SERVED`, `state` a row for each key that a worker met.

    `state_rows` is Spark's own number of rows in the state of all workers, None if no batch ran in this process.
    """

    served: pa.Table
    state: pa.Table
    state_rows: int | None


def run_query(
    session: Session, checkpoint: Checkpoint, sources: SourceJob, workers: WorkerJob, progress: Progress
) -> Streamed:
    """Run the query until all batches are committed, from where its checkpoint says.

    UsageError where the workers cannot run at once, RunError when one of them is lost.
    """
    number = sources.options.workers
    check_slots(number, session.parallelism, session.master, STREAMING)
    ensure_package(session, progress)
    ended = threading.Event()

    def job() -> Streamed:
        with _settings(session.spark, number):
            rows = None
            for left in reversed(range(_STARTS)):
                if checkpoint.is_complete:
                    break
                query = _start(session.spark, checkpoint, sources, workers)
                try:
                    rows = _drive(query, checkpoint, progress, ended)
                except Exception as error:
                    if not left or _TOO_BUSY not in f"{error}":
                        raise
                finally:
                    with contextlib.suppress(Exception):
                        query.stop()
            return _left(session.spark, checkpoint, rows)

    progress.start(checkpoint.batches, "batches on Spark")
    progress.advance(len(checkpoint.commits))
    try:
        return session.run(job, Silent(), 1, "")
    except StreamgroupError as error:
        raise explained(error) from error
    finally:
        ended.set()


@contextlib.contextmanager
def _settings(spark: "SparkSession", workers: int) -> Iterator[None]:
    """Set what the query cannot do without, and what makes it faster if nothing else is set; restore it."""
    needed = {
        "spark.sql.shuffle.partitions": str(workers),
        "spark.sql.streaming.stateStore.providerClass": _ROCKS,
        "spark.sql.adaptive.enabled": "false",
        # It would be one of the batches.
        "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    }
    if spark.conf.get(_CHANGELOG, None) is None:
        needed[_CHANGELOG] = "true"
    before: dict[str, str | None] = {name: spark.conf.get(name, None) for name in needed}
    for name, value in needed.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        with contextlib.suppress(Exception):
            for name, earlier in before.items():
                if earlier is None:
                    spark.conf.unset(name)
                else:
                    spark.conf.set(name, earlier)


def _start(spark: "SparkSession", checkpoint: Checkpoint, sources: SourceJob, workers: WorkerJob) -> "StreamingQuery":
    path = checkpoint.path
    labels = partition_labels(sources.options.workers, sources.options.workers)
    read = spark.readStream.schema(READ_TYPES).option("maxFilesPerTrigger", 1).parquet(str(path / "input"))
    chosen = read.groupBy("label").transformWithStateInPandas(SourceOperator(sources, labels), CHOSEN, "append", "none")
    served = chosen.groupBy("label").transformWithStateInPandas(WorkerOperator(workers), SERVED, "append", "none")
    sink = served.writeStream.outputMode("append").option("checkpointLocation", str(path / "spark"))
    if checkpoint.listens:
        return sink.foreachBatch(partial(_keep, path / "output")).start()
    return sink.format("parquet").option("path", str(path / "output")).start()


def _keep(output: Path, frame: "DataFrame", batch: int) -> None:
    """Write what workers return of a batch, on the driver, in place of what an earlier attempt left of it."""
    # Every action on the frame would serve the batch once more.
    served = frame.toArrow()
    buffer = pa.BufferOutputStream()
    pq.write_table(served, buffer)
    write_files({output / file_name(batch): buffer.getvalue().to_pybytes()}, overwrite=True)


def _drive(query: "StreamingQuery", checkpoint: Checkpoint, progress: Progress, ended: threading.Event) -> int | None:
    """Deliver batches when their tuples have arrived, until all are committed; return the rows of workers' state."""
    checkpoint.start()
    looked = time.monotonic()
    while not checkpoint.is_complete:
        if ended.is_set():
            raise RunError("the query was interrupted")
        progress.advance(checkpoint.look())
        now = time.time_ns()
        if checkpoint.origin_ns is None and len(checkpoint.commits) >= WARM_UPS:
            checkpoint.begin(now + _LEAD_NS)
        while (due := checkpoint.due()) is not None and due <= now:
            checkpoint.deliver()
        if time.monotonic() - looked > _ALIVE:
            looked = time.monotonic()
            if not query.isActive:
                raise query.exception() or RunError("Spark stopped the query")
        time.sleep(_POLL)
    until = time.monotonic() + _REPORT
    while time.monotonic() < until:
        last: Any = query.lastProgress
        if last is not None and last["batchId"] == checkpoint.batches - 1:
            # From the sink upwards: the workers come first.
            return int(last["stateOperators"][0]["numRowsTotal"])
        time.sleep(0.05)
    return None


def _left(spark: "SparkSession", checkpoint: Checkpoint, rows: int | None) -> Streamed:
    """Read what the sink and the state of the workers hold."""
    path = checkpoint.path
    if checkpoint.listens:
        # Without a file that a process left behind which was killed while it wrote.
        files = sorted((path / "output").glob("batch-*.parquet"))
        served = pa.concat_tables(pq.read_table(one, partitioning=None) for one in files)
    else:
        served = spark.read.schema(SERVED).parquet(str(path / "output")).toArrow()
    operators = spark.read.format("state-metadata").load(str(path / "spark")).toArrow().to_pylist()
    mine = next(one["operatorId"] for one in operators if f'"{COUNTS}"' in (one.get("operatorProperties") or ""))
    state = (
        spark.read.format("statestore").option("operatorId", mine).option("stateVarName", COUNTS)
        .load(str(path / "spark"))
        .selectExpr("partition_id AS worker", "user_map_key.key_id AS key_id", "user_map_value.count AS count")
    )  # fmt: skip
    return Streamed(served, state.toArrow(), rows)
