"""Frames as DataFrames of Spark, and their runner."""

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pyarrow as pa

from streamgroup.base.progress import Progress
from streamgroup.ingest.pipeline.arrow_blocks import BLOCKS, Row, Step, ddl, rows_of
from streamgroup.ingest.runners.protocol import Frame, T
from streamgroup.ingest.runners.stop_threads import Stopped
from streamgroup.spark.errors_from_tasks import errors_as_text
from streamgroup.spark.session import Session
from streamgroup.spark.uninterrupted_calls import complete

__all__ = ["SparkRunner"]

# Settings of Spark SQL that the steps need: a row of blocks is megabytes, so each is a batch of its own, and as
# many partitions as a step asks for are what it gets.
_SETTINGS = {
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1",
    "spark.sql.adaptive.enabled": "false",
    # Blocks are compressed already.
    "spark.sql.inMemoryColumnarStorage.compressed": "false",
}
# Seconds that Spark has to drop persisted data.
_CLOSE = 2
# Rows in a batch where the rows are those of a table.
_TABLE_ROWS = 1 << 16


def _run_numbers(step: Callable[[int], Iterator[pa.RecordBatch]], batches: Iterable[pa.RecordBatch]) -> Iterator[Any]:
    for batch in batches:
        for number in batch.column(0).to_pylist():
            yield from step(number)


class SparkFrame:
    """A DataFrame of blocks."""

    def __init__(self, runner: "SparkRunner", frame: Any, *, of_small: bool = False) -> None:
        """Wrap a DataFrame with the columns of `BLOCKS`; `of_small`: it is made from small rows, not from blocks."""
        self._runner = runner
        self._frame = frame
        self._of_small = of_small

    def map(self, step: Step) -> "SparkFrame":
        """Run a step on each partition."""
        return SparkFrame(self._runner, self._frame.mapInArrow(partial(_with_errors, step), ddl(BLOCKS)))

    def exchange(self, partitions: int) -> "SparkFrame":
        """Send each row to the partition that its `to` numbers."""
        return SparkFrame(self._runner, self._frame.repartitionById(partitions, "to"))

    def of(self, *kinds: str) -> "SparkFrame":
        """Keep the rows of some kinds."""
        kept = self._frame.where(self._frame["kind"].isin(*kinds))
        return SparkFrame(self._runner, kept, of_small=self._of_small)

    def union(self, other: Frame) -> "SparkFrame":
        """Put the partitions of another frame after these."""
        assert isinstance(other, SparkFrame)
        return SparkFrame(self._runner, self._frame.unionAll(other._frame))

    def keep(self) -> "SparkFrame":
        """Keep the partitions on the executors' disks."""
        return SparkFrame(self._runner, self._runner.persisted(self._frame), of_small=self._of_small)

    def stats(self, *kinds: str) -> list[Row]:
        """Collect rows of some kinds."""
        with self._runner.batches_of(_TABLE_ROWS if self._of_small else 1):
            return list(rows_of([self.of(*kinds)._frame.toArrow()]))


def _with_errors(step: Step, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    with errors_as_text():
        yield from step(batches)


class SparkRunner:
    """Runs frames as DataFrames of a session; `close` restores its settings."""

    def __init__(self, session: Session, progress: Progress) -> None:
        """Take an open session and where to report progress."""
        self._session = session
        self._progress = progress
        self._kept: list[Any] = []
        # After an interrupt the thread that runs queries goes on: after `close` it must change nothing.
        self._lock = threading.Lock()
        self._closed = False
        own = session.spark.conf.getAll
        self._before = {name: own.get(name) for name in _SETTINGS}
        for name, value in _SETTINGS.items():
            session.spark.conf.set(name, value)

    @property
    def parallelism(self) -> int:
        """Return the number of tasks that run at a time."""
        return self._session.parallelism

    def tasks(self, number: int, step: Callable[[int], Iterator[pa.RecordBatch]]) -> SparkFrame:
        """Make a frame of `number` partitions."""
        numbers = self._session.spark.range(0, number, 1, number)
        made = numbers.mapInArrow(partial(_with_errors, partial(_run_numbers, step)), ddl(BLOCKS))
        return SparkFrame(self, made, of_small=True)

    def source(self, frame: Any, step: Step) -> SparkFrame:
        """Run a step on a DataFrame of any columns, and keep what comes of it.

        It is computed when rows of it are collected, which must be before anything else is made from it.
        """
        read = SparkFrame(self, frame).map(step)
        return SparkFrame(self, read._frame, of_small=True).keep()

    @contextmanager
    def batches_of(self, rows: int) -> Iterator[None]:
        """Set how many rows Spark hands over at a time; it reads the setting when a query begins."""
        self._set(rows)
        try:
            yield
        finally:
            if not self._closed:
                self._set(1)

    def _set(self, rows: int) -> None:
        with self._lock:
            if self._closed:
                raise Stopped
            self._session.spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", str(rows))

    def persisted(self, frame: Any) -> Any:
        """Persist a DataFrame until `close`."""
        from pyspark import StorageLevel

        with self._lock:
            if self._closed:
                raise Stopped
            self._kept.append(frame.persist(StorageLevel.DISK_ONLY))
            return self._kept[-1]

    def run(self, function: Callable[[], T], tasks: int, text: str) -> T:
        """Run a function that computes frames."""
        return self._session.run(function, self._progress, tasks, text)

    def close(self) -> None:
        """Drop persisted data, and restore the settings of Spark; no effect where Spark has stopped."""
        self._closed = True
        complete(self._close, _CLOSE)

    def _close(self) -> None:
        conf = self._session.spark.conf
        with self._lock:
            for name, value in self._before.items():
                if value is None:
                    conf.unset(name)
                else:
                    conf.set(name, value)
        for frame in self._kept:
            frame.unpersist()
