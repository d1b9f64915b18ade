"""The tasks of a run on Flink, without Flink: sources send tuples when they arrive, and workers serve them."""

import json
import os
import platform
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from streamgroup.engine_runs.flink.agreed_start import Start, agreed_start, announce, write_whole
from streamgroup.engine_runs.precise_waits import sleep_until, wake_promptly
from streamgroup.engine_runs.source_task import Chooser, SourceJob
from streamgroup.engine_runs.worker_task import (
    COLUMNS,
    WorkerJob,
    counts_by_id,
    serve_tuple,
)

__all__ = ["END", "HELLO", "FlinkJob", "Source", "Tuple", "Worker", "read_source", "source_file", "worker_file"]

# What a source sends besides tuples: at first, so that Flink opens the workers; and after its last tuple.
HELLO, END = "hello", "end"


class FlinkJob(NamedTuple):
    """What all tasks know: the directory of the run, and what sources and workers do. Pickled into `job`."""

    directory: str
    sources: SourceJob
    workers: WorkerJob
    # Of all tuples, in ns after the start.
    last_arrival: int

    @property
    def mode(self) -> str:
        """How Flink runs Python.

        In mode `thread` it does so within its JVM, where a tuple gets from one task to another in less than 1 ms, and
        all tasks are threads of one interpreter: they can sleep at the same time, but not compute. In mode `process`
        each has a Python process, and a tuple takes some ms.
        """
        return "process" if self.workers.spins else "thread"

    @property
    def tasks(self) -> int:
        """How many tasks there are."""
        return self.sources.options.sources + self.sources.options.workers

    def start(self) -> Start:
        """Return the start that all agree on, when they are ready."""
        return agreed_start(Path(self.directory), self.tasks, self.workers.lead_ns)


class Tuple(NamedTuple):
    """A tuple on its way to its worker: `arrival` at the source, and `service`, in ns."""

    worker: int
    seq: int
    arrival: int
    service: int
    key_id: int
    key: bytes | None
    hot: int | None
    entries: int | None


def source_file(directory: Path | str, source: int) -> Path:
    """Return where the tuples of a source are."""
    return Path(directory) / f"source-{source}.arrow"


def worker_file(directory: Path | str, worker: int) -> Path:
    """Return where a worker writes what it measured, with its report and, one of them, those of the sources."""
    return Path(directory) / f"worker-{worker}.arrow"


def read_source(directory: Path | str, source: int) -> pa.Table:
    """Read the tuples of a source."""
    with pa.ipc.open_file(str(source_file(directory, source))) as file:
        return file.read_all()


class Source:
    """One source: each call returns what it sends next, and takes until then."""

    def __init__(self, job: FlinkJob, source: int) -> None:
        self._job, self._source = job, source
        self._workers = job.sources.options.workers
        self._rows: list[dict[str, Any]] = read_source(job.directory, source).to_pylist()
        self._chooser = Chooser(job.sources, source)
        self._calls = 0
        self._start = Start(0, 0)
        self._behind = 0
        self._late: list[int] = []

    def send_next(self) -> list[tuple[Any, ...]]:
        """Return messages, the worker that gets them in front: greetings, then tuples, then the end, then nothing."""
        place = self._calls - 1
        self._calls += 1
        if place < 0:
            announce(Path(self._job.directory), f"source-{self._source}")
            return [(worker, HELLO) for worker in range(self._workers)] if self._source == 0 else []
        if place == 0:
            wake_promptly()
            self._start = self._job.start()
            self._behind = time.perf_counter_ns() - self._start.at
        if place < len(self._rows):
            return [self._tuple(self._rows[place])]
        if place == len(self._rows):
            report = {
                **self._chooser.report(), "behind_ns": self._behind, "ready_spread_ns": self._start.ready_spread,
                "sent_late_ns": self._late,
            }  # fmt: skip
            return [(worker, END, json.dumps(report)) for worker in range(self._workers)]
        # The source with most tuples has none of these calls, and the others do not take its time.
        sleep_until(self._start.at + self._job.last_arrival, time.perf_counter_ns)
        return []

    def _tuple(self, row: dict[str, Any]) -> Tuple:
        sleep_until(self._start.at + row["arrival"], time.perf_counter_ns)
        decided = self._chooser.decide([row["key"]], np.array([row["arrival"]]))
        worker = int(decided.worker[0])
        self._late.append(time.perf_counter_ns() - self._start.at - row["arrival"])
        return Tuple(
            worker, row["seq"], row["arrival"],
            self._chooser.service(worker, row["key_id"], row["cost"], row["seq"]), row["key_id"], row["key"],
            None if decided.hot is None else int(decided.hot[0]),
            None if decided.entries is None else int(decided.entries[0]),
        )  # fmt: skip


class Worker:
    """One worker: serves tuples as they come, counts them by key, and writes down what it measured when all ended."""

    def __init__(self, job: FlinkJob, worker: int) -> None:
        self._job, self._worker = job, worker
        self._rows: list[tuple[Any, ...]] = []
        self._state: dict[bytes | None, int] = {}
        self._key_ids: dict[bytes | None, int] = {}
        self._ended: list[dict[str, Any]] = []
        self._start: Start | None = None
        self._finish = 0
        self._cpu = 0
        # In one process with all others, it has a thread of its own.
        self._cpu_clock = time.process_time_ns if job.mode == "process" else time.thread_time_ns

    def receive(self, message: tuple[Any, ...]) -> None:
        """Take what a source sent; returns when a tuple is served."""
        if message[1] == HELLO:
            wake_promptly()
            self._cpu = self._cpu_clock()
            announce(Path(self._job.directory), f"worker-{self._worker}")
        elif message[1] == END:
            self._ended.append(json.loads(message[2]))
            if len(self._ended) == self._job.sources.options.sources:
                self._write()
        else:
            self._serve(Tuple(*message))

    def _serve(self, one: Tuple) -> None:
        if one.worker != self._worker:
            raise RuntimeError(f"worker {self._worker} got a tuple of worker {one.worker}")
        start = self._start = self._start or self._job.start()
        due = one.arrival + self._job.workers.delay_ns
        began, finish, late = serve_tuple(
            due, one.service, one.key, self._state, start.at, spins=self._job.workers.spins
        )
        if late < 0:
            # It came late through Flink, or the worker took long to get it after the one before.
            late = began - max(due, self._finish)
        self._finish = finish
        self._key_ids[one.key] = one.key_id
        self._rows.append((one.seq, self._worker, began, finish, one.service, late, one.hot, one.entries, None))

    def _write(self) -> None:
        report = {
            "worker": self._worker, "host": platform.node(), "process": os.getpid(), "tuples": len(self._rows),
            "cpu_ns": self._cpu_clock() - self._cpu,
            "behind_ns": max(one["behind_ns"] for one in self._ended),
            "ready_spread_ns": max(one["ready_spread_ns"] for one in self._ended),
            "state": counts_by_id(self._state, self._key_ids),
        }  # fmt: skip
        # Each worker is sent the reports of all sources.
        reports = [report, *(self._ended if self._worker == 0 else ())]
        rows = [*self._rows, *((None,) * 8 + (json.dumps(one),) for one in reports)]
        columns = [pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), COLUMNS, strict=True)]
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, COLUMNS) as file:
            file.write_table(pa.table(columns, schema=COLUMNS))
        write_whole(worker_file(self._job.directory, self._worker), sink.getvalue().to_pybytes())
