"""Prepares chunks of the stream for the simulation in a thread of its own, a few ahead."""

import os
import queue
import threading
from collections.abc import Generator, Hashable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgroup.base.errors import DataError
from streamgroup.replay.accounting.window_ends import WindowRule
from streamgroup.replay.input.arrivals import Arrivals
from streamgroup.replay.input.chunk_cache import ChunkCache
from streamgroup.replay.input.source_and_cost_of_tuples import CostRule, SourceFactorRule, SourceRule
from streamgroup.traces.trace import Batch, Trace

__all__ = ["ChunkReader", "Ready"]

I64 = NDArray[np.int64]
_AHEAD = 3
# Bytes of a tuple in each column.
_BYTES = {"timestamp": 8, "key_id": 4, "cost": 4}
# The feed is one thread and the loop another: with two cores there is none left for decoders of their own.
_DECODERS = max(0, min(4, (os.cpu_count() or 1) - 2))


class Ready(NamedTuple):
    """A chunk for the loop: arrays read-only. `cost` and `source` are None when the loop can do without them.

    `arrival` is one 0 in a closed loop, which finds them itself. The first `skip` tuples are warm-up. The windows are
    those of the measured tuples, by the place where each begins, and empty in a closed loop. `source_factor` is the
    random factor of the time at the source, None where there is none. `held_window` int64 is the window that workers
    hold a tuple's key for, None where it follows from number and arrival of the tuple.
    """

    offset: int
    arrival: I64
    key: NDArray[np.uint32]
    cost: I64 | NDArray[np.float64] | None
    source: NDArray[np.int32] | None
    skip: int
    window_place: I64
    window_number: I64
    source_factor: NDArray[np.float64] | None = None
    held_window: I64 | None = None


def _check(batch: Batch, trace: Trace) -> None:
    """Refuse what a damaged trace could hold and compiled code would trip over; opening trusts a full manifest."""
    assert batch.key_id is not None
    fault = None
    if len(batch.key_id) and int(batch.key_id.max()) >= trace.keys:
        fault = (int(batch.key_id.argmax()), f"has a key_id that is not in the dictionary of {trace.keys} keys")
    elif batch.timestamp is not None and np.any(batch.timestamp[1:] < batch.timestamp[:-1]):
        fault = (int(np.argmax(batch.timestamp[1:] < batch.timestamp[:-1])) + 1, "is earlier than the one before it")
    elif batch.cost is not None and not np.all(sound := (batch.cost >= 0) & np.isfinite(batch.cost)):
        fault = (int(np.argmin(sound)), "has a cost that is negative or no number")
    if fault is not None:
        place, what = fault
        raise DataError(f"{trace.path}: tuple {batch.offset + place} {what}", "run streamgroup validate on the trace")


class ChunkReader:
    """Makes chunks in a thread, so that reading and decoding overlap with the loop; errors reach the consumer."""

    def __init__(
        self,
        trace: Trace,
        arrivals: Arrivals | None,
        sources: SourceRule,
        costs: CostRule,
        windows: WindowRule,
        warmup: int,
        *,
        times: bool,
        source_factor: SourceFactorRule | None = None,
    ) -> None:
        self._trace = trace
        self._arrivals = arrivals
        self._sources = sources
        self._costs = costs
        self._windows = windows
        self._warmup = warmup
        self._source_factor = source_factor
        # When the first measured tuple arrives; known once it was read.
        self.first_measured: int | None = None
        wanted = (("timestamp", times), ("key_id", True), ("cost", costs.traced))
        self._columns = [name for name, is_wanted in wanted if is_wanted]

    def _make(self, batch: Batch) -> Ready:
        assert batch.key_id is not None
        size = len(batch.key_id)
        _check(batch, self._trace)
        cost = self._costs.chunk(batch)
        source = self._sources.chunk(batch.offset, batch.key_id)
        skip = min(max(self._warmup - batch.offset, 0), size)
        place = number = np.zeros(0, dtype=np.int64)
        if self._arrivals is None:
            arrival = np.zeros(1, dtype=np.int64)
        else:
            arrival = self._arrivals.chunk(batch.offset, batch.timestamp, size)
            if skip < size:
                if self.first_measured is None:
                    self.first_measured = int(arrival[skip])
                since = arrival[skip:] - self.first_measured if self.first_measured else arrival[skip:]
                place, number = self._windows.begins(batch.offset + skip - self._warmup, since)
                place = place + skip
        factor = None if self._source_factor is None else self._source_factor.chunk(batch.offset, size)
        for array in (arrival, cost, source, place, factor):
            if array is not None:
                array.flags.writeable = False
        return Ready(batch.offset, arrival, batch.key_id, cost, source, skip, place, number, factor)

    def shared_chunks(self, chunk_cache: ChunkCache, key: Hashable) -> Generator[Ready]:
        """Yield the chunks in order, made once for all readers with an equal key, which says all they depend on.

        There is no thread of its own: the first reader that needs a chunk makes it.
        """
        fingerprint, tuples = self._trace.fingerprint(), self._trace.tuples
        width = sum(_BYTES[name] for name in self._columns)

        def batches() -> Generator[Batch]:
            yield from chunk_cache.shared(
                (fingerprint, *self._columns), tuples * width, lambda: self._trace.batches(self._columns, decoders=0)
            )

        # A chunk has the very keys of its batch, so they take no room of their own.
        own = 8 * (self._arrivals is not None) + 8 * self._costs.given + 4 * self._sources.given
        own += 8 * (self._source_factor is not None)
        yield from chunk_cache.shared((fingerprint, key), tuples * own, lambda: map(self._make, batches()))

    def chunks(self) -> Generator[Ready]:
        """Yield the chunks in order; leaving early stops the thread."""
        ready: queue.Queue[Ready | BaseException | None] = queue.Queue(_AHEAD)
        stop = threading.Event()

        def put(item: Ready | BaseException | None) -> None:
            while not stop.is_set():
                try:
                    ready.put(item, timeout=0.1)
                except queue.Full:
                    continue
                return

        def work() -> None:
            try:
                for batch in self._trace.batches(self._columns, decoders=_DECODERS):
                    if stop.is_set():
                        return
                    put(self._make(batch))
                put(None)
            except BaseException as error:  # noqa: BLE001 (handed over to the taker)
                put(error)

        thread = threading.Thread(target=work, name="streamgroup-feed", daemon=True)
        thread.start()
        try:
            while True:
                item = ready.get()
                if item is None:
                    return
                if isinstance(item, BaseException):
                    raise item
                yield item
        finally:
            stop.set()
            thread.join()
