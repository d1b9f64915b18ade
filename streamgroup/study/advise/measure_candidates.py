"""Replays a trace, or segments of it, through several groupings, and pools the figures of each."""

import dataclasses
import gc
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from streamgroup.base.errors import StreamgroupError
from streamgroup.base.memory import free_memory
from streamgroup.metrics.exact_ratios import NS_PER_MS, integers, ratio
from streamgroup.metrics.imbalance import peak_to_mean
from streamgroup.metrics.latency import quantile_ns, window_quantiles_ms
from streamgroup.replay.accounting.outcome import Outcome
from streamgroup.replay.input.chunk_cache import ChunkCache
from streamgroup.replay.replay_trace import replay
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.study.advise.recommendation import Row
from streamgroup.study.run_warnings import warnings_of
from streamgroup.study.sweep.cells_in_threads import stdout_to_stderr
from streamgroup.traces.trace import Trace
from streamgroup.traces.trace_segment import take_slice

__all__ = ["SEGMENTS", "WARMUP", "MeasuredCandidate", "Sample", "measure", "sample_of"]

# A whole trace is described by its fifths, a sample by as many segments of equal numbers of tuples.
SEGMENTS = 5
WARMUP = "20%"
_P99 = Fraction(99, 100)
# Of the memory that is free.
_FOR_CHUNKS = 0.3


@dataclass(frozen=True)
class Sample:
    """Which tuples are replayed: all of them as one run, or `segments` (first, end), each as a run of its own."""

    segments: tuple[tuple[int, int], ...]
    whole: bool

    @property
    def tuples(self) -> int:
        """Return how many there are, warm-up included."""
        return sum(end - first for first, end in self.segments)


@dataclass(frozen=True)
class MeasuredCandidate:
    """What became of a grouping: its row and what to warn of, or the `error` that ended a run of it."""

    grouping: str
    row: Row | None
    warnings: tuple[str, ...] = ()
    error: str | None = None


def sample_of(tuples: int, most: int) -> Sample:
    """Choose about `most` of a trace's tuples: all, or five segments from its beginning to its end, evenly apart."""
    size = max(most // SEGMENTS, 1)
    if size * SEGMENTS >= tuples:
        return Sample(((0, tuples),), whole=True)
    begins = [place * (tuples - size) // (SEGMENTS - 1) for place in range(SEGMENTS)]
    return Sample(tuple((begin, begin + size) for begin in begins), whole=False)


def measure(
    trace: Trace,
    sample: Sample,
    runs: Sequence[ReplayOptions],
    jobs: int,
    progress: Callable[[int], None] | None = None,
) -> list[MeasuredCandidate]:
    """Replay a sample with each of several options and put each one's segments together, in the order given.

    A whole trace begins with nothing warm, as the stream did; of a segment the first fifth is warm-up, and is not
    measured. `progress` receives the tuples of each run that is done. Which of the `jobs` threads is first changes
    nothing. An error of the options of a run is returned with it; any other error is raised.
    """
    # Segments are in memory already; of a trace all runs share what is decoded.
    chunk_cache = ChunkCache(int(free_memory() * _FOR_CHUNKS)) if sample.whole else None
    found: list[list[Outcome]] = [[] for _ in runs]
    errors: list[str | None] = [None] * len(runs)
    warnings: list[dict[str, None]] = [{} for _ in runs]
    stopped = threading.Event()
    with (
        stdout_to_stderr(one.grouping for one in runs),
        ThreadPoolExecutor(jobs, thread_name_prefix="advise") as pool,
    ):
        for segment, window, warmup in _pieces(trace, sample):
            made = [dataclasses.replace(one, window=window, warmup=warmup) for one in runs]
            pending = [
                None if error else pool.submit(_one, segment, options, chunk_cache, stopped)
                for options, error in zip(made, errors, strict=True)
            ]
            try:
                for place, future in enumerate(pending):
                    if future is None:
                        continue
                    result, warned = future.result()
                    if isinstance(result, str):
                        errors[place] = result
                    else:
                        found[place].append(result)
                        warnings[place].update(dict.fromkeys(warned))
                    if progress is not None:
                        progress(segment.tuples)
            except BaseException:
                # The pool waits for what runs: until the next chunk.
                stopped.set()
                raise
            finally:
                for future in pending:
                    if future is not None:
                        future.cancel()
            # Replays leave cycles, and with them their segment, which is large.
            gc.collect()
    return [
        MeasuredCandidate(options.grouping, None, error=error)
        if error is not None
        else MeasuredCandidate(outcomes[0].grouping, row_of(outcomes, place), tuple(warned))
        for place, (options, outcomes, error, warned) in enumerate(zip(runs, found, errors, warnings, strict=True))
    ]


def _pieces(trace: Trace, sample: Sample) -> Iterator[tuple[Trace, str, str]]:
    """Yield each segment as a trace, with its windows (whose figures describe its parts) and its warm-up."""
    if sample.whole:
        yield trace, f"{100 // SEGMENTS}%", "0"
        return
    for first, end in sample.segments:
        # A single tuple has nothing to spare.
        yield take_slice(trace, first, end), "100%", WARMUP if end - first >= SEGMENTS else "0"


class _Stopped(BaseException):
    """The result is no longer wanted: no failure of a run, so no Exception."""


def _one(
    trace: Trace, options: ReplayOptions, chunk_cache: ChunkCache | None, stopped: threading.Event
) -> tuple[Outcome | str, list[str]]:
    def check_stop(_: int) -> None:
        if stopped.is_set():
            raise _Stopped

    try:
        outcome = replay(trace, options, chunk_cache=chunk_cache, progress=check_stop)
    except StreamgroupError as error:
        return f"{error.message} ({error.hint})" if error.hint else error.message, []
    return _without_bulk(outcome), warnings_of(trace, options, outcome)


def _without_bulk(outcome: Outcome) -> Outcome:
    """Keep one histogram of all workers: many runs are held until their segments are put together."""
    histogram = outcome.worker.histogram.sum(axis=0, keepdims=True)
    return dataclasses.replace(outcome, worker=dataclasses.replace(outcome.worker, histogram=histogram))


def row_of(outcomes: Sequence[Outcome], order: int) -> Row:
    """Pool the runs of one grouping: pooled figures, the lowest and highest of any segment, the most state."""
    workers = [one.worker for one in outcomes]
    tuples = np.sum([worker.tuples for worker in workers], axis=0)
    busy = integers(np.sum([worker.busy_ns for worker in workers], axis=0))
    histogram = np.sum([worker.histogram[0] for worker in workers], axis=0)
    low, high = min(one.latency_min_ns for one in outcomes), max(one.latency_max_ns for one in outcomes)
    p99 = quantile_ns(histogram, _P99, low, high)
    latency = sum(sum(worker.latency_sum_ns) for worker in workers)
    span = sum((_lasts(one.first_arrival_ns, one.last_arrival_ns, one.measured) for one in outcomes), Fraction(0))
    replicas = [int(worker.keys.sum()) for worker in workers]
    factor = ratio(sum(replicas), sum(one.keys for one in outcomes))
    assert p99 is not None
    assert factor is not None
    return Row(
        grouping=outcomes[0].grouping,
        order=order,
        latency_p99_ms=p99 / NS_PER_MS,
        latency_mean_ms=float(Fraction(latency, int(histogram.sum()) * NS_PER_MS)),
        latency_max_ms=high / NS_PER_MS,
        peak_to_mean=float(peak_to_mean(integers(tuples)) or 0),
        worker_load_mean=ratio(sum(busy), span * len(busy)),
        worker_load_max=ratio(max(busy), span),
        # A key of several segments is one: their sum is the state of nothing.
        replicas=max(replicas),
        replication_factor=factor,
        state_entries_max=max(int(worker.keys.max()) for worker in workers),
        **_ranges([figures for one in outcomes for figures in _segments(one)]),
        **_merging(outcomes, span),
    )


def _merging(outcomes: Sequence[Outcome], span: Fraction) -> dict[str, Any]:
    """Pool what aggregators did while tuples arrived for `span` ns; nothing where there are none."""
    found = [one.aggregation for one in outcomes if one.aggregation is not None]
    results = sum(one.results for one in found)
    if not results:
        return {}
    delays = np.sum([one.delays for one in found], axis=0)
    bounds = min(one.delay_min_ns for one in found), max(one.delay_max_ns for one in found)
    p99 = quantile_ns(delays, _P99, *bounds)
    assert p99 is not None
    return {
        "aggregator_load_max": ratio(max(integers(np.sum([one.busy_ns for one in found], axis=0))), span),
        "result_delay_mean_ms": ratio(sum(one.delay_sum_ns for one in found), results * NS_PER_MS),
        "result_delay_p99_ms": p99 / NS_PER_MS,
    }


def _lasts(first: int, last: int, tuples: int) -> Fraction:
    """Return for how long tuples arrive, in ns: the time between two, once for each of them; 0 of one instant."""
    return Fraction((last - first) * tuples, tuples - 1) if tuples > 1 else Fraction(0)


def _segments(outcome: Outcome) -> Iterator[tuple[float, float, float | None]]:
    """Yield the 99th percentile in ms, peak to mean, and the load of the most loaded worker of each window."""
    windows = outcome.window
    p99 = window_quantiles_ms(windows)[:, -1].tolist()
    begins = [*integers(windows.start_ns), outcome.last_arrival_ns]
    for place, (tuples, busy) in enumerate(zip(windows.tuples, windows.busy_ns, strict=True)):
        span: int | Fraction = begins[place + 1] - begins[place]
        if place + 1 == len(p99):
            span = _lasts(begins[place], begins[place + 1], int(tuples.sum()))
        yield p99[place], float(peak_to_mean(integers(tuples)) or 0), ratio(int(busy.max()), span)


def _ranges(figures: Sequence[tuple[float, float, float | None]]) -> dict[str, Any]:
    p99, peak, load = (list(column) for column in zip(*figures, strict=True))
    loads = [value for value in load if value is not None]
    return {
        "latency_p99_low_ms": min(p99),
        "latency_p99_high_ms": max(p99),
        "peak_to_mean_low": min(peak),
        "peak_to_mean_high": max(peak),
        "worker_load_max_low": min(loads, default=None),
        "worker_load_max_high": max(loads, default=None),
    }
