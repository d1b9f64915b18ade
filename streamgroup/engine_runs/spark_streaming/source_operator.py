"""A source as a stateful operator: its grouping, as far as it got in the batches before, is the operator's state."""

import json
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle, TimerValues

from streamgroup.base.errors import RunError
from streamgroup.engine_runs.source_task import SourceJob, service_times
from streamgroup.engine_runs.spark_streaming.query_columns import READ, no_tuples
from streamgroup.engine_runs.spark_streaming.worker_reports import choice_times, take_in, tuples_of
from streamgroup.replay.online.decider import Decider
from streamgroup.replay.online.saved_state import restore, save
from streamgroup.spark.errors_from_tasks import errors_as_text

__all__ = ["SourceOperator"]


class SourceOperator(StatefulProcessor):
    """Chooses workers for the tuples of a source; `labels` are those of the workers."""

    def __init__(self, job: SourceJob, labels: list[int]) -> None:
        self._job, self._labels = job, labels

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Name the state: the last tuple that was decided, and the grouping as of then."""
        self._state = handle.getValueState("grouping", "decided long, saved binary")

    def handleInputRows(self, key: Any, rows: Any, timerValues: TimerValues) -> Iterator[pd.DataFrame]:  # noqa: N802, N803, ARG002
        """Take in what workers report, and choose for the tuples of one source in a batch.

        Yields the tuples, and a row with what the source reports.
        """
        table = pa.Table.from_pandas(pd.concat(list(rows)), schema=READ, preserve_index=False)
        source = table["source"][0].as_py()
        tuples = tuples_of(table)
        reports = int(np.count_nonzero(table["worker"].to_numpy() >= 0))
        with errors_as_text():
            decider = Decider(self._job.options, source, interpreted=None)
            if not len(tuples) and not reports:
                yield self._rows_for_all()
                return
            decided, saved = (self._state.get() if self._state.exists() else None) or (-1, None)
            if len(tuples) and tuples["seq"][0].as_py() <= decided:
                raise RunError(f"source {source} got tuple {tuples['seq'][0]} after tuple {decided}")
            if saved is not None:
                restore(decider, bytes(saved))
            latest = take_in(decider, table)
            taken = time.time_ns()
            if len(tuples):
                yield self._chosen(decider, tuples, latest)
                decided = tuples["seq"][-1].as_py()
            self._state.update((decided, save(decider)))
            grouping = decider.grouping
            report = {
                "source": source, "decided": decided, "state": decider.largest_state or 0,
                "messages": grouping.sent("control_messages"), "bytes": grouping.sent("control_bytes"),
                "reports": reports, "taken_ns": taken,
            }  # fmt: skip
        yield pd.DataFrame({"label": self._labels[:1], "worker": [0], **no_tuples(1), "report": [json.dumps(report)]})

    def _chosen(self, decider: Decider, tuples: pa.Table, latest: int) -> pd.DataFrame:
        now = choice_times(tuples["arrival"].to_numpy(), latest)
        decided = decider.many(decider.ids(tuples["key"].to_pylist()), now)
        size = len(tuples)
        return pd.DataFrame({
            "label": [self._labels[worker] for worker in decided.worker.tolist()],
            "worker": decided.worker,
            **{name: tuples[name].to_pandas() for name in ("seq", "key_id", "key")},
            "service": service_times(self._job.service, tuples, decided.worker),
            "hot": [-1] * size if decided.hot is None else decided.hot,
            "entries": [-1] * size if decided.entries is None else decided.entries,
            "report": [None] * size,
        })  # fmt: skip

    def _rows_for_all(self) -> pd.DataFrame:
        """Return a row for each worker, so that its process starts."""
        size = len(self._labels)
        return pd.DataFrame({
            "label": self._labels, "worker": list(range(size)), **no_tuples(size), "report": [None] * size,
        })  # fmt: skip
