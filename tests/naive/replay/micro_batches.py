"""Micro-batches tuple by tuple: a batch is collected, served, committed; then the next one."""

__all__ = ["commits"]


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
