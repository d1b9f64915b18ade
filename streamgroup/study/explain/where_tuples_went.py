"""Which worker got which tuples: counted where the worker is a function of the key, else read from a log."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from streamgroup.base.errors import DataError
from streamgroup.engines.keys.typed_key_arrays import Keys as TypedKeys
from streamgroup.replay.accounting.window_ends import WindowRule
from streamgroup.replay.input.make_arrivals import make_arrivals, tuples_before
from streamgroup.replay.input.prefetch import ChunkReader, Ready
from streamgroup.replay.input.source_and_cost_of_tuples import CostRule, SourceRule
from streamgroup.replay.scenario.plan import Plan
from streamgroup.replay.scenario.typed_keys import typed_keys
from streamgroup.study.key_destinations import HashDestinations, HashedKeys
from streamgroup.study.read_run import AGAIN
from streamgroup.traces.trace import Trace

__all__ = [
    "Assignment", "Counted", "Logged", "WindowLoads", "counted", "keys_of", "stamp_at", "warmup_of", "window_loads",
]  # fmt: skip

I64 = NDArray[np.int64]


class WindowLoads(NamedTuple):
    """Windows that have a tuple: from `first` to `end` - 1, int64[r], and `tuples` of each worker, int64[r, n]."""

    first: I64
    end: I64
    tuples: I64

    def worst(self) -> int:
        """Return the row of the window in which a worker has most tuples over the mean."""
        over = self.tuples.max(axis=1) * self.tuples.shape[1] - self.tuples.sum(axis=1)
        return int(over.argmax())


class Assignment(Protocol):
    """What is known of where tuples went."""

    def on_worker(self, worker: int, count: I64, first: int, end: int) -> tuple[I64, I64]:
        """Return the keys that a worker got among the tuples `first` to `end` - 1, and how many of each.

        `count` int64[keys] is how often each key comes among them.
        """


class Counted:
    """Every key has one worker: `worker_of` uint16[keys]."""

    def __init__(self, worker_of: NDArray[np.uint16]) -> None:
        self.worker_of = worker_of

    def on_worker(self, worker: int, count: I64, first: int, end: int) -> tuple[I64, I64]:
        """Take the counts of the worker's keys."""
        del first, end
        ids = np.flatnonzero((self.worker_of == worker) & (count > 0))
        return ids, count[ids]


class Logged:
    """The log of a replay says where each tuple went, the last time that it was sent; `workers` there ever were."""

    def __init__(self, directory: Path, workers: int) -> None:
        self._log, self._workers, self._directory = pl.scan_parquet(directory / "*.parquet"), workers, directory

    def _collect(self, query: pl.LazyFrame) -> pl.DataFrame:
        """Evaluate a query of the log; DataError where a part of it is damaged."""
        try:
            return query.collect(engine="streaming")
        except (OSError, pl.exceptions.PolarsError):
            raise DataError(f"{self._directory} cannot be read", f"{AGAIN}, or explain the trace") from None

    def on_worker(self, worker: int, count: I64, first: int, end: int) -> tuple[I64, I64]:
        """Count the worker's tuples by key."""
        del count
        found = self._collect(
            self._log.filter(pl.col("seq").is_between(first, end - 1), pl.col("worker") == worker)
            .group_by("key_id")
            .agg(pl.len())
            .sort("key_id")
        )
        return found["key_id"].cast(pl.Int64).to_numpy(), found["len"].cast(pl.Int64).to_numpy()

    def before(self, at_ns: int) -> int:
        """Count the tuples that arrive before a time."""
        return int(self._collect(self._log.filter(pl.col("arrival_ns") < at_ns).select(pl.len())).item())

    def loads(self, rule: WindowRule, warmup: int) -> WindowLoads:
        """Count the tuples of each worker in each window."""
        measured = self._log.filter(pl.col("seq") >= warmup)
        if rule.width_ns is None:
            number = (pl.col("seq") - warmup) * rule.length.denominator // rule.length.numerator
        else:
            begin = self._collect(measured.select(pl.col("arrival_ns").min())).item()
            number = (pl.col("arrival_ns") - begin) // rule.width_ns
        found = self._collect(
            measured.group_by("worker", window=number).agg(
                pl.col("seq").min().alias("first"), pl.col("seq").max().alias("last"), pl.len()
            )
        )
        windows = found.group_by("window").agg(pl.col("first").min(), pl.col("last").max()).sort("window")
        row = windows.select("window").with_row_index("row")
        placed = found.join(row, "window")
        tuples = np.zeros((windows.height, self._workers), dtype=np.int64)
        tuples[placed["row"].to_numpy(), placed["worker"].to_numpy()] = placed["len"].to_numpy()
        return WindowLoads(windows["first"].to_numpy(), windows["last"].to_numpy() + 1, tuples)


def keys_of(trace: Trace) -> HashedKeys:
    """Return the keys of a trace by id, as a grouping may know them; they are read once for each type."""
    dictionary = trace.dictionary()
    known: dict[str, TypedKeys] = {}

    def typed(kind: str) -> TypedKeys:
        if kind not in known:
            known[kind] = typed_keys(trace, kind)
        return known[kind]

    return HashedKeys(dictionary.hash_lo, dictionary.hash_hi, typed)


def counted(place: HashDestinations, keys: HashedKeys) -> Counted | None:
    """Return where each key goes; None where that is not a function of the key alone."""
    found = place.destinations(keys)
    if found.workers.shape[1] != 1 or found.remark:
        return None
    return Counted(np.ascontiguousarray(found.workers[:, 0]).astype(np.uint16))


def warmup_of(trace: Trace, plan: Plan) -> int:
    """Return how many of the first tuples are not measured."""
    return tuples_before(trace, plan, plan.warmup_ns) if plan.warmup is None else plan.warmup


def stamp_at(trace: Trace, place: int) -> int:
    """Return the timestamp of a tuple, us since 1970."""
    batch = next(trace.batches(("timestamp",), place, decoders=0))
    assert batch.timestamp is not None
    return int(batch.timestamp[0])


def window_loads(trace: Trace, plan: Plan, warmup: int, worker_of: NDArray[np.uint16]) -> WindowLoads:
    """Count the tuples of each worker in each window of an open loop, in one pass over the trace."""
    workers = plan.options.workers
    numbers: list[int] = []
    firsts: list[int] = []
    rows: list[I64] = []
    for ready in _stream(trace, plan, warmup):
        ends = [*ready.window_place[1:].tolist(), len(ready.key)]
        for begin, end, number in zip(ready.window_place.tolist(), ends, ready.window_number.tolist(), strict=True):
            if not numbers or numbers[-1] != number:
                numbers.append(number)
                firsts.append(ready.offset + begin)
                rows.append(np.zeros(workers, dtype=np.int64))
            rows[-1] += np.bincount(worker_of[ready.key[begin:end]], minlength=workers)
    first = np.array(firsts, dtype=np.int64)
    return WindowLoads(first, np.append(first[1:], trace.tuples), np.array(rows))


def _stream(trace: Trace, plan: Plan, warmup: int) -> Iterator[Ready]:
    """Read keys and windows of a stream; sources and costs do not matter."""
    return ChunkReader(
        trace,
        make_arrivals(trace, plan),
        SourceRule("shuffle", 1, 0, trace.dictionary()),
        CostRule(1, None, None, 0, by_worker=False),
        WindowRule(plan.options.window, trace.tuples - warmup),
        warmup,
        times=plan.arrivals.name == "trace",
    ).chunks()
