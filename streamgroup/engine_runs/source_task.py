"""A source as a task of an engine: runs the grouping on what it saw, and nothing else."""

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from streamgroup.cluster.service_time import ConstantCost
from streamgroup.engine_runs.tuple_columns import CHOSEN
from streamgroup.replay.online.decider import Decided, Decider
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.spark.errors_from_tasks import errors_as_text

__all__ = ["Chooser", "SourceJob", "choose", "service_times"]


class SourceJob(NamedTuple):
    """What all sources do: `options` of the run, and the service model, which says how long workers take."""

    options: ReplayOptions
    service: Any


class Chooser:
    """Decides for the tuples of one source, and knows how long workers take."""

    def __init__(self, job: SourceJob, source: int) -> None:
        self._job, self._source = job, source
        self._decider = Decider(job.options, source, interpreted=None)

    def decide(self, keys: Sequence[bytes | None], arrival: NDArray[np.int64]) -> Decided:
        """Choose workers for tuples, one after the other, at times that do not go back."""
        return self._decider.many(self._decider.ids(keys), arrival)

    def service(self, worker: int, key_id: int, cost: float | None, seq: int) -> int:
        """Return how long the service of a tuple takes, in ns, by the model of the replay."""
        return int(self._job.service.service(worker, key_id, cost or 0, seq, 0))

    def report(self) -> dict[str, int]:
        """Return what the source reports at its end."""
        state = self._decider.grouping
        return {
            "source": self._source, "state": self._decider.largest_state or 0,
            "messages": state.sent("control_messages"), "bytes": state.sent("control_bytes"),
        }  # fmt: skip


def choose(job: SourceJob, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Choose workers for the tuples of one source; yields them, and a row with what the source reports."""
    found = list(batches)
    if not found:
        return
    table = pa.Table.from_batches(found).sort_by("seq")
    if not len(table):
        return
    with errors_as_text():
        chooser = Chooser(job, table["source"][0].as_py())
        yield _chosen(job, table, chooser.decide(table["key"].to_pylist(), table["arrival"].to_numpy().copy()))
        report = chooser.report()
    blank: dict[str, list[Any]] = {name: [None] for name in CHOSEN.names}
    yield pa.RecordBatch.from_pydict({**blank, "worker": [0], "report": [json.dumps(report)]}, schema=CHOSEN)


def _chosen(job: SourceJob, table: pa.Table, decided: Decided) -> pa.RecordBatch:
    columns = {name: table[name].combine_chunks() for name in ("seq", "key_id", "key", "arrival")}
    columns["worker"] = pa.array(decided.worker)
    columns["service"] = pa.array(service_times(job.service, table, decided.worker))
    for name, values in (("hot", decided.hot), ("entries", decided.entries)):
        if values is not None:
            columns[name] = pa.array(values)
    size = len(table)
    return pa.RecordBatch.from_arrays(
        [columns.get(field.name, pa.nulls(size, field.type)) for field in CHOSEN], schema=CHOSEN
    )


def service_times(service: Any, table: pa.Table, worker: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return how long the service of each tuple takes, in ns, by the model of the replay."""
    if isinstance(service, ConstantCost):
        return service.service_ns[worker]
    rows = zip(worker.tolist(), *(table[name].to_pylist() for name in ("key_id", "cost", "seq")), strict=True)
    return np.array([service.service(who, key, cost or 0, seq, 0) for who, key, cost, seq in rows], dtype=np.int64)
