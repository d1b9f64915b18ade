"""Micro-batches of a grouping that listens: workers report a batch before the sources choose for the next one."""

import time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgroup.base.numbers_and_durations import LONGEST_NS
from streamgroup.replay.cut_batches import Batches
from streamgroup.replay.explain_compile_error import errors_with_lines
from streamgroup.replay.input.prefetch import Ready
from streamgroup.replay.online.deliver_finished_tuples import Finishes, deliver_block
from streamgroup.replay.prepared_run import Run
from streamgroup.replay.scenario.micro_batch_option import MicroBatch
from streamgroup.replay.simulation.choose import CHOSEN, FULL_STATE, Sources, choose_block
from streamgroup.replay.simulation.chunk_driven import frozen, no_worker, too_late
from streamgroup.replay.simulation.serve import Workers, serve_block
from streamgroup.replay.tuple_arrays import Choices, Chunk, Served, Span

__all__ = ["Listening"]

I64 = NDArray[np.int64]


class _Stream(NamedTuple):
    """The tuples of the trace, as far as they were read; columns as in `Chunk`."""

    arrival: I64
    key: NDArray[np.uint32]
    cost: NDArray[Any] | None
    source: NDArray[np.int32] | None


class Listening:
    """Chooses and serves batch by batch, as the stream is read. `run` has not begun, and no control delay.

    The tuples of a batch reach their workers at its begin, after the network's delay. When all are served, and the
    engine's overhead has passed, the batch is committed. All sources hear of all finishes, in order of (finish,
    worker), before they choose for the next batch; they choose at the arrival of a tuple, or at the latest finish they
    have a report of, if that is later.
    """

    def __init__(self, run: Run, model: MicroBatch) -> None:
        tuples = run.trace.tuples
        self._run, self._overhead, self._batches = run, model.overhead_ns, Batches(model)
        self._choose = run.setup.function(choose_block, own=True)
        self._deliver = run.setup.function(deliver_block, own=True)
        self._serve = run.setup.function(serve_block)
        self._stream: _Stream | None = None
        self._read, self._done, self._committed, self._heard = 0, 0, 0, 0
        grouping = run.grouping
        self.choices = Choices(
            np.zeros(tuples, dtype=np.int32),
            None if grouping.choices is None else np.zeros(tuples, dtype=np.int32),
            None if grouping.detector is None else np.zeros(tuples, dtype=np.int64),
        )
        self.start, self.finish = np.zeros(tuples, dtype=np.int64), np.zeros(tuples, dtype=np.int64)
        # When the batch of each tuple is committed.
        self.ends = np.zeros(tuples, dtype=np.int64)
        self._waits = np.zeros_like(run.free)
        self._reports: Finishes | None = None
        self.seconds = 0.0

    def add(self, ready: Ready) -> None:
        """Read tuples, and run the batches that are complete."""
        stream = self._stream = self._stream or _room(ready, self._run.trace.tuples)
        span = slice(ready.offset, ready.offset + len(ready.key))
        values: tuple[Any, ...] = ready.arrival, ready.key, ready.cost, ready.source
        for column, found in zip(stream, values, strict=True):
            if column is not None:
                column[span] = found
        self._read = span.stop
        self._advance(whole=False)

    def end(self) -> None:
        """Run what is left; nobody hears of the last batch."""
        grouping = self._run.grouping
        with grouping.blamed("a hook failed"), errors_with_lines(grouping.source):
            self._advance(whole=True)

    def _advance(self, *, whole: bool) -> None:
        assert self._stream is not None
        begun = time.perf_counter()
        arrival = self._stream.arrival[: self._read]
        while self._done < self._read:
            cut = self._batches.cut(arrival, self._done, self._committed, whole=whole)
            if cut is None:
                break
            self._batch(self._stream, cut.begin, cut.stop)
        self.seconds += time.perf_counter() - begun

    def _batch(self, stream: _Stream, begin: int, stop: int) -> None:
        """Choose and serve the tuples up to the place `stop`, in a batch that begins at `begin`."""
        run, place = self._run, self._done
        edge, warm = run.edge, min(max(run.warmup, place), stop) - place
        if self._reports is not None:
            self._deliver(run.grouping.hooks, self._reports)
        arrival, key, cost, source = (None if column is None else column[place:stop] for column in stream)
        assert arrival is not None
        assert key is not None
        now = np.maximum(arrival, self._heard)
        sent = Chunk(place, edge.sources, frozen(now), frozen(key), None, None if source is None else frozen(source))
        choices = Choices(*(None if column is None else column[place:stop] for column in self.choices))  # type: ignore[arg-type]
        # What is sent before the first measured tuple does not count.
        self._choose_span(sent, choices, Span(0, warm), np.zeros(1, dtype=np.int64))
        if run.warmup and place <= run.warmup < stop:
            run.grouping.begin_measuring()
        self._choose_span(sent, choices, Span(warm, stop - place), run.recorder.largest_state)
        # All are there when the batch begins.
        there = np.full(stop - place, begin)
        chunk = Chunk(place, edge.sources, frozen(there), frozen(key), None if cost is None else frozen(cost), None)
        start, finish = (column[place:stop] for column in (self.start, self.finish))
        workers = Workers(edge.service, edge.delay, edge.free, self._waits, None)
        last = self._serve(workers, chunk, choices.worker, Served(start, finish), Span(0, stop - place), 0)
        self._heard = int(finish.max())
        self._committed = self._heard + self._overhead
        if last < stop - place or self._committed >= LONGEST_NS:
            raise too_late(place + min(last, stop - place - 1))
        self.ends[place:stop] = self._committed
        order = np.lexsort((choices.worker, finish))
        columns = (choices.worker, key, there + edge.delay, start, finish)
        self._reports = Finishes(*(column[order].astype(np.int64) for column in columns))
        self._done = stop

    def _choose_span(self, chunk: Chunk, choices: Choices, span: Span, largest: I64) -> None:
        """Choose for the tuples of a span; `largest` takes the largest state of a source."""
        run, grouping = self._run, self._run.grouping
        begin = span.begin
        while begin < span.end:
            sources = Sources(
                len(run.edge.free), None, None, None, grouping.choices, grouping.entries, grouping.detector,
                grouping.room, largest,
            )  # fmt: skip
            reason, begin = self._choose(grouping.hooks, sources, chunk, choices, Span(begin, span.end))
            if reason == FULL_STATE:
                grouping.grow(1)
            elif reason != CHOSEN:
                raise no_worker(grouping, run.members, chunk.offset + begin)


def _room(ready: Ready, tuples: int) -> _Stream:
    """Make room for all tuples, with the columns that a chunk has."""
    return _Stream(*(
        None if column is None else np.zeros(tuples, dtype=column.dtype)
        for column in (ready.arrival, ready.key, ready.cost, ready.source)
    ))  # type: ignore[arg-type]  # fmt: skip
