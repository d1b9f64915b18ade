"""Accounts tuples whose workers, starts and finishes are given: measured in an engine, or computed from batches."""

import contextlib
import dataclasses
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgroup.replay.accounting.outcome import Outcome
from streamgroup.replay.input.prefetch import Ready
from streamgroup.replay.prepared_run import Run
from streamgroup.replay.simulation.chunk_driven import frozen
from streamgroup.replay.tuple_arrays import Events, each_column
from streamgroup.traces.trace import Trace

__all__ = ["Measured", "Sent", "account_measured", "longest_queue"]

I64 = NDArray[np.int64]


class Measured(NamedTuple):
    """What happened to all tuples of a trace, in its order.

    `worker` int32; `start` and `finish` int64, ns since the first arrival; of groupings that report it `hot` int32, the
    workers allowed to a tuple treated as hot (else 0), and `entries` int64, the size of the detectors.
    """

    worker: NDArray[np.int32]
    start: I64
    finish: I64
    hot: NDArray[np.int32] | None = None
    entries: I64 | None = None


class Sent(NamedTuple):
    """What the sources reported: the largest state of one, and sums over all of them."""

    largest_state: int = 0
    control_messages: int = 0
    control_bytes: int = 0


class _Accounted:
    """Stands where a simulation does; queues are counted afterwards."""

    counts_queues = False
    servers = None
    queue_max: int | None = None
    seconds = 0.0


def longest_queue(worker: NDArray[Any], reached: I64, finish: I64, since: int = 0) -> int:
    """Return the most tuples that waited for a worker at once, a new one among them that finds it busy.

    Only tuples from the place `since` on are counted as new ones.
    """
    longest = 0
    for each in np.unique(worker):
        mine = np.flatnonzero(worker == each)
        before = np.concatenate([[-1], finish[mine[:-1]]])
        waiting = np.arange(1, len(mine) + 1) - np.searchsorted(before, reached[mine], side="right")
        longest = max(longest, int(waiting[mine >= since].max(initial=0)))
    return longest


def account_measured(
    run: Run, found: Measured, sent: Sent, log_directory: Path | None = None, *, keep_pairs: bool = False
) -> Outcome:
    """Account measured tuples as those of a replay; `run` is one that has not begun, of the same trace and options.

    `log_directory` takes the assignment log; `keep_pairs` is as in `replay`.
    """
    begun = time.perf_counter()
    trace: Trace = run.trace
    # Services differ, whatever was asked for.
    run.recorder = recorder = run.make_recorder(None, entries=found.entries is not None)
    sources = run.plan.options.sources
    reached = np.zeros(trace.tuples, dtype=np.int64)

    def send(ready: Ready) -> None:
        span = slice(ready.offset, ready.offset + len(ready.key))
        source = ready.source
        if source is None:
            source = ((ready.offset + np.arange(len(ready.key))) % sources).astype(np.int32)
        events = each_column(
            Events(
                source, ready.key, found.worker[span], ready.arrival, found.start[span], found.finish[span],
                None if found.hot is None or recorder.hotness is None else found.hot[span],
                None if found.entries is None else found.entries[span],
            ),
            frozen,
        )  # fmt: skip
        results.add(ready.offset, events)
        ends = np.zeros(0, dtype=np.int64)
        first = ready.offset + ready.skip
        if ready.skip < len(ready.key):
            places = recorder.begin_windows(ready.offset, ready.window_place, ready.window_number, ready.arrival)
            ends = places + ready.offset
        if recorder.hotness is not None and events.hot is not None:
            recorder.hotness.add(ready.key, ready.arrival, events.hot, ready.offset, ready.skip, ends - ready.offset)
        if ready.skip < len(ready.key):
            measured = each_column(events, lambda column: column[ready.skip :])
            recorder.account(measured, first, ends)
        reached[span] = ready.arrival + run.edge.delay

    results = run.results(log_directory)
    with contextlib.closing(results):
        last = run.drive(run.chunks(None), results, send, None)
        nothing = each_column(
            Events(
                None, last.key[:0], found.worker[:0], last.arrival[:0], found.start[:0], found.finish[:0],
                None if found.hot is None or recorder.hotness is None else found.hot[:0],
                None if found.entries is None else found.entries[:0],
            ),
            frozen,
        )  # fmt: skip
        recorder.account(nothing, trace.tuples, np.array([trace.tuples]))
        if recorder.hotness is not None:
            recorder.hotness.end()
    recorder.largest_state[0] = sent.largest_state
    np.maximum.at(recorder.waits, found.worker[run.warmup :], (found.start - reached)[run.warmup :])
    outcome = run.outcome(results, _Accounted(), begun, keep_pairs=keep_pairs)  # type: ignore[arg-type]
    return dataclasses.replace(
        outcome, service_ns=None, queue_known=True,
        queue_max=longest_queue(found.worker, reached, found.finish, run.warmup),
        control_messages=sent.control_messages, control_bytes=sent.control_bytes,
    )  # fmt: skip
