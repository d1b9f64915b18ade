"""Many pieces of work as Spark tasks, each for itself: one that fails, or kills its executor, leaves the others alone.

Each piece is a Spark job of one task, so that its result is here as soon as it ends. One more is submitted than there
are executor cores: Spark takes them in the order of submission, and none of its cores waits for this process.
"""

import contextlib
import queue
import re
import threading
from collections.abc import Callable, Generator, Sequence
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

from streamgroup.base.errors import StreamgroupError
from streamgroup.spark import errors
from streamgroup.spark.background import BackgroundCall, complete
from streamgroup.spark.log import log_text
from streamgroup.spark.session import Session

__all__ = ["Finished", "run_each"]

J = TypeVar("J")
R = TypeVar("R")

# A result, or why there is none.
_Tried = tuple[R | None, str | None]

# Jobs beyond the cores, and most at all: each holds a thread here and one in the JVM.
_SPARE = 1
_MOST = 512
# Seconds between two looks at how many cores there are; executors may join while others work.
_EVERY = 1.0
# Seconds until it is looked up whether there are executors at all, and what Spark's log says if there are none.
_PATIENCE = 20.0
_NOT_TAKEN = "has not accepted any resources"


class Finished(NamedTuple, Generic[R]):
    """A piece of work that ended: its number among the jobs, and its result or, in one line, why there is none."""

    number: int
    result: R | None
    error: str | None


def run_each(
    session: Session, function: Callable[[J], R], jobs: Sequence[J], note: Callable[[str], None] | None = None
) -> Generator[Finished[R]]:
    """Run a function on each job in a Spark task of its own; what has ended is given at once.

    The jobs are begun in their order and given in the order in which they end. Function and jobs are pickled, and what
    the function is made of must be installed on the executors. An exception of the function is not tried again; a task
    whose process or executor is lost is, as often as Spark does (`spark.task.maxFailures`). Either way that job has an
    `error`. When Spark itself has stopped, or its master is gone, a StreamgroupError says why. Whoever stops before the
    end closes the iterator, which cancels what runs. `note` is told when Spark waits for executors.
    """
    if not jobs:
        return
    farm = _Farm(session, partial(_tried, function), jobs)
    try:
        for number in range(len(jobs)):
            found = farm.get(None if number else note)
            if isinstance(found, BaseException):
                raise session.explain(found) from found
            yield found
    finally:
        farm.close()


def _tried(function: Callable[[J], R], job: J) -> _Tried[R]:
    try:
        return function(job), None
    except StreamgroupError as error:
        return None, error.message
    except Exception as error:  # noqa: BLE001 (it is told to whoever asked for the work)
        return None, f"{type(error).__name__}: {' '.join(str(error).split())}"[:500]


class _Farm(Generic[R]):
    """The threads that submit jobs and wait for them; `results` has what ended, or what ended everything."""

    def __init__(self, session: Session, task: Callable[[Any], _Tried[R]], jobs: Sequence[Any]) -> None:
        self.results: queue.SimpleQueue[Finished[R] | BaseException] = queue.SimpleQueue()
        self._session, self._task, self._jobs = session, task, jobs
        self._waiting = iter(range(len(jobs)))
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._tending: list[BackgroundCall[None]] = []
        self._hiring = BackgroundCall(self._hire)

    def get(self, note: Callable[[str], None] | None) -> Finished[R] | BaseException:
        """Wait for what ends next; `note` is told, once, when no executor takes a task."""
        while note is not None:
            try:
                return self.results.get(timeout=_PATIENCE)
            except queue.Empty:
                if _NOT_TAKEN in log_text(self._session.log):
                    note("Spark waits for executors: has the cluster free cores, and memory for spark.executor.memory?")
                    note = None
        return self.results.get()

    def close(self) -> None:
        """Cancel what still runs, and wait a little until it has ended."""
        self._over.set()
        self._hiring.done.wait(5)
        if not all(call.done.is_set() for call in self._tending):
            complete(self._session.context.cancelAllJobs)
            for call in self._tending:
                call.done.wait(5)

    def _hire(self) -> None:
        """Keep as many threads as there are executor cores, and some: these later, so that the first jobs are first."""
        spare = 0
        while True:
            try:
                wanted = self._session.parallelism + spare
            except Exception as error:  # noqa: BLE001 (the JVM is gone; told to whoever waits for results)
                self.results.put(error)
                return
            for _ in range(len(self._tending), min(wanted, len(self._jobs), _MOST)):
                self._tending.append(BackgroundCall(self._tend))
            spare = _SPARE
            if self._over.wait(_EVERY):
                return

    def _next(self) -> int | None:
        with self._lock:
            return None if self._over.is_set() else next(self._waiting, None)

    def _tend(self) -> None:
        while (number := self._next()) is not None:
            try:
                context = self._session.context
                ((result, error),) = context.parallelize([self._jobs[number]], 1).map(self._task).collect()
            except Exception as failure:  # noqa: BLE001 (told to whoever asked for the work)
                if self._over.is_set():
                    return
                if _has_stopped(self._session):
                    self._over.set()
                    self.results.put(failure)
                    return
                result, error = None, _reason(str(failure))
            self.results.put(Finished(number, result, error))


def _has_stopped(session: Session) -> bool:
    """Tell whether there is no Spark any more."""
    with contextlib.suppress(Exception):
        return bool(session.context._jsc.sc().isStopped())
    return True


def _reason(text: str) -> str:
    """Find why a task failed in Spark's account of its last attempt."""
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
    known = errors.cause_in_text(text)
    return f"{known.message if known is not None else errors.summary_line(text)}{often}"
