"""A replay as a micro-batch engine would run it: tuples are served batch by batch.

They are chosen as ever, unless the grouping listens to its workers: see `micro_batch_feedback`.
"""

import dataclasses
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamgroup.replay.account_given_times import Measured, Sent, account_measured
from streamgroup.replay.accounting.outcome import Outcome
from streamgroup.replay.cut_batches import Batches
from streamgroup.replay.input.chunk_cache import ChunkCache
from streamgroup.replay.input.prefetch import Ready
from streamgroup.replay.micro_batch_feedback import Listening
from streamgroup.replay.prepared_run import Run
from streamgroup.replay.scenario.micro_batch_option import MicroBatch
from streamgroup.replay.simulation.chunk_driven import FeedForward, too_late
from streamgroup.replay.tuple_arrays import Events

__all__ = ["batch_ends", "replay_in_batches"]

I64 = NDArray[np.int64]
# Of the clock, as in the simulation: 146 years.
_END = 1 << 62


def batch_ends(model: MicroBatch, arrival: I64, worker: NDArray[Any], service: I64, delay: int = 0) -> I64:
    """Return when the batch of each tuple is committed, in ns: int64[tuples].

    `arrival` is in order, `service` how long a worker takes, in ns; `delay` is that of the network, once a batch. Spark
    Structured Streaming does it so: a batch begins when its tuples have arrived and the batch before is committed; the
    next stage sees its results when all workers are done.
    """
    ends = np.empty(len(arrival), dtype=np.int64)
    work = np.zeros(int(worker.max()) + 1, dtype=np.int64)
    batches, first, committed = Batches(model), 0, 0
    while first < len(arrival):
        cut = batches.cut(arrival, first, committed)
        assert cut is not None
        begins, last = cut
        work[:] = 0
        np.add.at(work, worker[first:last], service[first:last])
        committed = begins + delay + int(work.max()) + model.overhead_ns
        if committed >= _END:
            raise too_late(last - 1)
        ends[first:last] = committed
        first = last
    return ends


def replay_in_batches(
    one: Run,
    again: Run,
    *,
    log_directory: Path | None = None,
    progress: Callable[[int], None] | None = None,
    chunk_cache: ChunkCache | None = None,
    keep_pairs: bool = False,
) -> Outcome:
    """Replay a trace in micro-batches; `one` and `again` are two runs of it that have not begun.

    A tuple finishes when its batch is committed. Its service is accounted as the last thing before, so that workers are
    busy for as long as they serve.
    """
    begun = time.perf_counter()
    model = one.plan.engine_model
    assert model is not None
    if one.grouping.has_feedback:
        listening = Listening(one, model)
        one.drive(one.chunks(chunk_cache), None, listening.add, progress)
        listening.end()
        return _accounted(one, again, listening, begun, log_directory, keep_pairs=keep_pairs)
    results, simulation = one.results(None), FeedForward(one.setup, starts=True)
    kept: list[Events] = []

    def send(ready: Ready) -> None:
        events = simulation.chunk(ready, keep=True)
        results.add(ready.offset, events)
        kept.append(events)

    last = one.drive(one.chunks(chunk_cache), results, send, progress)
    with one.grouping.blamed("a hook failed"):
        simulation.finish(last)
    first = one.outcome(results, simulation, begun, keep_pairs=keep_pairs)

    def column(name: str) -> Any:
        parts = [getattr(events, name) for events in kept]
        return None if parts[0] is None else np.concatenate(parts)

    worker, start, finish = column("worker"), column("start"), column("finish")
    ends = batch_ends(model, column("arrival"), worker, finish - start, one.edge.delay)
    found = Measured(worker, ends - (finish - start), ends, column("hot"), column("entries"))
    sent = Sent(first.source_state_entries or 0, first.control_messages, first.control_bytes)
    outcome = account_measured(again, found, sent, log_directory)
    # What follows from the choices alone is that of the run that chose.
    return dataclasses.replace(
        outcome, source_state_entries=first.source_state_entries, worker=_with_pairs(outcome, first),
        control_work_ns=first.control_work_ns, signal_delay=first.signal_delay,
        loop_seconds=first.loop_seconds, total_seconds=time.perf_counter() - begun,
        interpreted_seconds=first.interpreted_seconds,
    )  # fmt: skip


def _accounted(
    one: Run, again: Run, listening: Listening, begun: float, log_directory: Path | None, *, keep_pairs: bool
) -> Outcome:
    grouping = one.grouping
    worker, hot, entries = listening.choices
    busy = listening.finish - listening.start
    largest = one.source_state(int(one.recorder.largest_state[0]))
    sent = Sent(largest or 0, grouping.sent("control_messages"), grouping.sent("control_bytes"))
    found = Measured(worker, listening.ends - busy, listening.ends, hot, entries)
    return dataclasses.replace(
        account_measured(again, found, sent, log_directory, keep_pairs=keep_pairs), source_state_entries=largest,
        control_work_ns=grouping.control_work(), signal_delay=grouping.signal_delay(),
        loop_seconds=listening.seconds, total_seconds=time.perf_counter() - begun,
        interpreted_seconds=one.tiers.seconds if one.tiers.used_plain else 0.0,
    )  # fmt: skip


def _with_pairs(outcome: Outcome, first: Outcome) -> Any:
    return dataclasses.replace(outcome.worker, touched=first.worker.touched)
