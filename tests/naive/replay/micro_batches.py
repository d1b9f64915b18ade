"""Micro-batches tuple by tuple: a batch is collected, served, committed; then the next one."""

from typing import Any, NamedTuple

from tests.naive.replay.arrivals import arrival_times
from tests.naive.replay.options import Options, TraceTuple
from tests.naive.replay.service_time import Service

__all__ = ["Listened", "commits", "listening"]


def commits(
    arrivals: list[int], workers: list[int], services: list[int], *,
    tuples: int = 0, every: int = 0, overhead: int = 0, delay: int = 0,
) -> list[int]:  # fmt: skip
    """When the batch of each tuple is committed: batches of so many tuples, or of all there are at a tick of `every`.

    Ticks are at every, 2 every, ... A batch that is late for its tick begins when the one before is committed; the next
    tick is the first one after it began.
    """
    waiting = list(range(len(arrivals)))
    done: list[int] = []
    now, begun_before = 0, 0
    while waiting:
        if tuples:
            batch = waiting[:tuples]
            begins = max([now, *(arrivals[seq] for seq in batch)])
        else:
            tick = every
            while tick <= begun_before or not any(arrivals[seq] <= max(now, tick) for seq in waiting):
                tick += every
            begins = max(now, tick)
            batch = [seq for seq in waiting if arrivals[seq] <= begins]
        waiting = waiting[len(batch) :]
        work: dict[int, int] = {}
        for seq in batch:
            work[workers[seq]] = work.get(workers[seq], 0) + services[seq]
        now, begun_before = begins + delay + max(work.values()) + overhead, begins
        done += [now] * len(batch)
    return done


class Listened(NamedTuple):
    """By tuple: the worker, its service, when its batch is committed, and the workers allowed to a hot key."""

    worker: list[int]
    service: list[int]
    committed: list[int]
    allowed: list[int]


def listening(
    stream: list[TraceTuple], grouping: Any, options: Options, *, tuples: int = 0, every: int = 0, overhead: int = 0
) -> Listened:
    """Batches as in `commits`; before the tuples of a batch are chosen, workers report all of the batch before.

    Reports come in the order of the finishes, and the clock of the sources never goes back behind one.
    """
    service = Service(stream, options)
    arrivals, _ = arrival_times(stream, options, service.capacity())
    assert arrivals is not None
    found = Listened([], [], [], [])
    now, clock, begun_before = 0, 0, 0
    finished: list[tuple[int, int, int, int, int]] = []
    while len(found.worker) < len(stream):
        first = len(found.worker)
        if tuples:
            batch = list(range(first, min(first + tuples, len(stream))))
            begins = max(now, arrivals[batch[-1]])
        else:
            ticks = [every]
            while ticks[-1] <= begun_before or arrivals[first] > max(now, ticks[-1]):
                ticks.append(ticks[-1] + every)
            begins = max(now, ticks[-1])
            batch = [seq for seq in range(first, len(stream)) if arrivals[seq] <= begins]
        for finish, worker, seq, reached, start in sorted(finished):
            grouping.tick(finish - 1)
            grouping.executed(worker, stream[seq][1], reached, start, finish)
            clock = finish
        reached = begins + options.network_delay_ns
        free, finished = {}, []
        for seq in batch:
            clock = max(clock, arrivals[seq])
            source, key = seq % options.sources, stream[seq][1]
            grouping.tick(clock)
            worker = grouping.choose(source, key, clock)
            if hasattr(grouping, "observe"):
                grouping.observe(source, key, worker, clock)
            found.worker.append(worker)
            found.allowed.append(grouping.allowed)
            start = free.get(worker, reached)
            takes = service.service_ns(worker, seq, start, 1)
            free[worker] = start + takes
            found.service.append(takes)
            finished.append((start + takes, worker, seq, reached, start))
        now, begun_before = max(free.values()) + overhead, begins
        found.committed.extend([now] * len(batch))
    return found
