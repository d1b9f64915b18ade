"""What metrics and tables count: measured tuples, windows, loads, pairs, waits, lives.

Loads, pairs and queues are of deliveries that were accepted, one tuple having as many as it had; times are of
tuples that finished.
"""

from collections import Counter
from collections.abc import Callable, Hashable
from fractions import Fraction
from math import floor
from typing import Any

from tests.naive.metrics.metric_formulas import imbalance, ratio
from tests.naive.replay.options import Span
from tests.naive.replay.tuple_records import Record, Run, measured_from

__all__ = [
    "alive_times",
    "busy_of",
    "cumulative_imbalances",
    "finished_of",
    "grouped",
    "latencies_of",
    "loads_of",
    "longest_queue",
    "longest_wait",
    "makespan_of",
    "measured_of",
    "pairs_of",
    "replicas_of",
    "use_of",
    "wait_ahead",
    "window_imbalance",
    "window_loads",
    "window_numbers",
    "windows_of",
]


def measured_of(run: Run, warmup: Span | None) -> list[Record]:
    """What is left after the warm-up: the run's own unless another is given."""
    left = [r for r in run.records if r.measured]
    if warmup is not None:
        left = run.records[measured_from([r.arrival_ns for r in run.records], warmup) :]
    if not left:
        raise ValueError("all tuples are warm-up")
    return left


def window_numbers(records: list[Record], window: Span) -> list[int]:
    """The window of each measured tuple; a number that no tuple has is an empty window."""
    kind, size = window
    if kind == "time":
        first = records[0].arrival_ns
        return [(r.arrival_ns - first) // size for r in records]
    length = Fraction(size) * len(records) if kind == "share" else Fraction(size)
    return [floor(i / length) for i in range(len(records))]


def windows_of(measured: list[Record], window: Span) -> dict[int, list[Record]]:
    """The non-empty windows, in order."""
    windows: dict[int, list[Record]] = {}
    for number, r in zip(window_numbers(measured, window), measured, strict=True):
        windows.setdefault(number, []).append(r)
    return windows


def grouped(records: list[Record], label: Callable[[Record], Hashable]) -> dict[Any, list[Record]]:
    groups: dict[Any, list[Record]] = {}
    for r in records:
        groups.setdefault(label(r), []).append(r)
    return groups


def finished_of(records: list[Record]) -> list[Record]:
    return [r for r in records if r.status == "finished"]


def loads_of(records: list[Record], workers: int) -> list[int]:
    counts = Counter(delivery.worker for r in records for delivery in r.deliveries)
    return [counts[w] for w in range(workers)]


def busy_of(records: list[Record], workers: int) -> list[int]:
    busy = [0] * workers
    for r in finished_of(records):
        busy[r.worker] += (r.finish_ns - r.start_ns) * r.bears
    return busy


def replicas_of(records: list[Record]) -> set[tuple[int, bytes | None]]:
    """Which worker holds which key."""
    return {(delivery.worker, r.key) for r in records for delivery in r.deliveries}


def pairs_of(records: list[Record]) -> int:
    return len(replicas_of(records))


def latencies_of(records: list[Record]) -> list[int]:
    return [r.finish_ns - r.arrival_ns for r in finished_of(records)]


def wait_ahead(record: Record, run: Run) -> int | None:
    """How long a tuple that finished waited for those before it, seen as it reached the worker."""
    return record.deliveries[-1].wait_ns if record.status == "finished" else None


def longest_wait(records: list[Record], run: Run) -> int | None:
    return max((wait_ahead(r, run) for r in finished_of(records)), default=None)


def longest_queue(run: Run, measured: list[Record], queues_known: bool | None) -> int | None:
    """Waiting tuples right after a measured one came to its worker, itself included if it waits."""
    if queues_known is None:
        queues_known = run.options.queue_capacity is not None
    options = run.options
    one_speed = not options.speed_jitter and all(place[1] == 0 for place, _ in options.slowdown_at)
    if not queues_known and not (run.constant_cost and one_speed):
        return None
    queues = [delivery.queue for r in measured for delivery in r.deliveries if delivery.queue is not None]
    return max(queues, default=None)


def makespan_of(measured: list[Record]) -> int | None:
    """From the first arrival to the last finish; None when nothing finished."""
    finishes = [r.finish_ns for r in finished_of(measured)]
    return max(finishes) - measured[0].arrival_ns if finishes else None


def alive_times(run: Run, measured: list[Record]) -> list[int]:
    """How long each worker was there between the first arrival and the last finish; 0 or less: not at all.

    A worker that left is there until its queue is finished.
    """
    begin = measured[0].arrival_ns
    makespan = makespan_of(measured)
    end = begin if makespan is None else begin + makespan
    times = []
    for worker, life in enumerate(run.lives):
        until = end if life.ended_ns is None else life.ended_ns
        if life.how == "leave":
            own = [r.finish_ns for r in finished_of(run.records) if r.worker == worker]
            until = max([until, *own])
        times.append(min(until, end) - max(life.joined_ns, begin))
    return times


def use_of(run: Run, measured: list[Record]) -> list[Fraction | None]:
    busy = busy_of(measured, len(run.lives))
    return [ratio(b, alive) if alive > 0 else None for b, alive in zip(busy, alive_times(run, measured), strict=True)]


def cumulative_imbalances(windows: dict[int, list[Record]]) -> list[Fraction | None]:
    """At the end of each window, of all until then, on the workers that there ever were until then.

    A tuple that waited at its source, or was delivered again, may be with one that came later.
    """
    found = []
    so_far: list[Record] = []
    for content in windows.values():
        so_far = so_far + content
        accepted = sum(len(r.deliveries) for r in so_far)
        found.append(imbalance(loads_of(so_far, content[-1].ever), accepted))
    return found


def window_loads(content: list[Record], workers: int) -> list[int]:
    """What the workers that are there at the window's end got in it."""
    loads = loads_of(content, workers)
    return [loads[w] for w in content[-1].alive]


def window_imbalance(content: list[Record], workers: int) -> Fraction | None:
    """Of the workers that are there at its end, in shares of all that was accepted in it."""
    return imbalance(window_loads(content, workers), total=sum(loads_of(content, workers)))
