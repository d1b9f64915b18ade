"""Where the work of making a synthetic trace is done: on threads of this process, or in Spark tasks."""

import os
import pickle
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from functools import lru_cache, partial
from typing import Protocol, TypeVar, cast

from pydantic import BaseModel

from streamgroup.base.discover import GENERATORS, load
from streamgroup.base.progress import Progress
from streamgroup.ingest.generators.protocol import Chunk, Generator, Stream
from streamgroup.ingest.tasks import run_all
from streamgroup.spark.session import Session

__all__ = ["Engine", "OnSpark", "OnThreads"]

# Each thread holds a block of tuples and what compresses it, about 150 MB.
_MOST_THREADS = 8

J = TypeVar("J")
R = TypeVar("R")


class Engine(Protocol):
    """Whoever does jobs of one stream; `parallelism` of them at a time."""

    @property
    def parallelism(self) -> int:
        """Give the number of jobs that are done at a time."""
        ...

    def run(self, work: Callable[[Stream, J], R], jobs: Sequence[J], tuples: int | None, text: str) -> list[R]:
        """Do `work(stream, job)` for all jobs; results come in the order of the jobs.

        Progress is told under `text`: of `tuples` tuples that the jobs make in all, or None when they make none.
        """
        ...


class _StoppedError(Exception):
    """Ends the work of other threads when one has failed or the user has interrupted."""


class OnThreads:
    """Threads of this process: numpy, the digest and the compression let go of the interpreter's lock."""

    def __init__(self, stream: Stream, progress: Progress) -> None:
        """Take a stream to work on, and whoever wants to know how far it is."""
        self._progress = progress
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._chunk = stream.chunk
        self._stream = stream._replace(chunk=self._told)

    @property
    def parallelism(self) -> int:
        """Give the number of processors that this process may use, at most 8."""
        own = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        return min(own, _MOST_THREADS)

    def run(self, work: Callable[[Stream, J], R], jobs: Sequence[J], tuples: int | None, text: str) -> list[R]:
        """Do the jobs; the first failure ends them all."""
        self._progress.start(tuples, text)
        with ThreadPoolExecutor(self.parallelism, thread_name_prefix="synth") as pool:
            try:
                futures = [pool.submit(work, self._stream, job) for job in jobs]
                done, _ = wait(futures, return_when=FIRST_EXCEPTION)
                for future in done:
                    future.result()
            except BaseException:
                self._stop.set()
                pool.shutdown(wait=True, cancel_futures=True)
                raise
        return [future.result() for future in futures]

    def _told(self, first: int, rows: int) -> Chunk:
        if self._stop.is_set():
            raise _StoppedError
        made = self._chunk(first, rows)
        with self._lock:
            self._progress.advance(rows)
        return made


class OnSpark:
    """Tasks of a Spark session. What work functions tell each other lies where all its machines can read."""

    def __init__(self, name: str, params: BaseModel, session: Session, progress: Progress) -> None:
        """Take a generator with its parameters, an open session, and whoever wants to know how far it is."""
        self._task = partial(_in_task, name, pickle.dumps(params))
        self._session = session
        self._progress = progress

    @property
    def parallelism(self) -> int:
        """Give the number of tasks that Spark runs at a time."""
        return self._session.parallelism

    def run(self, work: Callable[[Stream, J], R], jobs: Sequence[J], tuples: int | None, text: str) -> list[R]:
        """Do the jobs, each in a task of its own."""
        context = self._session.context
        progress = _Scaled(self._progress, tuples)
        return self._session.run(lambda: run_all(context, partial(self._task, work), jobs), progress, len(jobs), text)


class _Scaled:
    """Tells progress in tuples where Spark knows tasks."""

    def __init__(self, progress: Progress, tuples: int | None) -> None:
        self._progress = progress
        self._tuples = tuples
        self._tasks = self._done = 0

    def start(self, total: int | None, text: str) -> None:
        self._tasks = total or 1
        self._progress.start(self._tuples, text)

    def advance(self, done: int) -> None:
        before = self._done
        self._done += done
        tuples = self._tuples or 0
        self._progress.advance(tuples * self._done // self._tasks - tuples * before // self._tasks)


def _in_task(name: str, params: bytes, work: Callable[[Stream, J], R], job: J) -> R:
    return work(_stream(name, params), job)


@lru_cache(maxsize=1)
def _stream(name: str, params: bytes) -> Stream:
    """Make a stream once in each of Spark's processes: the tables of a large one take seconds."""
    return cast(Generator, load(GENERATORS, name, "generator")).generate(pickle.loads(params))
