"""Frames as partitions in this process, and their runner on threads."""

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from functools import cached_property, partial

import pyarrow as pa

from streamgroup.base.progress import Progress
from streamgroup.ingest.pipeline.arrow_blocks import Row, Step, rows_of
from streamgroup.ingest.runners.protocol import Frame, T
from streamgroup.ingest.runners.stop_threads import check_stopped, stop_on

__all__ = ["LocalRunner"]

_Partition = Callable[[], Iterable[pa.RecordBatch]]
# Each thread holds the blocks of a task, some 150 MB.
_MOST_THREADS = 8


class LocalFrame:
    """Partitions of blocks in this process; all that is kept or exchanged is in memory."""

    def __init__(self, runner: "LocalRunner", partitions: Callable[[], list[_Partition]]) -> None:
        """Take what makes the partitions, which is called once, when they are asked for."""
        self._runner = runner
        self._make = partitions

    @cached_property
    def _partitions(self) -> list[_Partition]:
        return self._make()

    def map(self, step: Step) -> "LocalFrame":
        """Run a step on each partition."""
        return LocalFrame(self._runner, lambda: [partial(_run_step, step, each) for each in self._partitions])

    def exchange(self, partitions: int) -> "LocalFrame":
        """Send each row to the partition that its `to` numbers."""

        def received() -> list[_Partition]:
            lists: list[list[pa.RecordBatch]] = [[] for _ in range(partitions)]
            for batches in self._runner.compute(self._partitions):
                for row in rows_of(batches):
                    lists[row.to % partitions].append(row.moved(row.to))
            return [partial(iter, batches) for batches in lists]

        return LocalFrame(self._runner, received)

    def of(self, *kinds: str) -> "LocalFrame":
        """Keep the rows of some kinds."""
        return self.map(partial(_of_kinds, kinds))

    def union(self, other: Frame) -> "LocalFrame":
        """Put the partitions of another frame after these."""
        assert isinstance(other, LocalFrame)
        return LocalFrame(self._runner, lambda: [*self._partitions, *other._partitions])

    def keep(self) -> "LocalFrame":
        """Compute all partitions once, when they are asked for."""

        def kept() -> list[_Partition]:
            return [partial(iter, batches) for batches in self._runner.compute(self._partitions)]

        return LocalFrame(self._runner, kept)

    def stats(self, *kinds: str) -> list[Row]:
        """Collect rows of some kinds."""
        return [row for batches in self._runner.compute(self.of(*kinds)._partitions) for row in rows_of(batches)]


def _run_step(step: Step, partition: _Partition) -> Iterator[pa.RecordBatch]:
    return step(iter(partition()))


def _of_kinds(kinds: tuple[str, ...], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return (batch for batch in batches if batch.column("kind")[0].as_py() in kinds)


class LocalRunner:
    """Runs frames on threads of this process: numpy and Arrow release the interpreter's lock."""

    def __init__(self, progress: Progress) -> None:
        """Take where to report progress."""
        self._progress = progress
        self._lock = threading.Lock()
        self._stop = threading.Event()

    @property
    def parallelism(self) -> int:
        """Return the number of processors that this process may use, at most 8."""
        own = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        return min(own, _MOST_THREADS)

    def tasks(self, number: int, step: Callable[[int], Iterator[pa.RecordBatch]]) -> LocalFrame:
        """Make a frame of `number` partitions."""
        return LocalFrame(self, lambda: [partial(step, each) for each in range(number)])

    def compute(self, partitions: list[_Partition]) -> list[list[pa.RecordBatch]]:
        """Compute partitions side by side; the first failure, or an interrupt, ends them all."""
        with ThreadPoolExecutor(self.parallelism, "ingest", stop_on, (self._stop,)) as pool:
            work = [pool.submit(self._whole, partition) for partition in partitions]
            try:
                wait(work, return_when=FIRST_EXCEPTION)
                return [each.result() for each in work]
            except BaseException:
                self._stop.set()
                pool.shutdown(wait=True, cancel_futures=True)
                raise

    def _whole(self, partition: _Partition) -> list[pa.RecordBatch]:
        batches = []
        for batch in partition():
            check_stopped()
            batches.append(batch)
        with self._lock:
            self._progress.advance(1)
        return batches

    def run(self, function: Callable[[], T], tasks: int, text: str) -> T:
        """Run a function that computes frames."""
        self._progress.start(tasks, text)
        return function()

    def close(self) -> None:
        """Do nothing: memory is freed with the frames."""
