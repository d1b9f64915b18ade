"""A worker as a task of an engine: waits for each tuple's arrival, serves it in real time, keeps state.

It imports next to nothing: there are as many processes of it as workers, and they start on few cores.
"""

import json
import os
import platform
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa

from streamgroup.engine_runs.precise_waits import sleep_until, spin_until, wake_promptly

__all__ = [
    "COLUMNS",
    "SCHEMA",
    "WorkerJob",
    "counts_by_id",
    "serve",
    "serve_tuple",
    "serve_tuples",
]

SCHEMA = "seq long, worker int, start long, finish long, service long, late long, hot int, entries long, report string"
COLUMNS = pa.schema([
    ("seq", pa.int64()), ("worker", pa.int32()), ("start", pa.int64()), ("finish", pa.int64()),
    ("service", pa.int64()), ("late", pa.int64()), ("hot", pa.int32()), ("entries", pa.int64()),
    ("report", pa.string()),
])  # fmt: skip
K = TypeVar("K")


class WorkerJob(NamedTuple):
    """What all workers do: `lead_ns` passes from the last one's readiness to the first arrival, `delay_ns` from a
    source to a worker. With `spins` a service keeps a core busy, else it sleeps.
    """

    lead_ns: int
    delay_ns: int
    spins: bool


class Served(NamedTuple):
    """When the service of tuples started and finished, and how late the worker woke for them (-1: it did not sleep)."""

    start: list[int]
    finish: list[int]
    late: list[int]


def serve(job: WorkerJob, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Serve the tuples of one worker in a task of a barrier stage; yields them with times, and a row that reports."""
    from pyspark import BarrierTaskContext

    context: Any = BarrierTaskContext.get()
    worker = context.partitionId()
    found = list(batches)
    table = pa.Table.from_batches(found) if found else _nothing()
    reports = [text for text in table["report"].to_pylist() if text is not None]
    table = table.filter(table["report"].is_null()).sort_by("seq")
    arrival = [at + job.delay_ns for at in table["arrival"].to_pylist()]
    service, keys = table["service"].to_pylist(), table["key"].to_pylist()
    state: dict[bytes | None, int] = {}
    wake_promptly()
    # The calls of all return at different moments: they agree on one that none has reached.
    ready = [int(text) for text in context.allGather(str(time.time_ns()))]
    begin = max(ready) + job.lead_ns
    behind = time.time_ns() - begin
    origin = time.perf_counter_ns() + begin - time.time_ns()
    cpu = time.process_time_ns()
    served = serve_tuples(arrival, service, keys, state, origin, spins=job.spins)
    report = {
        "worker": worker, "host": platform.node(), "process": os.getpid(), "tuples": len(arrival),
        "cpu_ns": time.process_time_ns() - cpu, "behind_ns": behind, "ready_spread_ns": max(ready) - min(ready),
        "state": counts_by_id(state, dict(zip(keys, table["key_id"].to_pylist(), strict=True))),
    }  # fmt: skip
    yield _rows([
        table["seq"].combine_chunks(), pa.array([worker] * len(arrival), pa.int32()),
        pa.array(served.start, pa.int64()), pa.array(served.finish, pa.int64()), table["service"].combine_chunks(),
        pa.array(served.late, pa.int64()), table["hot"].combine_chunks(), table["entries"].combine_chunks(),
        pa.nulls(len(arrival), pa.string()),
    ])  # fmt: skip
    said = [*reports, json.dumps(report)]
    blank = [pa.nulls(len(said), field.type) for field in COLUMNS][:-1]
    yield _rows([*blank, pa.array(said, pa.string())])


def serve_tuples(
    arrival: Sequence[int],
    service: Sequence[int],
    keys: Sequence[K],
    state: dict[K, int] | None,
    origin: int,
    *,
    spins: bool,
    clock: Callable[[], int] = time.perf_counter_ns,
) -> Served:
    """Serve tuples first come, first served, by the clock; `arrival` counts from `origin` on it, `service` is in ns."""
    found = Served([], [], [])
    for at, takes, key in zip(arrival, service, keys, strict=True):
        for times, one in zip(found, serve_tuple(at, takes, key, state, origin, spins=spins, clock=clock), strict=True):
            times.append(one)
    return found


def serve_tuple(
    at: int,
    takes: int,
    key: K,
    state: dict[K, int] | None,
    origin: int,
    *,
    spins: bool,
    clock: Callable[[], int] = time.perf_counter_ns,
) -> tuple[int, int, int]:
    """Serve one tuple, not before its arrival; returns what `Served` has of it."""
    due = origin + at
    now, late = clock(), -1
    if now < due:
        sleep_until(due, clock)
        now = clock()
        late = now - due
    if state is not None:
        state[key] = state.get(key, 0) + 1
    (spin_until if spins else sleep_until)(now + takes, clock)
    return now - origin, clock() - origin, late


def counts_by_id(state: Mapping[bytes | None, int], key_ids: Mapping[bytes | None, int]) -> list[list[int]]:
    """List what the state holds: the id of each key and its count."""
    return [[key_ids[key], count] for key, count in state.items()]


def _nothing() -> pa.Table:
    """Return no tuples, for a worker that is sent none: it comes to the barrier all the same."""
    from streamgroup.engine_runs.tuple_columns import CHOSEN

    return CHOSEN.empty_table()


def _rows(columns: list[Any]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(columns, schema=COLUMNS)
