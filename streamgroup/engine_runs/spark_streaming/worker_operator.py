"""A worker as a stateful operator: it serves its tuples of a batch in real time; its counts by key are the state."""

import json
import os
import platform
import time
from collections.abc import Iterator
from typing import Any

import pandas as pd
from pyspark import TaskContext
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle, TimerValues

from streamgroup.engine_runs.precise_waits import wake_promptly
from streamgroup.engine_runs.worker_task import WorkerJob, serve_tuples

__all__ = ["COUNTS", "WorkerOperator"]

# The state variable: a row for each key that the worker has met.
COUNTS = "counts"
_BATCH = "streaming.sql.batchId"


class WorkerOperator(StatefulProcessor):
    """Serves and counts the tuples of one worker."""

    def __init__(self, job: WorkerJob) -> None:
        self._job = job

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Name the state."""
        self._counts = handle.getMapState(COUNTS, "key binary, key_id long", "count long")

    def handleInputRows(self, key: Any, rows: Any, timerValues: TimerValues) -> Iterator[pd.DataFrame]:  # noqa: N802, N803, ARG002
        """Serve a batch; yields its tuples with times, and rows with the reports of sources and of this worker."""
        got = pd.concat(list(rows))
        reports = [text for text in got["report"] if text is not None]
        tuples = got[got["seq"] >= 0].sort_values("seq")
        context = TaskContext.get()
        assert context is not None
        batch = int(context.getLocalProperty(_BATCH) or -1)
        if len(tuples):
            served, report = self._served(tuples, batch)
            yield served
            reports.append(json.dumps({**report, "batch": batch, "partition": context.partitionId()}))
        if reports:
            size = len(reports)
            nothing = {name: [-1] * size for name in ("seq", "worker", "start", "finish", "service", "hot", "entries")}
            yield pd.DataFrame({**nothing, "batch": [batch] * size, "report": reports})

    def _served(self, tuples: pd.DataFrame, batch: int) -> tuple[pd.DataFrame, dict[str, Any]]:
        wake_promptly()
        begin = time.time_ns()
        cpu = time.process_time_ns()
        if self._job.delay_ns:
            time.sleep(self._job.delay_ns / 1e9)
        keys = list(zip(tuples["key"], tuples["key_id"].tolist(), strict=True))
        met: dict[Any, int] = {}
        origin = time.perf_counter_ns()
        at = time.time_ns()
        # All are there: none is waited for.
        served = serve_tuples([0] * len(keys), tuples["service"].tolist(), keys, met, origin, spins=self._job.spins)
        for key, count in met.items():
            before = self._counts.getValue(key)
            self._counts.updateValue(key, (count + (before[0] if before else 0),))
        report = {
            "worker": int(tuples["worker"].iloc[0]), "host": platform.node(), "process": os.getpid(),
            "tuples": len(keys), "begin_ns": begin, "cpu_ns": time.process_time_ns() - cpu,
        }  # fmt: skip
        found = tuples[["seq", "worker", "service", "hot", "entries"]].assign(
            start=[at + one for one in served.start], finish=[at + one for one in served.finish], batch=batch,
            report=None,
        )  # fmt: skip
        return found, report
