"""Load-aware shuffle by hand: Flink's choice among a few workers and its credits; Storm's weights, ring and reports."""

from collections import Counter
from typing import Any

import numpy as np
import pytest

from streamgroup.base.compiling.plain_python import view
from streamgroup.base.errors import UsageError
from streamgroup.replay.scenario.grouping_selection import select
from tests.groupings.contexts_and_worker_changes import changed, context

MS = 1_000_000


def begun(text: str, workers: int, sources: int = 1, delay: int = 0) -> Any:
    params = select(f"load_aware:{text}").params
    told = context(list(range(workers)), sources, params=params)._replace(control_delay=delay)
    return select("load_aware").module.start(params, told)


def with_outstanding(text: str, tuples: list[int]) -> Any:
    state = begun(text, len(tuples))
    state.outstanding[0] = tuples
    return view(state)


def send(plain: Any, now: int, source: int = 0) -> int:
    plain.tick(now)
    worker = int(plain.choose(source, 0, now))
    plain.observe(source, 0, worker, now)
    return worker


@pytest.mark.parametrize(
    ("traverse", "tuples", "worker"),
    [
        # Those of Flink's own test that tell of one buffer a tuple.
        (2, [2, 3, 4], 0),
        (2, [0, 0, 0], 0),
        (3, [2, 3, 4], 0),
        (2, [3, 2, 4, 2, 3, 4], 1),
        (4, [2, 3, 4, 2, 3, 4], 0),
        (4, [2, 3, 4, 0, 3, 4], 3),
        (4, [2, 3, 0, 2, 3, 4], 2),
        # A worker that is not looked at does not count, nor does one look at a worker twice.
        (2, [5, 4, 0], 1),
        (65536, [5, 4, 3], 2),
    ],
)
def test_flink_takes_the_idlest_of_the_next_workers(traverse: int, tuples: list[int], worker: int) -> None:
    assert with_outstanding(f"traverse={traverse}", tuples).choose(0, 0, 0) == worker


def test_flink_compares_whole_buffers_and_then_tuples() -> None:
    assert with_outstanding("buffer=10", [12, 9, 0]).choose(0, 0, 0) == 1
    assert with_outstanding("buffer=10", [19, 12, 21]).choose(0, 0, 0) == 1


def test_flink_goes_on_behind_the_last_choice_and_sources_start_apart() -> None:
    state = view(begun("rule=flink", 3, sources=5))
    assert [send(state, 0, source) for source in range(5)] == [0, 1, 2, 0, 1]
    assert [send(state, 0) for _ in range(4)] == [1, 2, 0, 1]


def test_a_credit_goes_to_the_source_of_each_buffer() -> None:
    """Worker 0 is sent tuples of sources 0, 1, 0, 0, 1: of two in a buffer the third and the last are credited."""
    made = begun("buffer=2", 1, sources=2, delay=5)
    state = view(made)
    room = made.room[0]
    for source in (0, 1, 0, 0, 1):
        send(state, 0, source)
    assert made.outstanding.tolist() == [[3], [2]]
    assert made.room[0] == room - 5
    for place in range(5):
        state.tick(10 * place - 1)
        state.executed(0, 0, 0, 0, 10 * place)
    assert made.control_messages.tolist() == [2]
    assert made.control_bytes.tolist() == [16]
    # Those of the finishes at 20 and 40 arrive at 25 and 45.
    assert made.outstanding.tolist() == [[1], [2]]
    state.tick(44)
    assert made.outstanding.tolist() == [[1], [2]]
    state.tick(45)
    assert made.outstanding.tolist() == [[1], [0]]
    assert made.room[0] == room


def test_more_nodes_keep_what_is_in_the_queues() -> None:
    made = begun("rule=flink", 2)
    state = view(made)
    for _ in range(100):
        send(state, 0)
    larger = made.grown()
    assert larger.room[0] == made.room[0] + len(made.node)
    state = view(larger)
    for _ in range(len(made.node)):
        send(state, 0)
    assert larger.outstanding.sum() == 100 + len(made.node)
    for _ in range(larger.outstanding[0, 0]):
        state.executed(0, 0, 0, 0, 7)
    state.tick(7)
    assert larger.outstanding[0].tolist() == [0, (100 + len(made.node)) // 2]


SHORT = "rule=storm,report=10ms,refresh=10ms,queue=40"


def test_storm_fills_its_ring_by_weight() -> None:
    made = begun(SHORT, 3, sources=2)
    assert Counter(made.ring[0].tolist()).keys() == {0, 1, 2}
    assert all(333 <= count <= 334 for count in Counter(made.ring[0].tolist()).values())
    assert made.ring[0].tolist() != made.ring[1].tolist()
    state = view(made)
    assert [send(state, 0) for _ in range(1001)] == [*made.ring[0].tolist(), made.ring[0, 0]]


def test_storm_weights_fall_fast_and_grow_slowly() -> None:
    """Worker 1 has 3 tuples more than worker 0, over 5 % of 40, until it has finished one."""
    made = begun(SHORT, 2)
    state = view(made)
    for worker in (0, 1, 1, 1, 1):
        state.observe(0, 0, worker, 0)
    weights = []
    for at in (9, 10, 20, 30):
        state.tick(at * MS)
        weights.append(made.worker[:, 4].tolist())
    assert weights == [[100, 100], [100, 90], [100, 80], [100, 70]]
    counts = Counter(made.ring[0].tolist())
    assert 588 <= counts[0] <= 589
    state.executed(1, 0, 0, 0, 35 * MS)
    state.tick(40 * MS)
    assert made.worker[:, 4].tolist() == [100, 71]
    assert made.control_messages.tolist() == [2 * 4]
    assert made.clock[3] == 4


def test_storm_reports_take_the_control_delay() -> None:
    made = begun(SHORT, 2, delay=3 * MS)
    state = view(made)
    for _ in range(9):
        state.observe(0, 0, 1, 0)
    state.tick(12 * MS)
    assert made.worker[:, 4].tolist() == [100, 100]
    state.tick(20 * MS)
    assert made.worker[:, 4].tolist() == [100, 90]
    with pytest.raises(UsageError, match="control delay"):
        begun(SHORT, 2, delay=10 * MS)


def test_a_long_pause_is_as_many_short_ones() -> None:
    """Nothing changes in it but the number of the refresh, from which the draws are."""
    made, other = begun(SHORT, 3), begun(SHORT, 3)
    state = view(made)
    for at in range(10, 2001, 10):
        state.tick(at * MS)
    view(other).tick(2000 * MS)
    assert np.array_equal(made.ring, other.ring)
    assert made.clock.tolist() == other.clock.tolist()
    assert made.control_messages.tolist() == other.control_messages.tolist() == [3 * 200]


@pytest.mark.parametrize(("report", "delay"), [("10ms", 0), ("3ms", 2), ("7ms", 0), ("25ms", 24)])
def test_reports_that_repeat_themselves_are_counted_and_skipped(report: str, delay: int) -> None:
    """Worker 1 does not finish, so weights go on falling; it makes no difference how often one looks."""
    text = f"rule=storm,report={report},refresh=10ms,queue=40"
    made, other = begun(text, 3, sources=2, delay=delay * MS), begun(text, 3, sources=2, delay=delay * MS)
    for state in (made, other):
        for _ in range(9):
            view(state).observe(0, 0, 1, 0)
    for at in range(1, 301):
        view(made).tick(at * MS)
    view(other).tick(300 * MS)
    assert made.worker[:, 4].tolist() == other.worker[:, 4].tolist() == [100, 0, 100]
    assert np.array_equal(made.ring, other.ring)
    assert made.clock.tolist() == other.clock.tolist()
    assert made.control_messages.tolist() == other.control_messages.tolist() == [6 * (300 // int(report[:-2]))]


def test_a_pause_takes_no_time_for_each_report() -> None:
    """There are 3.6 x 10^9 of them."""
    made = begun("rule=storm,report=1us,refresh=1h", 2)
    view(made).observe(0, 0, 1, 0)
    view(made).tick(3_600_000 * MS - 1)
    assert made.control_messages.tolist() == [2 * (3_600_000_000 - 1)]
    assert made.worker[1, 3] == 1


def test_storm_builds_its_ring_anew_when_workers_change() -> None:
    made = begun(SHORT, 2)
    for _ in range(9):
        view(made).observe(0, 0, 1, 0)
    view(made).tick(10 * MS)
    after = changed(made, [1, 2], joined=(2,), left=(0,), sources=1)
    assert after.worker[[1, 2], 4].tolist() == [90, 100]
    counts = Counter(after.ring[0].tolist())
    assert counts.keys() == {1, 2}
    assert 473 <= counts[1] <= 475
    # More than 200 workers have more slots.
    assert changed(made, list(range(300)), joined=tuple(range(2, 300)), sources=1).slots.tolist() == [1500]


def test_storm_refuses_rings_that_are_too_large_at_the_start_and_when_workers_join() -> None:
    with pytest.raises(UsageError, match="rings of 1000 slots at 140000 sources"):
        begun(SHORT, 2, sources=140_000)
    with pytest.raises(UsageError, match="rings of 1500 slots at 90000 sources"):
        changed(begun(SHORT, 2), list(range(300)), joined=tuple(range(2, 300)), sources=90_000)
