"""The job on Spark: sources choose, tuples are exchanged by worker, and all workers serve at once."""

import sys
from functools import partial

import pyarrow as pa

from streamgroup.base.errors import EnvironmentFault, RunError, StreamgroupError
from streamgroup.base.progress import Progress
from streamgroup.engine_runs.source_task import SourceJob, choose
from streamgroup.engine_runs.tuple_columns import CHOSEN_TYPES
from streamgroup.engine_runs.unsupported_options import check_slots
from streamgroup.engine_runs.worker_task import SCHEMA, WorkerJob, serve
from streamgroup.spark.executor_package import ensure_package
from streamgroup.spark.options import SparkOptions
from streamgroup.spark.session import Session

__all__ = ["explained", "run_job", "with_settings"]

# A stage of workers is not tried again by itself, nor waited for: a cluster with too few slots says so at once. Spark
# must not join the partitions of workers that are sent little.
_SETTINGS = (
    "spark.stage.maxConsecutiveAttempts=1",
    "spark.scheduler.barrier.maxConcurrentTasksCheck.interval=5s",
    "spark.scheduler.barrier.maxConcurrentTasksCheck.maxFailures=2",
    "spark.sql.adaptive.enabled=false",
)
# What Spark says, what it means, and what to do.
_CAUSES: dict[str, tuple[type[StreamgroupError], str, str]] = {
    "Cannot run program": (
        EnvironmentFault, "executors cannot start Python",
        f"they need one at the path of this one: {sys.executable}",
    ),
    "requires more slots than": (
        EnvironmentFault, "the cluster has fewer slots than there are workers",
        "each worker is a task of a barrier stage: use more cores, or fewer workers",
    ),
    "Python worker failed to connect back": (
        EnvironmentFault, "the machine is too busy: Python did not start in the 10 s that Spark waits",
        "run it again when there is less to do",
    ),
    "Python worker exited unexpectedly": (
        RunError, "the Python process of a worker ended: it was killed, or there was too little memory",
        "a run cannot go on without it: run it again, with fewer workers if memory is short",
    ),
}  # fmt: skip


def with_settings(options: SparkOptions) -> SparkOptions:
    """Return options with the settings of such a job; those that were given come last, and win."""
    return options.model_copy(update={"spark_conf": (*_SETTINGS, *options.spark_conf)})


def run_job(session: Session, table: pa.Table, sources: SourceJob, workers: WorkerJob, progress: Progress) -> pa.Table:
    """Send tuples (columns `READ`) through sources and workers; return them with times and reports, in any order.

    UsageError where the workers cannot run at once, RunError when one of them is lost.
    """
    options = sources.options
    check_slots(options.workers, session.parallelism, session.master)
    ensure_package(session, progress)

    def job() -> pa.Table:
        chosen = (
            session.spark.createDataFrame(table)
            .repartitionById(options.sources, "source")
            .mapInArrow(partial(choose, sources), CHOSEN_TYPES)
        )
        served = chosen.repartitionById(options.workers, "worker").mapInArrow(partial(serve, workers), SCHEMA, True)
        return served.toArrow()

    try:
        return session.run(job, progress, options.sources + options.workers, "run on Spark")
    except StreamgroupError as error:
        raise explained(error) from error


def explained(error: StreamgroupError) -> StreamgroupError:
    """Return the error to show for one of a job: with its cause, where that is known."""
    text = f"{error} {error.__cause__}"
    for phrase, (kind, message, hint) in _CAUSES.items():
        if phrase in text:
            return kind(f"{message} ({phrase})", hint)
    return error
