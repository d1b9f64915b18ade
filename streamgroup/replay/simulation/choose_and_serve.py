"""Both halves tuple by tuple, for groupings that see the workers, or receive feedback of completed tuples."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgroup.kernels.compiling.kernel_decorators import njit, register_jitable
from streamgroup.replay.simulation import tuples_in_flight
from streamgroup.replay.simulation.choose import CHOSEN, FULL_STATE, NO_WORKER, choose_one, report, see
from streamgroup.replay.simulation.keys_held_by_workers import hold, view_slowness
from streamgroup.replay.simulation.optional_array_elements import get, put
from streamgroup.replay.simulation.serve import occupy, serve_one
from streamgroup.replay.tuple_arrays import LOST, MAX_TIME_NS

__all__ = ["FULL_QUEUE", "TOO_LATE", "Feedback", "deliver_due", "feedback_block", "follow"]

# More reasons to stop: the queue of tuples in flight is full; a tuple finishes past the clock's end.
FULL_QUEUE, TOO_LATE = NO_WORKER + 1, NO_WORKER + 2


class Feedback(NamedTuple):
    """The completion feedback: tuples in flight, None unless the grouping receives it.

    `next_read` int64[1] is when the grouping reads it next, None if it may at any time. Before its first tuple a span
    delivers what finishes until `until`.
    """

    queue: tuples_in_flight.InFlight | None
    next_read: NDArray[np.int64] | None
    until: int


@register_jitable(forceinline=True)
def deliver_due(queue: Any, next_read: Any, grouping: Any, now: Any) -> Any:
    """Deliver what finished by now if it is read now; return whether there is room for another tuple."""
    if queue is not None:
        full = tuples_in_flight.is_full(queue)
        if full or next_read is None or next_read[0] <= now:
            tuples_in_flight.deliver(queue, next_read, grouping, now)
        if full and tuples_in_flight.is_crowded(queue):
            return False
    return True


@register_jitable(forceinline=True)
def _deliver(queue: Any, next_read: Any, grouping: Any, until: Any) -> None:
    if queue is not None:
        tuples_in_flight.deliver(queue, next_read, grouping, until)


@njit(forceinline=True)
def follow(queue: Any, next_read: Any, worker: Any, key: Any, reached: Any, start: Any, finish: Any) -> None:
    """Keep a tuple until its finish is delivered, unless it is lost; there must be room."""
    if queue is not None and finish != LOST:
        tuples_in_flight.push(queue, next_read, worker, key, reached, start, finish)


def feedback_block(grouping: Any, sources: Any, serving: Any, choices: Any, feedback: Any, span: Any) -> Any:
    """Choose and serve the tuples of a span, one after the other; return why it stopped, and before which place.

    `serving` is an `account.Serving`, the columns of all tuples of its chunk.
    """
    workers, chunk, served = serving.workers, serving.chunk, serving.served
    source: Any = np.int64((chunk.offset + span.begin) % chunk.sources)
    _deliver(feedback.queue, feedback.next_read, grouping, feedback.until)
    for place in range(span.begin, span.end):
        i = np.uint64(place)
        now, key, seq = chunk.arrival[i], np.int64(chunk.key[i]), chunk.offset + place
        if get(sources.room, 0, 1) < 1:
            return FULL_STATE, place
        if not deliver_due(feedback.queue, feedback.next_read, grouping, now):
            return FULL_QUEUE, place
        source = np.int64(get(chunk.source, i, source))
        cost = get(chunk.cost, i, 0)
        see(sources.cost, sources.slowdown, workers.service_model, key, cost, seq, now)
        view_slowness(workers.held, sources.slowdown, key, seq, now)
        worker = choose_one(grouping, sources, source, key, now)
        if worker < 0:
            return NO_WORKER, place
        choices.worker[i] = worker
        report(sources, choices, i, source, True)
        reached = now + workers.delay
        entries = hold(workers.held, worker, key, seq, now)
        start, finish = serve_one(workers, np.uint64(worker), key, cost, seq, reached, entries)
        if finish > MAX_TIME_NS:
            return TOO_LATE, place
        finish = occupy(workers, np.uint64(worker), reached, start, finish)
        put(served.start, i, start)
        put(served.entries, i, entries)
        served.finish[i] = finish
        follow(feedback.queue, feedback.next_read, worker, key, reached, start, finish)
        source += 1
        if source == chunk.sources:
            source = 0
    return CHOSEN, span.end
