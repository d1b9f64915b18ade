"""A pool of Spark tasks: each job is a row of a DataFrame of its own, and fails alone.

A row is one partition, and so one task. Each has a query of its own, for its result is needed as soon as it ends, in
any order, and a query that fails takes only its own rows with it: one query of many partitions gives nothing before
its last task has ended, and `toLocalIterator` of Spark Classic runs two tasks at a time, whatever the cluster's size.
One more query is submitted than there are executor cores: Spark takes them in the order of submission, and none of its
cores waits for this process.
"""

import pickle
import queue
import re
import threading
import time
import uuid
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

import pyarrow as pa

from streamgroup.base.errors import StreamgroupError
from streamgroup.spark.explain_failure import cause_in_text, summary_line
from streamgroup.spark.read_driver_log import log_text
from streamgroup.spark.session import Session
from streamgroup.spark.uninterrupted_calls import BackgroundCall, complete

__all__ = ["Finished", "run_each"]

J = TypeVar("J")
R = TypeVar("R")

# A result, or why there is none.
_Outcome = tuple[R | None, str | None]

# Queries beyond the cores, and most at all: each holds a thread here and one in the JVM.
_SPARE = 1
_MAX_QUERIES = 512
# Seconds between two counts of the cores; executors may join while others work.
_COUNT_INTERVAL = 1.0
# Seconds until it is looked up whether there are executors at all, and what Spark's log says if there are none.
_PATIENCE = 20.0
_NO_RESOURCES = "has not accepted any resources"
# Bytes of a result in one row: Spark Connect limits the size of a message.
_ROW_BYTES = 8 << 20
_SCHEMA = pa.schema([("result", pa.binary())])
# Seconds that cancelled queries are given to end, and between two interrupts of them.
_CANCEL = 2.0
_INTERRUPT_INTERVAL = 0.1
# The latest cancellation: one that Spark is slow to take would take queries with it that begin before it is over.
_cancelling: list[BackgroundCall[None]] = []


class Finished(NamedTuple, Generic[R]):
    """A job that ended: its number, and its result or, in one line, why there is none."""

    number: int
    result: R | None
    error: str | None


def run_each(
    session: Session, function: Callable[[J], R], jobs: Sequence[J], note: Callable[[str], None] | None = None
) -> Generator[Finished[R]]:
    """Run a function on each job in a Spark task of its own, and yield each result as soon as it is there.

    The jobs are begun in their order and yielded in the order in which they end. Function, jobs and results are
    pickled; the modules of the function must be installed on the executors. An exception of the function is not tried
    again; a task whose process or executor is lost is, as often as Spark does (`spark.task.maxFailures`). Either way
    that job has an `error`. When Spark itself has stopped, or its master is gone, a StreamgroupError says why. A caller
    that stops before the end closes the iterator, which cancels what runs. `note` is called when Spark waits for
    executors.
    """
    if not jobs:
        return
    for cancelling in _cancelling:
        cancelling.done.wait(_PATIENCE)
    pool = _TaskPool[R](session, partial(_run_job, function), jobs)
    try:
        for number in range(len(jobs)):
            found = pool.get(None if number else note)
            if isinstance(found, BaseException):
                raise session.explain(found) from found
            yield found
    finally:
        pool.close()


def _run_job(function: Callable[[J], R], job: J) -> _Outcome[R]:
    try:
        return function(job), None
    except StreamgroupError as error:
        return None, error.message
    except Exception as error:  # noqa: BLE001 (reported to the caller)
        return None, f"{type(error).__name__}: {' '.join(str(error).split())}"[:500]


def _task(function: Callable[[J], _Outcome[R]], job: J, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Run a job in a task of one row; yields rows with the pieces of the pickled result."""
    for _ in batches:
        content = pickle.dumps(function(job), protocol=5)
        for start in range(0, len(content), _ROW_BYTES):
            yield pa.record_batch([pa.array([content[start : start + _ROW_BYTES]], pa.binary())], schema=_SCHEMA)


class _TaskPool(Generic[R]):
    """The threads that run queries; `results` has what ended, or what ended everything."""

    def __init__(self, session: Session, function: Callable[[Any], _Outcome[R]], jobs: Sequence[Any]) -> None:
        self.results: queue.SimpleQueue[Finished[R] | BaseException] = queue.SimpleQueue()
        self._session, self._function, self._jobs = session, function, jobs
        self._tag = f"streamgroup-{uuid.uuid4().hex}"
        self._waiting = iter(range(len(jobs)))
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._threads: list[BackgroundCall[None]] = []
        self._growing = BackgroundCall(self._grow)

    def get(self, note: Callable[[str], None] | None) -> Finished[R] | BaseException:
        """Wait for what ends next; `note` is called, once, when no executor takes a task."""
        while note is not None:
            try:
                return self.results.get(timeout=_PATIENCE)
            except queue.Empty:
                if _NO_RESOURCES in log_text(self._session.log):
                    note("Spark waits for executors: has the cluster free cores, and memory for spark.executor.memory?")
                    note = None
        return self.results.get()

    def close(self) -> None:
        """Cancel what still runs, and wait a little until it has ended."""
        self._over.set()
        self._growing.done.wait(_CANCEL)
        if not all(thread.done.is_set() for thread in self._threads):
            _cancelling[:] = [BackgroundCall(self._cancel)]
            complete(_cancelling[0].done.wait, _CANCEL)

    def _cancel(self) -> None:
        """Interrupt until all threads have ended: a query may be submitted just after an interrupt."""
        until = time.monotonic() + _PATIENCE
        while not all(thread.done.is_set() for thread in self._threads) and time.monotonic() < until:
            self._session.interrupt(self._tag)
            time.sleep(_INTERRUPT_INTERVAL)

    def _grow(self) -> None:
        """Keep a thread for each executor core, and a few more: these start later, so that the first jobs are first."""
        spare = 0
        while True:
            try:
                wanted = self._session.parallelism + spare
            except Exception as error:  # noqa: BLE001 (Spark is gone; reported to the caller)
                self.results.put(error)
                return
            for _ in range(len(self._threads), min(wanted, len(self._jobs), _MAX_QUERIES)):
                self._threads.append(BackgroundCall(self._work))
            spare = _SPARE
            if self._over.wait(_COUNT_INTERVAL):
                return

    def _next(self) -> int | None:
        with self._lock:
            return None if self._over.is_set() else next(self._waiting, None)

    def _work(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            while (number := self._next()) is not None:
                try:
                    result, error = self._run(self._jobs[number])
                except Exception as failure:  # noqa: BLE001 (reported to the caller)
                    if self._over.is_set():
                        return
                    if _has_stopped(self._session):
                        self._over.set()
                        self.results.put(failure)
                        return
                    result, error = None, _reason(str(failure))
                self.results.put(Finished(number, result, error))

    def _run(self, job: Any) -> _Outcome[R]:
        spark = self._session.spark
        spark.addTag(self._tag)
        row = spark.range(0, 1, 1, 1).mapInArrow(partial(_task, self._function, job), "result binary")
        pieces = row.toArrow()["result"].to_pylist()
        tried: _Outcome[R] = pickle.loads(b"".join(pieces))
        return tried


def _has_stopped(session: Session) -> bool:
    """Report whether Spark is gone, not only a task of it."""
    try:
        return session.count_cores() < 1
    except Exception:  # noqa: BLE001 (of many classes)
        return True


def _reason(text: str) -> str:
    """Find why a task failed in Spark's message on its last attempt."""
    attempts = re.search(r"failed (\d+) times", text)
    often = f" ({attempts[1]} attempts)" if attempts and attempts[1] != "1" else ""
    lost = re.search(r"ExecutorLostFailure \(executor \S+ exited.*?\)(?: Reason: ([^\n]*))?", text)
    if lost is not None:
        why = f": {lost[1].strip().rstrip('.')}" if lost[1] else ""
        return f"its executor was lost, perhaps for want of memory{why}{often}"[:500]
    if "Python worker exited unexpectedly" in text:
        return f"the process that ran it was killed or crashed, perhaps for want of memory{often}"
    if "OutOfMemoryError" in text:
        return f"its executor ran out of memory; give it more with --spark-conf spark.executor.memory=4g{often}"
    known = cause_in_text(text)
    return f"{known.message if known is not None else summary_line(text)}{often}"
