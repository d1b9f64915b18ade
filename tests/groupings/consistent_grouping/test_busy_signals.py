"""What workers signal at an instant: what they did since the one before, against tuples kept in a list."""

from typing import NamedTuple

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from streamgroup.groupings.consistent_grouping.bins import BUSY, IDLE, Owners, bins_of, make_owners
from streamgroup.groupings.consistent_grouping.busy_signals import (
    SENT,
    Signals,
    exchange,
    finished,
    hired,
    make_signals,
)
from tests.naive.groupings.consistent_grouping import Worker


class State(NamedTuple):
    """What of consistent grouping the signals need."""

    signals: Signals
    owners: Owners
    tuples: NDArray[np.int64]
    control_messages: NDArray[np.int64]
    control_bytes: NDArray[np.int64]
    period: int
    delay: int
    longest: float
    idle: float


def begun(workers: int, period: int = 10, delay: int = 0, longest: float = 12.0, idle: float = 0.4) -> State:
    live, zero = np.arange(workers), np.zeros(1, dtype=np.int64)
    signals = make_signals(live, period, delay)
    sources = np.zeros(3, dtype=np.int64)
    return State(signals, make_owners(live, 2), sources, zero.copy(), zero.copy(), period, delay, longest, idle)


def last_signals(state: State) -> list[int]:
    """List the latest signals."""
    first, rounds = state.signals.clock[2:].tolist()
    found: list[int] = state.signals.signalled[(first + rounds - 1) % len(state.signals.due)].tolist()
    return found


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 12), st.integers(1, 14)), max_size=40))
def test_against_workers_that_remember_every_tuple(steps: list[tuple[int, int, int]]) -> None:
    """Each step: a tuple comes to a worker some time later, and takes so long once it is its turn."""
    state = begun(3, delay=10**3)
    twins = [Worker() for _ in range(3)]
    now, free, events = 0, [0, 0], list[tuple[int, int, int, int, int]]()
    for worker, gap, took in steps:
        now += gap
        start = max(now, free[worker])
        free[worker] = start + took
        events += [(now, 1, worker, now, start), (free[worker], 0, worker, now, start)]
    rounds, messages = 0, 0
    # What ends at an instant still counts in it, what comes then is there already: see the order of a replay.
    for at, comes, worker, arrival, start in sorted(events):
        number = (at - 1 + comes) // 10
        exchange(state, at - 1 + comes)
        if number > rounds:
            rounds, instant = number, 10 * number
            felt = [twin.feels(instant - 10, instant, 1.2, 0.4) for twin in twins]
            messages += 3 * sum(what is not None for what in felt)
            assert last_signals(state) == [{"busy": BUSY, "idle": IDLE, None: 0}[what] for what in felt]
            assert (state.control_messages[0], state.control_bytes[0]) == (messages, 8 * messages)
        if comes:
            state.signals.counters[worker, SENT] += 1
            twins[worker].sent += 1
        else:
            finished(state.signals, worker, 10, arrival, start, at)
            twins[worker].finishes(arrival, start, at)


def test_rounds_on_their_way_arrive_in_their_order_and_who_left_is_not_asked() -> None:
    state = begun(3, delay=25)
    for now in (10, 20, 30):
        exchange(state, now)
    # Made at 10 and due at 35; nobody has done anything, so all wait in the queue of the idle.
    assert state.signals.clock.tolist()[:2] == [35, 40]
    assert state.signals.clock[3] == 3
    state = state._replace(signals=hired(state.signals, np.array([0, 2])))
    exchange(state, 34)
    assert state.owners.worker[IDLE, 4] == IDLE
    exchange(state, 35)
    assert state.owners.worker[3:, 2].tolist() == [IDLE, 0, IDLE]
    assert state.signals.clock[3] == 2


def test_a_busy_one_hands_its_last_bin_to_an_idle_one() -> None:
    state = begun(2, longest=5.0, idle=0.9)
    state.signals.counters[:, SENT] = 3
    finished(state.signals, 0, 10, 0, 6, 9)
    exchange(state, 10)
    # 0 waited for 6; 1, with something to do all the time, is neither.
    assert [bins_of(state.owners, worker) for worker in (0, 1)] == [[0, 1], [2, 3]]
    state = state._replace(signals=hired(state.signals, np.array([0, 1])))
    finished(state.signals, 0, 10, 10, 11, 12)
    for _ in range(3):
        finished(state.signals, 1, 10, 10, 11, 11)
    exchange(state, 20)
    # 0 still waits for one that is idle, which 1 is now.
    assert [bins_of(state.owners, worker) for worker in (0, 1)] == [[0], [2, 3, 1]]
