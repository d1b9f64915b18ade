"""What workers have to send goes to the aggregators; a full one holds the worker back.

Aggregators are servers, first come, first served, that nothing holds back: when a partial result is accepted it is
known when it starts and finishes.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgroup.kernels.compiling.kernel_decorators import njit, register_jitable
from streamgroup.kernels.ordered.tournament_tree import make_tournament, set_leaf
from streamgroup.replay.aggregator_backpressure.gather_partial_results import STARTS, free_part, free_row, push_active
from streamgroup.replay.simulation.choose import Sources, choose_one
from streamgroup.replay.simulation.choose_and_serve import deliver_due, follow
from streamgroup.replay.simulation.event_loop import CHANGE, DONE
from streamgroup.replay.simulation.event_state import block
from streamgroup.replay.simulation.optional_array_elements import get
from streamgroup.replay.simulation.tuples_in_flight import InFlight
from streamgroup.replay.tuple_arrays import MAX_TIME_NS, NEVER, Records, make_records

__all__ = [
    "FULL_FLIGHT",
    "FULL_LOG",
    "FULL_POOLS",
    "FULL_SENDER",
    "LATE_RESULT",
    "NO_AGGREGATOR",
    "Queues",
    "Sending",
    "give_place",
    "make_log",
    "make_queues",
    "send",
]

I64 = NDArray[np.int64]

# More reasons to come back: no room for partial results; the log, or the costs that were drawn, are used up; no room
# for partial results in flight, or for the state of the grouping to the aggregators; and what goes wrong there.
FULL_POOLS, FULL_LOG, FULL_FLIGHT, FULL_SENDER, NO_AGGREGATOR, LATE_RESULT = range(CHANGE + 1, CHANGE + 7)

# An aggregator: when it is free, how many partial results it accepted that have not started, the first and last of
# them, and the first and last worker that waits for a place.
_AGGREGATOR = ("free", "waiting", "first_waiting", "last_waiting", "first_waiter", "last_waiter")
# A partial result that was accepted: its window and key, the aggregator, and its start and finish there.
_LOGGED = ("window", "key", "aggregator", "start", "finish")


class Queues(NamedTuple):
    """The aggregators' queues: at most `capacity` partial results each that have not started.

    `by_aggregator` are records of int64 (fields above); the tournament `place_time`, `place_aggregator` int64[1, 2 P]
    (see `kernels.ordered.tournament_tree`) is over the times at which a place opens that a worker waits for.
    """

    capacity: int
    by_aggregator: Records
    place_time: I64
    place_aggregator: I64


class Sending(NamedTuple):
    """The edge from the workers to the aggregators.

    `sources` is what its grouping sees and reports, `service_model` the service of aggregators, `delay` the network
    delay in ns; `in_flight` and `next_read` as in `Feedback`. `cost` float64 has the costs of partial results from
    number `first` on, None where all cost the same; `log` takes those that are accepted.
    """

    sources: Sources
    service_model: Any
    delay: int
    in_flight: InFlight | None
    next_read: I64 | None
    cost: NDArray[np.float64] | None
    first: int
    log: Records
    queues: Queues


def make_queues(capacity: int, aggregators: int) -> Queues:
    """Make the queues of aggregators, empty."""
    by_aggregator = make_records(_AGGREGATOR, aggregators)
    by_aggregator.free = by_aggregator.waiting = 0
    never = np.full((1, aggregators), NEVER, dtype=np.int64)
    return Queues(capacity, by_aggregator, *make_tournament(never, np.arange(aggregators)))


def make_log(size: int) -> Records:
    """Make a log with places for so many partial results."""
    return make_records(_LOGGED, size)


@njit
def _start(gathering: Any, queues: Any, aggregator: Any, now: Any) -> None:
    """Take those partial results out of an aggregator's queue that have started by now."""
    by_aggregator, rows = queues.by_aggregator, gathering.rows
    row = by_aggregator[aggregator].first_waiting
    while row >= 0 and rows[row].start <= now:
        following = rows[row].following
        free_row(gathering, row)
        by_aggregator[aggregator].waiting -= 1
        row = following
    by_aggregator[aggregator].first_waiting = row


@njit
def _set_place(gathering: Any, queues: Any, aggregator: Any, now: Any) -> None:
    """Find when a place opens at an aggregator, if a worker waits for one."""
    by_aggregator = queues.by_aggregator
    at = np.int64(NEVER)
    if by_aggregator[aggregator].first_waiter >= 0:
        _start(gathering, queues, aggregator, now)
        at = now
        if by_aggregator[aggregator].waiting >= queues.capacity:
            at = gathering.rows[by_aggregator[aggregator].first_waiting].start
    set_leaf(queues.place_time, queues.place_aggregator, 0, aggregator, at)


@njit
def give_place(gathering: Any, queues: Any, aggregator: Any) -> None:
    """Let the worker go on that has waited longest for an aggregator: a place has opened."""
    by_aggregator, senders = queues.by_aggregator, gathering.senders
    worker = by_aggregator[aggregator].first_waiter
    by_aggregator[aggregator].first_waiter = senders[worker].next_waiter
    if by_aggregator[aggregator].first_waiter < 0:
        by_aggregator[aggregator].last_waiter = -1
    senders[worker].blocked = -1
    push_active(gathering, worker, STARTS)


@njit
def _accept(
    gathering: Any, queues: Any, log: Any, aggregator: Any, row: Any, start: Any, finish: Any, now: Any
) -> None:
    """Let an aggregator accept a partial result, the first that its worker has to send."""
    by_aggregator, rows, parts = queues.by_aggregator, gathering.rows, gathering.parts
    senders, marks = gathering.senders, gathering.marks
    part = rows[row].part
    worker = parts[part].worker
    senders[worker].first_row = rows[row].following
    senders[worker].aggregator = -1
    place = marks[0].logged
    log[place].window = parts[part].window
    log[place].key = rows[row].key
    log[place].aggregator = aggregator
    log[place].start = start
    log[place].finish = finish
    marks[0].logged = place + 1
    parts[part].rows -= 1
    if parts[part].rows == 0:
        free_part(gathering, part)
    by_aggregator[aggregator].free = finish
    if start <= now:
        free_row(gathering, row)
    else:
        rows[row].start = start
        rows[row].following = -1
        if by_aggregator[aggregator].first_waiting < 0:
            by_aggregator[aggregator].first_waiting = row
        else:
            rows[by_aggregator[aggregator].last_waiting].following = row
        by_aggregator[aggregator].last_waiting = row
        by_aggregator[aggregator].waiting += 1
    _set_place(gathering, queues, aggregator, now)


@register_jitable
def send(grouping: Any, gathering: Any, costs: Any, sending: Any, worker: Any, now: Any) -> Any:
    """Send what a worker has to send until an aggregator is full; return DONE, or why it has to come back.

    `costs` float64[workers] keeps the cost of the one that an aggregator was chosen for.
    """
    senders, marks, queues = gathering.senders, gathering.marks, sending.queues
    by_aggregator = queues.by_aggregator
    while senders[worker].first_row >= 0:
        row = senders[worker].first_row
        key = gathering.rows[row].key
        # A place was given to one for which an aggregator is chosen.
        aggregator = senders[worker].aggregator
        full = False
        if not deliver_due(sending.in_flight, sending.next_read, grouping, now):
            return FULL_FLIGHT
        number = marks[0].chosen
        if marks[0].logged == sending.log.shape[0] or number - sending.first == sending.log.shape[0]:
            return FULL_LOG
        if aggregator < 0:
            if get(sending.sources.room, 0, 1) < 1:
                return FULL_SENDER
            aggregator = choose_one(grouping, sending.sources, worker, key, now)
            if aggregator < 0:
                marks[0].fault = number
                return NO_AGGREGATOR
            senders[worker].aggregator = aggregator
            costs[worker] = get(sending.cost, number - sending.first, 0.0)
            marks[0].chosen = number + 1
            _start(gathering, queues, aggregator, now)
            full = by_aggregator[aggregator].waiting >= queues.capacity or by_aggregator[aggregator].first_waiter >= 0
        if full:
            block(senders, by_aggregator, aggregator, worker, row, now)
            _set_place(gathering, queues, aggregator, now)
            return DONE
        reached = now + sending.delay
        start = max(reached, by_aggregator[aggregator].free)
        finish = start + sending.service_model.service(aggregator, key, costs[worker], number, start)
        if finish > MAX_TIME_NS:
            return LATE_RESULT
        follow(sending.in_flight, sending.next_read, aggregator, key, reached, start, finish)
        _accept(gathering, queues, sending.log, aggregator, row, start, finish, now)
    return DONE
