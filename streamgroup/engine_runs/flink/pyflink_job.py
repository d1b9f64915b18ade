"""The job, in a Python that has PyFlink: `python -c "from ... import main; main()" DIRECTORY`.

Ticks -> sources -> `partition_custom` -> workers. A tick has a source send its next tuple: in mode `process`, what a
Python function of Flink yields leaves it at the end of a bundle, and a bundle here is one element. There, the subtasks
in a slot share a Python process, so that sources and workers have slots of their own.
"""

import importlib
import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyflink.common import Configuration, Types, WatermarkStrategy
from pyflink.datastream import ProcessFunction, StreamExecutionEnvironment
from pyflink.datastream.connectors.number_seq import NumberSequenceSource

from streamgroup.base.compiling.restore_builtin_print import builtin_print

__all__ = ["main"]

_LOOK_S = 1.0


def _tasks() -> Any:
    """Import the tasks, which cannot be imported as they are where PyFlink runs them."""
    with builtin_print():
        return importlib.import_module("streamgroup.engine_runs.flink.source_and_worker_without_flink")


def _job(directory: str) -> Any:
    _tasks()
    return pickle.loads((Path(directory) / "job").read_bytes())


def _subtask(context: Any) -> int:
    try:
        return int(context.get_index_of_this_subtask())
    except AttributeError:
        # Flink 2.3 asks its Java object for what went elsewhere, where Python runs within the JVM.
        return int(context._runtime_context.getTaskInfo().getIndexOfThisSubtask())


class _Sources(ProcessFunction):  # type: ignore[misc]
    """Subtask s is source s."""

    def __init__(self, directory: str) -> None:
        self._directory = directory

    def open(self, runtime_context: Any) -> None:
        self._source = _tasks().Source(_job(self._directory), _subtask(runtime_context))

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        del value, ctx
        yield from map(tuple, self._source.send_next())


class _Workers(ProcessFunction):  # type: ignore[misc]
    """Subtask w is worker w."""

    def __init__(self, directory: str) -> None:
        self._directory = directory

    def open(self, runtime_context: Any) -> None:
        self._worker = _tasks().Worker(_job(self._directory), _subtask(runtime_context))

    def process_element(self, value: Any, ctx: Any) -> list[Any]:
        del ctx
        self._worker.receive(value)
        return []


def _settings(directory: str, slots: int, mode: str) -> Any:
    found = Configuration()
    for name, value in {
        "python.executable": sys.executable,
        "python.client.executable": sys.executable,
        # One element at a time, sent at once; bundles are of mode process.
        "python.fn-execution.bundle.size": "1",
        "python.fn-execution.bundle.time": "1",
        "execution.buffer-timeout.enabled": "true",
        "execution.buffer-timeout.interval": "0 ms",
        "taskmanager.numberOfTaskSlots": str(slots),
        "taskmanager.memory.network.min": "256m",
        "taskmanager.memory.network.max": "256m",
        "rest.bind-port": "0",
        "python.execution-mode": mode,
        # Starting may keep few cores busy for minutes.
        "heartbeat.timeout": "300s",
        "io.tmp.dirs": directory,
        "restart-strategy.type": "none",
    }.items():
        found.set_string(name, value)
    return found


def _end_with(parent: int) -> None:
    """End this process and those that it started, its JVM among them, when the command that started it is gone."""
    while os.getppid() == parent:
        time.sleep(_LOOK_S)
    os.killpg(os.getpgrp(), signal.SIGKILL)


def main() -> None:
    """Run the job of a directory."""
    directory = sys.argv[1]
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    job = _job(directory)
    sources, workers = job.sources.options.sources, job.sources.options.workers
    # In mode process: a process of its own for each slot, instead of threads in this one.
    os.environ["_python_worker_execution_mode"] = "process"  # noqa: SIM112
    environment = StreamExecutionEnvironment.get_execution_environment(
        _settings(directory, sources + workers, job.mode)
    )
    # What follows partition_custom at once has this parallelism, and that is the number of partitions.
    environment.set_parallelism(workers)
    # A greeting, the tuples, the end. Each source takes one split, of as many ticks: none begins before all have one.
    ticks = 2 + max(_tasks().read_source(directory, source).num_rows for source in range(sources))
    ticking = environment.from_source(
        NumberSequenceSource(0, sources * ticks - 1), WatermarkStrategy.no_watermarks(), "ticks"
    )
    plain = Types.PICKLED_BYTE_ARRAY()
    sent = (
        ticking.set_parallelism(sources)
        .slot_sharing_group("sources")
        .process(_Sources(directory), output_type=plain)
        .set_parallelism(sources)
        .slot_sharing_group("sources")
    )
    received = sent.partition_custom(lambda worker, _: worker, lambda message: message[0]).slot_sharing_group("workers")
    received.process(_Workers(directory), output_type=plain).slot_sharing_group("workers")
    environment.execute("streamgroup run")
