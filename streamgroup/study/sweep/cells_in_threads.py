"""Runs the cells of a sweep in threads: compiled code runs without the GIL, and chunks are shared."""

import contextlib
import dataclasses
import os
import queue
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence

from streamgroup.base.errors import RunError, StreamgroupError
from streamgroup.base.memory import free_memory
from streamgroup.replay.accounting.replica_sets import TouchedPairs
from streamgroup.replay.input.chunk_cache import ChunkCache
from streamgroup.replay.scenario.grouping_selection import select
from streamgroup.study.sweep.cell import CellOutcome, failed, run_cell
from streamgroup.study.sweep.compile_in_background import compile_ahead
from streamgroup.study.sweep.schedule import Task, longest_first

__all__ = ["Progress", "at_once", "default_jobs", "run_tasks", "stdout_to_stderr"]

Progress = Callable[[int], None]

# Of the memory that is free: for all cells together, and for what they read.
_FOR_CELLS = 0.6
_FOR_CHUNKS = 0.3
# Seconds that threads have to end when their results are no longer wanted.
_PATIENCE = 10.0


class _Stopped(BaseException):
    """The result is no longer wanted: no failure of a cell, so no Exception."""


def default_jobs() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextlib.contextmanager
def stdout_to_stderr(groupings: Iterable[str]) -> Iterator[None]:
    """Send what groupings of the user's print to stderr, as it is no result, while threads replay them.

    Threads that each redirected it, as a replay does, would undo one another.
    """
    with contextlib.ExitStack() as stack:
        if any(map(_is_outside, groupings)):
            stack.enter_context(contextlib.redirect_stdout(sys.stderr))
        yield


def _is_outside(grouping: str) -> bool:
    try:
        return bool(select(grouping).outside_digest)
    except StreamgroupError:
        # Its run reports what is wrong.
        return False


def at_once(tasks: Sequence[Task], jobs: int) -> int:
    """Return how many of the largest tasks memory holds at once: 1..jobs."""
    room = free_memory() * _FOR_CELLS
    for count, memory in enumerate(sorted((task.memory for task in tasks), reverse=True)[:jobs]):
        room -= memory
        if room < 0:
            return max(1, count)
    return jobs


def run_tasks(tasks: Sequence[Task], jobs: int, *, progress: Progress | None = None) -> Generator[CellOutcome]:
    """Run tasks in up to `jobs` threads, the longest first; yield the outcome of each that is not hidden as it ends.

    What memory does not hold beside the others waits, and what compares with a baseline follows it. `progress`
    receives the tuples of each chunk, one thread at a time. A caller that stops early closes the iterator: no further
    task begins, and those that run end at their next chunk.
    """
    pool = _Pool(tasks, progress)
    threads = [
        threading.Thread(target=pool.work, name=f"streamgroup-cell-{number}", daemon=True)
        for number in range(min(jobs, len(tasks)))
    ]
    with stdout_to_stderr(task.cell.options.grouping for task in tasks), contextlib.ExitStack() as stack:
        stack.callback(pool.stop, threads)
        if tasks:
            largest = max((task.trace for task in tasks), key=lambda trace: trace.tuples)
            runs = [task.cell.options for task in longest_first(tasks) if task.trace is largest and task.error is None]
            # Each holds the keys of the trace, too.
            stack.enter_context(compile_ahead(largest, runs, at_once(tasks, jobs)))
        for thread in threads:
            thread.start()
        for _ in range(sum(not task.hidden for task in tasks)):
            outcome = pool.ended.get()
            if isinstance(outcome, BaseException):
                raise outcome
            yield outcome


class _Pool:
    """Tasks that wait, and what those that ended leave for others."""

    def __init__(self, tasks: Sequence[Task], progress: Progress | None) -> None:
        self.ended: queue.SimpleQueue[CellOutcome | BaseException] = queue.SimpleQueue()
        free = free_memory()
        self._room = free * _FOR_CELLS
        self._chunk_cache = ChunkCache(int(free * _FOR_CHUNKS))
        self._waiting = longest_first(tasks)
        # How many tasks wait for a simulation, and by simulation the pairs of a baseline, or why there are none.
        self._needed = Counter(task.needs for task in tasks if task.needs is not None)
        self._baselines: dict[str, TouchedPairs | str] = {}
        self._running = 0
        self._stopped = False
        self._turn = threading.Condition()
        self._progress = progress
        for trace in {id(task.trace): task.trace for task in tasks}.values():
            # Once, ahead of the threads. Each cell reports what is wrong with it.
            with contextlib.suppress(StreamgroupError):
                trace.dictionary()

    def work(self) -> None:
        """Run tasks until none is left."""
        try:
            while (task := self._take()) is not None:
                self._leave(task, self._run(task))
        except _Stopped:
            return
        except BaseException as error:  # noqa: BLE001 (handed over to the taker)
            self.ended.put(error)

    def stop(self, threads: Sequence[threading.Thread]) -> None:
        """Let no task begin any more, and wait for threads that are at one, but not for ever."""
        with self._turn:
            self._stopped = True
            self._turn.notify_all()
        until = time.monotonic() + _PATIENCE
        for thread in threads:
            # An interrupt may come before all of them have begun.
            if thread.is_alive():
                thread.join(max(0.0, until - time.monotonic()))

    def _take(self) -> Task | None:
        """Wait for the first task whose baseline is known and that memory holds; None when none is left.

        Tasks that wait for a baseline come before all others once it is known, so that its pairs can go.
        """
        with self._turn:
            while self._waiting and not self._stopped:
                for place, task in sorted(enumerate(self._waiting), key=lambda one: one[1].needs is None):
                    is_ready = task.needs is None or task.needs in self._baselines
                    if is_ready and (self._running == 0 or task.memory <= self._room):
                        self._room -= task.memory
                        self._running += 1
                        return self._waiting.pop(place)
                self._turn.wait()
            return None

    def _run(self, task: Task) -> CellOutcome:
        baseline = None if task.needs is None else self._baselines[task.needs]
        if isinstance(baseline, str):
            return failed(task.cell, RunError(f"the run to compare with failed: {baseline}"))
        if task.error is not None:
            return failed(task.cell, task.error)
        return run_cell(
            task.cell,
            trace=task.trace,
            baseline=baseline,
            keep=self._needed[task.simulation] > 0,
            chunk_cache=self._chunk_cache,
            progress=self._count,
        )

    def _leave(self, task: Task, outcome: CellOutcome) -> None:
        """Hand over what became of a task; pairs are kept here alone, until the last task that needs them ends."""
        with self._turn:
            if self._needed[task.simulation] and task.needs is None:
                found = outcome.error or outcome.touched
                assert found is not None
                self._baselines[task.simulation] = found
            if task.needs is not None:
                self._needed[task.needs] -= 1
                if self._needed[task.needs] == 0:
                    del self._baselines[task.needs]
            self._room += task.memory
            self._running -= 1
            self._turn.notify_all()
        if not task.hidden:
            self.ended.put(dataclasses.replace(outcome, touched=None))

    def _count(self, tuples: int) -> None:
        if self._stopped:
            raise _Stopped
        if self._progress is not None:
            with self._turn:
                self._progress(tuples)
