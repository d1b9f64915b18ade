"""Queues with an end and closed loops in the naive twin, worked out by hand. Times in the comments are in ms."""

from typing import Any

import pytest

from tests.naive.cases_by_hand import MS, To, chosen, served, stream
from tests.naive.groupings.simple_groupings import Setting
from tests.naive.metrics.metrics import summary
from tests.naive.replay.simulate import simulate


def test_block() -> None:
    """Q = 1, one worker of 10 a tuple, sources 0 and 1, deals 0 1 0 1 0 at 0, 1, 2, 3, 4.

    #0 starts at 0. #1 waits in the queue. #2 of source 0 (at 2) and #3 of source 1 (at 3) find it full. #4 of
    source 0 comes at 4 behind #2. At 10 #1 starts: the place goes to #2, which waits longer, and source 0 may
    choose for #4: full again, waits since 10. At 20 #2 starts: #3 has waited since 3, gets it. At 30: #4.
    """
    run = simulate(
        stream((0, 10), (1, 10), (2, 10), (3, 10), (4, 10)),
        To(Setting(1)),
        workers=1,
        sources=2,
        queue_capacity=1,
        when_full="block",
    )
    assert served(run) == [(0, 0, 10), (0, 10, 20), (0, 20, 30), (0, 30, 40), (0, 40, 50)]
    assert chosen(run) == [(0, 0, 0, 0), (1, 1, 1, 0), (2, 0, 2, 0), (3, 1, 3, 0), (10, 0, 4, 0)]
    found = summary(run)
    # latency counts from the arrival: 10, 19, 28, 37, 46
    assert found["latency_mean_ms"] == 28
    assert found["queue_max"] == 1
    # seen where they join: #1 waits 9 of its own; the others get their place just as one starts, 10 before theirs
    assert found["backlog_max_ms"] == 10
    assert found["dropped"] == found["lost"] == 0


def test_a_blocked_source_does_not_hold_up_others_nor_other_workers() -> None:
    """Q = 1. Source 0 sends #0 #2 #4 to worker 0, where #4 waits from 0 to 10, and #6 to worker 1 only then.

    Source 1 sends #1, #3, #5, #7 to worker 1, at once as far as there is room: #1 starts, #3 queues, #5 waits,
    for worker 1 takes 4 for each: its place opens at 4.
    """
    keys = [b"0", b"1", b"0", b"1", b"0", b"1", b"1", b"1"]
    costs = [10, 4, 10, 4, 10, 4, 4, 4]
    tuples = [(0, key, cost * 1000.0) for key, cost in zip(keys, costs, strict=True)]
    run = simulate(tuples, To(Setting(2)), workers=2, sources=2, queue_capacity=1, when_full="block")
    # at 4 #3 starts, #5 gets in, #7 waits since 4; at 8 #5 starts, #7 gets in; at 10 #2 starts, #4 gets in,
    # then #6 of source 0 is chosen: worker 1 has #7 in its queue until 12, where #6 gets in; it starts at 16
    assert served(run) == [
        (0, 0, 10),
        (1, 0, 4),
        (0, 10, 20),
        (1, 4, 8),
        (0, 20, 30),
        (1, 8, 12),
        (1, 16, 20),
        (1, 12, 16),
    ]
    assert chosen(run)[-2:] == [(4, 1, 7, 1), (10, 0, 6, 1)]


def test_block_with_a_network_takes_the_place_at_the_choice() -> None:
    """Delay 5, Q = 1, cost 1, all at 0, one source: #0 is on its way and holds the place until it starts at 5.

    #1 gets it at 5, arrives at 10 and starts then, having held it until 10; #2 gets it at 10.
    """
    run = simulate(
        stream((0, 1), (0, 1), (0, 1)),
        To(Setting(1)),
        workers=1,
        sources=1,
        queue_capacity=1,
        when_full="block",
        network_delay_ns=5 * MS,
    )
    assert served(run) == [(0, 5, 6), (0, 10, 11), (0, 15, 16)]
    assert chosen(run) == [(0, 0, 0, 0), (0, 0, 1, 0), (5, 0, 2, 0)]


def test_drop() -> None:
    """Q = 1, cost 10: #0 starts at 0, #1 queues at 1, #2 (2) is dropped; at 10 #1 has started: #3 queues, #4 not."""
    run = simulate(
        stream((0, 10), (1, 10), (2, 10), (10, 10), (10, 10)),
        To(Setting(1)),
        workers=1,
        queue_capacity=1,
        when_full="drop",
    )
    assert served(run) == [(0, 0, 10), (0, 10, 20), (0, None, None), (0, 20, 30), (0, None, None)]
    assert [r.status for r in run.records] == ["finished", "finished", "dropped", "finished", "dropped"]
    found = summary(run)
    assert found["dropped"] == 2
    assert found["imbalance"] == 0
    # 3 tuples of 10 within 30, waits of 0, 9 and 10, latencies 10, 19, 20
    assert found["throughput_tps"] == 100
    assert found["utilization_mean"] == 1
    assert found["latency_mean_ms"] == pytest.approx(49 / 3)
    assert found["backlog_max_ms"] == 10
    assert found["queue_max"] == 1
    assert found["makespan_vs_lower_bound"] is None


def test_drop_is_judged_where_the_tuple_arrives() -> None:
    """Delay 3, cost 4, Q = 1: #0 (0) runs 3..7; #1 (1) arrives at 4, queues until 7; #2 (3) arrives at 6: dropped;

    #3 (4) arrives at 7, when #1 starts: queues.
    """
    run = simulate(
        stream((0, 4), (1, 4), (3, 4), (4, 4)),
        To(Setting(1)),
        workers=1,
        queue_capacity=1,
        when_full="drop",
        network_delay_ns=3 * MS,
    )
    assert served(run) == [(0, 3, 7), (0, 7, 11), (0, None, None), (0, 11, 15)]


def test_saturate_one_pending_two_sources() -> None:
    """max_pending = 1, one worker, costs 3, 1, 2, 1.

    At 0 source 0 emits #0 (0..3) and source 1 #1 (3..4). At 3 source 0 is free: #2 (4..6); at 4 source 1: #3 (6..7).
    """
    costs = [3, 1, 2, 1]
    run = simulate(
        stream(*[(0, cost) for cost in costs]),
        To(Setting(1)),
        workers=1,
        sources=2,
        arrivals=("saturate",),
        max_pending=1,
    )
    assert served(run) == [(0, 0, 3), (0, 3, 4), (0, 4, 6), (0, 6, 7)]
    assert [(r.arrival_ns // MS, r.source) for r in run.records] == [(0, 0), (0, 1), (3, 0), (4, 1)]
    assert run.offered_load is None
    found = summary(run)
    # from emission: 3, 4, 3, 3
    assert found["latency_mean_ms"] == 13 / 4
    assert found["offered_load"] is None
    assert found["makespan_vs_lower_bound"] == 1


def test_saturate_deals_to_the_source_that_is_free_first_and_others_wait_for_their_own() -> None:
    """Two workers, max_pending = 1: source 0 has #0 on worker 0 for 10, source 1 #1 on worker 1 for 1.

    Dealt as they can: source 1 takes all the rest, one a ms. By key all belong to one source: one after another.
    """
    rows = [(b"0", 10), (b"1", 1), (b"1", 1), (b"1", 1)]
    tuples = [(0, key, cost * 1000.0) for key, cost in rows]
    options: dict[str, Any] = {"workers": 2, "sources": 2, "arrivals": ("saturate",), "max_pending": 1}
    run = simulate(tuples, To(Setting(2)), **options)
    assert [(r.arrival_ns // MS, r.source) for r in run.records] == [(0, 0), (0, 1), (1, 1), (2, 1)]
    one = simulate([(0, b"0", c * 1000.0) for _, c in rows], To(Setting(2)), source_assignment="key", **options)
    assert [r.arrival_ns // MS for r in one.records] == [0, 10, 11, 12]
