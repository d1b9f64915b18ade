"""Work as Spark tasks, each for itself."""

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from streamgroup.base.errors import StreamgroupError
from streamgroup.spark import task_pool
from streamgroup.spark.session import Session
from streamgroup.spark.task_pool import run_each
from tests.spark.session_on_cluster import Cluster
from tests.spark.task_pool_work import JOBS, work

ALONE = "the process that ran it was killed or crashed, perhaps for want of memory"


@pytest.mark.spark
def test_what_has_ended_is_given_at_once_and_failures_leave_the_rest_alone(spark: Session) -> None:
    jobs = ["sleep 10", "raise", "kill", "fault", *["echo"] * 5]
    found = list(run_each(spark, work, jobs))
    assert [each.number for each in found].index(0) > 1
    assert sorted(found) == [
        (0, "sleep 10", None),
        (1, None, "ValueError: two lines"),
        (2, None, ALONE),
        (3, None, "the data are not sound"),
        *((number, "echo", None) for number in range(4, 9)),
    ]
    assert list(run_each(spark, work, [])) == []


@pytest.mark.spark
def test_whoever_stops_cancels_what_runs(spark: Session) -> None:
    running = run_each(spark, work, ["echo", *["sleep 300"] * 6])
    assert next(running).number == 0
    begun = time.monotonic()
    running.close()
    assert time.monotonic() - begun < 20
    assert [found.result for found in run_each(spark, work, ["echo"])] == ["echo"]


@pytest.mark.spark
def test_on_a_cluster_lost_tasks_are_tried_again(cluster: Cluster, tmp_path: Path) -> None:
    seen = str(tmp_path / "seen")
    answer = cluster.call("tests.spark.calls_on_cluster:run_jobs", [job.replace("once", seen) for job in JOBS])
    found = sorted(answer, key=lambda each: int(each[0]))
    assert [number for number, _, _ in found] == list(range(len(JOBS)))
    results = {JOBS[number]: (result, error) for number, result, error in found}
    assert results["kill"] == (None, f"{ALONE} (8 attempts)")
    assert results["lose once"] == (f"lose {seen}", None)
    assert results["raise"] == (None, "ValueError: two lines")
    assert results["sleep 1"] == ("sleep 1", None)
    assert results["echo"] == ("echo", None)


class Gone:
    """A session whose JVM has ended."""

    master, log = "gone", None

    @property
    def parallelism(self) -> int:
        raise ConnectionRefusedError("py4j: refused")

    def explain(self, error: BaseException) -> BaseException:
        return StreamgroupError(f"explained: {error}")


def test_without_spark_all_ends() -> None:
    session: Any = Gone()
    with pytest.raises(StreamgroupError, match="explained: py4j: refused"):
        list(run_each(session, work, ["echo"] * 3))


class Full:
    """A session on a cluster that has no core free for a second; its DataFrames are of one row."""

    def __init__(self, log: Path) -> None:
        self.log, self.spark, self.parallelism = log, self, 1

    def addTag(self, tag: str) -> None:  # noqa: N802
        """Take a tag."""

    def range(self, *_: int) -> "Full":
        return self

    def mapInArrow(self, function: Any, schema: str) -> Any:  # noqa: N802
        self.log.write_text("WARN TaskSchedulerImpl: Initial job has not accepted any resources; check your UI")
        time.sleep(1)
        found = pa.Table.from_batches(function(iter([None])))
        return SimpleNamespace(toArrow=lambda: found)


def test_a_cluster_without_executors_is_reported_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_pool, "_PATIENCE", 0.2)
    # A result goes in several rows.
    monkeypatch.setattr(task_pool, "_ROW_BYTES", 3)
    notes: list[str] = []
    session: Any = Full(tmp_path / "log")
    assert [found.result for found in run_each(session, work, ["echo"] * 2, notes.append)] == ["echo"] * 2
    assert [note.partition(":")[0] for note in notes] == ["Spark waits for executors"]


HEAD = "Job aborted due to stage failure: Task 0 in stage 3.0 failed 4 times, most recent failure: Lost task 0.3 "


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            f"{HEAD}(TID 9) (10.0.0.1 executor 1): ExecutorLostFailure (executor 1 exited caused by one of the running "
            "tasks) Reason: Command exited with code 137\nDriver stacktrace:",
            "its executor was lost, perhaps for want of memory: Command exited with code 137 (4 attempts)",
        ),
        (
            f"{HEAD}(TID 9): java.lang.OutOfMemoryError: Java heap space\n\tat x",
            "its executor ran out of memory; give it more with --spark-conf spark.executor.memory=4g (4 attempts)",
        ),
        (
            f"{HEAD}(TID 9): java.io.IOException: No space left on device",
            "the disk is full (No space left on device) (4 attempts)",
        ),
        (
            f"{HEAD}(TID 9): org.apache.spark.api.python.PythonException: Traceback (most recent call last):\n"
            "  File x\nModuleNotFoundError: No module named 'streamgroup'\n\n\tat y",
            "ModuleNotFoundError: No module named 'streamgroup' (4 attempts)",
        ),
    ],
)
def test_why_a_task_failed_is_one_line(text: str, reason: str) -> None:
    assert task_pool._reason(text) == reason
