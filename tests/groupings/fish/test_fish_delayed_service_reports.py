"""FISH: what workers report of their times, when it arrives, and what the sources make of it."""

from collections import deque
from typing import Any

import numpy as np
import pytest

from streamgroup.base.errors import UsageError
from streamgroup.groupings.fish import Fish
from streamgroup.groupings.fish.backlogs import make_backlogs
from streamgroup.groupings.fish.delayed_service_reports import finished, make_reports, pass_time
from streamgroup.replay.scenario.grouping_selection import select
from tests.groupings.contexts_and_worker_changes import changed, context

MS = 1_000_000


def serve(state: Any, worker: int, tuples: int, took: int, finish: int) -> None:
    for _ in range(tuples):
        state.tick(finish - 1)
        state.executed(worker, 0, 0, finish - took, finish)


def told_fish(delay: int = 0, interval: str = "10ms", count: int = 3) -> Fish:
    selection = select(f"fish:interval={interval}")
    state: Fish = selection.module.start(
        selection.params, context(list(range(count)), sources=2)._replace(control_delay=delay)
    )
    return state


def test_a_worker_reports_at_its_fiftieth_tuple_and_then_at_the_timers() -> None:
    state = told_fish(delay=3 * MS)
    time, known = state.core.backlogs.time_per_tuple, state.core.backlogs.known
    serve(state, 1, 49, 7, 5 * MS)
    state.tick(20 * MS)
    assert (state.control_messages[0], state.control_bytes[0], known[0]) == (0, 0, 0)
    serve(state, 1, 1, 57, 21 * MS)
    assert (state.control_messages[0], state.control_bytes[0]) == (2, 32)
    state.tick(24 * MS - 1)
    assert known[0] == 0
    state.tick(24 * MS)
    # Those who have not reported count as the mean of those who have.
    assert time.tolist() == [8.0, 8.0, 8.0]
    serve(state, 0, 50, 20, 25 * MS)
    serve(state, 1, 2, 100, 26 * MS)
    state.tick(29 * MS)
    assert time.tolist() == [20.0, 8.0, 14.0]
    # At 30 ms worker 1 reports, which worker 0, idle since, does not; it arrives at 33 ms.
    state.tick(32 * MS)
    assert state.control_messages[0] == 6
    assert time.tolist() == [20.0, 8.0, 14.0]
    state.tick(33 * MS)
    assert time.tolist() == [20.0, 100.0, 60.0]


def test_a_timer_after_a_gap_fires_once_at_the_last_instant() -> None:
    state = told_fish(delay=MS)
    serve(state, 0, 50, 10, 2 * MS)
    serve(state, 0, 1, 90, 3 * MS)
    # Timers at 10, 20 and 30 ms were missed; the report is made at 30 and on its way at 30.5.
    state.tick(30 * MS + MS // 2)
    assert state.control_messages[0] == 4
    assert state.core.backlogs.time_per_tuple.tolist() == [10.0] * 3
    state.tick(31 * MS)
    assert state.core.backlogs.time_per_tuple.tolist() == [90.0] * 3


def test_reports_overtake_nobody_when_many_are_on_the_way() -> None:
    state = told_fish(delay=100 * MS, interval="1ms")
    serve(state, 0, 50, 1, MS // 2)
    for k in range(1, 80):
        serve(state, 0, 1, k, k * MS)
    seen = []
    for half in range(199, 400):
        state.tick(half * MS // 2)
        seen.append(float(state.core.backlogs.time_per_tuple[0]))
    # The last one was made by the first timer that anything happened after, at 99 ms.
    assert seen == [1.0] * 4 + [float(half // 2 - 100) for half in range(203, 358)] + [78.0] * 40 + [79.0] * 2


def test_too_many_reports_on_the_way_are_told() -> None:
    with pytest.raises(UsageError, match="on the way") as told:
        make_reports(1000, 2, 1, 10**6)
    assert told.value.hint == "raise interval, or lower --control-delay"


def test_backlogs_lose_the_share_of_a_source() -> None:
    state = told_fish(interval="1ms", count=2)
    serve(state, 0, 50, 100_000, MS // 2)
    state.core.backlogs.left[:, :] = 100.0
    state.tick(MS)
    state.choose(0, 0, MS)
    assert state.core.backlogs.since.tolist() == [0, 0]
    state.choose(0, 0, MS + 1)
    assert state.core.backlogs.since.tolist() == [MS + 1, 0]
    # Of (1 ms + 1 ns) / 0.1 ms tuples that a worker served, half were of this source; two were sent since.
    assert state.core.backlogs.left.sum() == pytest.approx(402 - 2 * 5.000005)


def test_a_joiner_counts_as_the_mean_and_a_leaver_no_more() -> None:
    state = told_fish(count=3)
    serve(state, 0, 50, 10, MS)
    serve(state, 2, 50, 40, MS)
    state.tick(MS)
    assert state.core.backlogs.time_per_tuple.tolist() == [10.0, 25.0, 40.0]
    after = changed(state, [0, 1, 3], joined=(3,), left=(2,))
    after.tick(MS)
    assert after.core.backlogs.time_per_tuple[[0, 1, 3]].tolist() == [10.0, 10.0, 10.0]
    # Who left still finishes what it has, and says so; nobody reckons with it.
    serve(after, 2, 3, 99, 2 * MS)
    serve(after, 3, 50, 70, 2 * MS)
    after.tick(10 * MS)
    assert after.core.backlogs.time_per_tuple[[0, 1, 3]].tolist() == [10.0, 40.0, 70.0]
    last = changed(after, [1], left=(0, 3))
    last.tick(11 * MS)
    assert last.core.backlogs.known[0] == 0
    assert last.core.backlogs.time_per_tuple[1] == 1.0


def test_unreported_finishes_wait_for_the_first_report() -> None:
    reports, backlogs = make_reports(2, 5, 10, 0), make_backlogs(5, np.arange(2), 10, 5.0)
    finished(reports, 0, 4, 3)
    pass_time(reports, backlogs, 100)
    assert reports.messages[0] == 0


@pytest.mark.parametrize(("interval", "delay"), [(10, 100), (10, 99), (10, 0), (7, 7), (1, 5)])
def test_a_full_circle_of_reports(interval: int, delay: int) -> None:
    """One at every timer: nearly as many are on the way as there is room for, several times round the circle."""
    reports, backlogs = make_reports(1, 2, interval, delay), make_backlogs(1, np.arange(1), 1, 1.0)
    for _ in range(50):
        finished(reports, 0, 4, 0)
    finished(reports, 0, 0, 0)
    on_the_way, told, most = deque([(delay, 4.0)]), -1.0, 0
    for now in range(1, 12 * delay + 20 * interval):
        pass_time(reports, backlogs, now)
        if now % interval == 0:
            on_the_way.append((now + delay, float(now - interval)))
            finished(reports, 0, now, now)
        while on_the_way and on_the_way[0][0] <= now:
            told = on_the_way.popleft()[1]
        most = max(most, len(on_the_way))
        assert reports.reported[0] == told
        assert reports.queue[1] == len(on_the_way)
    assert len(reports.due) - 3 <= most <= len(reports.due)
