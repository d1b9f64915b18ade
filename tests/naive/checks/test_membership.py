"""Workers that come and go in the naive twin, worked out by hand. Times in the comments are in ms."""

from fractions import Fraction
from typing import Any

import pytest

from tests.naive.cases_by_hand import MS, To, at_ms, chosen, served, stream
from tests.naive.groupings.simple_groupings import FullKnowledge, GreedyD, Kg, Setting, Sg, SgRandom, WorkersChange
from tests.naive.kernels.hashes_and_draws import below
from tests.naive.metrics.metrics import metrics, summary
from tests.naive.replay.options import Change
from tests.naive.replay.simulate import NoWorkerError, simulate

CRASHING = [(0, b"1", 4000.0), (0, b"0", 1000.0), (1000, b"1", 4000.0), (2000, b"1", 4000.0), (9000, b"1", 1000.0)]


def test_a_crash_loses_what_was_not_finished() -> None:
    """Worker 1: #0 0..4, #2 4..8, #3 8..12. It crashes at 4: #0 is finished by then, #2 and #3 are lost.

    #4 goes to worker 0, the only one left, at 9.
    """
    grouping = To(Setting(2))
    run = simulate(CRASHING, grouping, workers=2, sources=1, changes=(Change("crash", at_ms(4)),))
    assert [r.status for r in run.records] == ["finished", "finished", "lost", "lost", "finished"]
    assert served(run) == [(1, 0, 4), (0, 0, 1), (1, None, None), (1, None, None), (0, 9, 10)]
    assert grouping.live == [0]
    found = metrics(run, window=("time", 5 * MS))
    row = found["summary"]
    assert (row["lost"], row["dropped"], row["redelivered"]) == (2, 0, 0)
    # accepted: worker 0 two, worker 1 three
    assert row["imbalance"] == pytest.approx(3 / 5 - 1 / 2)
    # windows 0 (four tuples, both alive) and 1 (one tuple, worker 0 alone; of both until then 2 to 3)
    assert [w["window_imbalance"] for w in found["windows"]] == [pytest.approx(3 / 4 - 1 / 2), 0]
    assert [w["imbalance"] for w in found["windows"]] == [pytest.approx(1 / 4), pytest.approx(1 / 10)]
    assert [w["finished"] for w in found["windows"]] == [2, 0]
    # within 0..10: worker 0 busy 2 of 10, worker 1 4 of the 4 it lived
    assert [w["utilization"] for w in found["workers"]] == [0.2, 1]
    assert row["utilization_mean"] == 0.6
    assert row["throughput_tps"] == 300
    assert row["makespan_vs_lower_bound"] is None
    # key 1 on both workers, key 0 on one
    assert row["replicas"] == 3
    baseline = simulate(CRASHING, To(Setting(2)), workers=2, sources=1)
    assert summary(run, baseline=baseline)["remapped_replicas"] == 1


def test_a_crash_delivers_again() -> None:
    """As before, but at 4 + 2 #2 and #3 come to worker 0, which is idle: 6..10, 10..14; #4 (9) runs 14..15."""
    run = simulate(
        CRASHING,
        To(Setting(2)),
        workers=2,
        sources=1,
        changes=(Change("crash", at_ms(4)),),
        redeliver=True,
        control_delay_ns=2 * MS,
    )
    assert served(run) == [(1, 0, 4), (0, 0, 1), (0, 6, 10), (0, 10, 14), (0, 14, 15)]
    assert chosen(run)[3:] == [(2, 0, 3, 1), (6, 0, 2, 0), (6, 0, 3, 0), (9, 0, 4, 0)]
    found = metrics(run)
    row = found["summary"]
    assert (row["lost"], row["redelivered"]) == (0, 2)
    # latencies from the first arrival: 4, 1, 9, 12, 6
    assert row["latency_mean_ms"] == 6.4
    # deliveries: worker 0 four, worker 1 three
    assert [w["tuples"] for w in found["workers"]] == [4, 3]
    assert row["imbalance"] == pytest.approx(4 / 7 - 1 / 2)


def test_a_drain_finishes_its_queue() -> None:
    """Worker 1 leaves at 4: #2 and #3 are finished there at 8 and 12; it lived until 12."""
    run = simulate(CRASHING, To(Setting(2)), workers=2, sources=1, changes=(Change("leave", at_ms(4), 1),))
    assert served(run) == [(1, 0, 4), (0, 0, 1), (1, 4, 8), (1, 8, 12), (0, 9, 10)]
    found = metrics(run)
    assert [w["utilization"] for w in found["workers"]] == [pytest.approx(2 / 12), 1]
    assert found["summary"]["lost"] == 0


def test_who_waits_for_a_worker_that_goes_is_chosen_anew() -> None:
    """Q = 1, worker 1 has #0 until 10 and #1 queued; #2 waits from 2. It crashes at 5, delivers again at 5 + 1.

    #2 is chosen at 5, for worker 0, where it runs 5..6 (not delivered again: it never was delivered). #3 comes at 5
    and queues there, until 6. #0 and #1 come back at 6.
    """
    tuples = [(0, b"1", 10_000.0), (1000, b"1", 1000.0), (2000, b"1", 1000.0), (5000, b"0", 1000.0)]
    run = simulate(
        tuples,
        To(Setting(2)),
        workers=2,
        sources=1,
        queue_capacity=1,
        when_full="block",
        changes=(Change("crash", at_ms(5)),),
        redeliver=True,
        control_delay_ns=1 * MS,
    )
    assert chosen(run) == [
        (0, 0, 0, 1),
        (1, 0, 1, 1),
        (2, 0, 2, 1),
        (5, 0, 2, 0),
        (5, 0, 3, 0),
        (6, 0, 0, 0),
        (6, 0, 1, 0),
    ]
    # at 6 #3 starts, #0 gets the place; #1 is chosen then, too, and waits until #0 starts at 7
    assert served(run) == [(0, 7, 17), (0, 17, 18), (0, 5, 6), (0, 6, 7)]
    assert [r.redelivered for r in run.records] == [1, 1, 0, 0]


def test_saturate_a_lost_tuple_frees_its_slot_and_one_delivered_again_keeps_it() -> None:
    """One source, max_pending = 1: #0 runs 0..10 on worker 1, which crashes at 4.

    Lost: #1 is emitted at 4. Delivered again at 4 + 1: worker 0 runs it 5..15 and #1 is emitted at 15.
    """
    tuples = [(0, b"1", 10_000.0), (0, b"0", 1000.0)]
    options: dict[str, Any] = {
        "workers": 2,
        "sources": 1,
        "arrivals": ("saturate",),
        "max_pending": 1,
        "changes": (Change("crash", at_ms(4)),),
        "control_delay_ns": MS,
    }
    assert served(simulate(tuples, To(Setting(2)), **options)) == [(1, None, None), (0, 4, 5)]
    again = simulate(tuples, To(Setting(2)), redeliver=True, **options)
    assert served(again) == [(0, 5, 15), (0, 15, 16)]
    assert [r.arrival_ns // MS for r in again.records] == [0, 15]


class Told(To):
    """Keeps the order in which it is told things."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self.heard: list[Any] = []

    def choose(self, source: int, key: bytes | None, now: int) -> int:
        self.heard.append(("choose", now // MS, source))
        return super().choose(source, key, now)

    def executed(self, worker: int, key: bytes | None, arrival: int, start: int, finish: int) -> None:
        self.heard.append(("executed", finish // MS, worker))

    def workers_changed(self, change: WorkersChange) -> None:
        super().workers_changed(change)
        self.heard.append(("changed", change.now // MS, change.live, change.joined, change.left))


def test_order_within_an_instant() -> None:
    """At 2: a join and a crash by time, then what finishes, then tuples; a leave before #3 comes after #2.

    #0 (worker 0) finishes at 2. #1 (worker 2) would finish at 3 and is lost by the crash of the highest of the live,
    which is the joiner, 3: nothing is lost. The leave named worker 2.
    """
    tuples = [(0, b"0", 2000.0), (0, b"2", 3000.0), (2000, b"1", 1000.0), (2000, b"2", 1000.0)]
    told = Told(Setting(3))
    simulate(
        tuples,
        told,
        workers=3,
        sources=1,
        changes=(Change("crash", at_ms(2)), Change("leave", ("count", 3), 2), Change("join", at_ms(2))),
    )
    assert told.heard == [
        ("choose", 0, 0),
        ("choose", 0, 0),
        ("changed", 2, [0, 1, 2, 3], [3], []),
        ("changed", 2, [0, 1, 2], [], [3]),
        ("executed", 2, 0),
        ("choose", 2, 0),
        ("changed", 2, [0, 1], [], [2]),
        ("choose", 2, 0),
        ("executed", 3, 0),
        ("executed", 3, 1),
        ("executed", 3, 2),
    ]


def test_changes_by_share_at_random_and_after_the_end() -> None:
    """Half of 5 tuples is tuple 3. The second change as listed (joins come first) draws with number 1."""
    told = Told(Setting(4))
    run = simulate(
        stream(*[(i, 1) for i in range(5)]),
        told,
        workers=4,
        changes=(Change("leave", ("share", Fraction(1, 2)), "random"), Change("join", at_ms(100))),
        seed=3,
    )
    gone = [0, 1, 2, 3][below(3, "membership", 1, 4)]
    assert [h for h in told.heard if h[0] == "changed"] == [("changed", 3, sorted({0, 1, 2, 3} - {gone}), [], [gone])]
    assert len(run.lives) == 4
    assert [len(r.alive) for r in run.records] == [4, 4, 4, 3, 3]


def test_the_last_worker_and_one_that_is_not_there() -> None:
    tuples = stream((0, 1), (5, 1))
    with pytest.raises(NoWorkerError):
        simulate(tuples, To(Setting(1)), workers=1, changes=(Change("crash", at_ms(1)),))
    with pytest.raises(NoWorkerError):
        simulate(tuples, To(Setting(2)), workers=2, changes=(Change("leave", at_ms(1), 2),))
    after = simulate(tuples, To(Setting(1)), workers=1, changes=(Change("crash", at_ms(7)),))
    assert after.lives[0].ended_ns is None


def test_a_crash_takes_what_would_have_been_dropped() -> None:
    """Delay 5, Q = 1, three at once to worker 1: they arrive at 5, the last would find it full.

    A crash at 4 finds all on the network and loses them; one at 5 loses the first two only.
    """
    tuples = [(0, b"1", 1000.0)] * 3 + [(20_000, b"0", 1000.0)]
    for at, expected in ((4, ["lost"] * 3), (5, ["lost", "lost", "dropped"])):
        run = simulate(
            tuples,
            To(Setting(2)),
            workers=2,
            queue_capacity=1,
            when_full="drop",
            network_delay_ns=5 * MS,
            changes=(Change("crash", at_ms(at)),),
        )
        assert [r.status for r in run.records] == [*expected, "finished"]
        assert sum(w["tuples"] for w in metrics(run)["workers"]) == 4 - expected.count("dropped")


def test_where_nothing_finished_there_are_no_times() -> None:
    run = simulate([(0, b"1", 1000.0)], To(Setting(2)), workers=2, changes=(Change("crash", at_ms(0.5)),))
    row = summary(run)
    assert row["lost"] == 1
    assert row["imbalance"] == 0.5
    for name in ("makespan_s", "latency_mean_ms", "latency_p99_ms", "throughput_tps", "utilization_mean"):
        assert row[name] is None
    assert metrics(run)["windows"][0]["latency_p50_ms"] is None


def change(live: list[int], joined: list[int], left: list[int]) -> WorkersChange:
    return WorkersChange(0, live, joined, left)


def test_groupings_follow_the_workers() -> None:
    sg = Sg(Setting(5, sources=2))
    assert [sg.choose(1, None, 0) for _ in range(3)] == [1, 2, 3]
    sg.workers_changed(change([0, 1, 3, 4], [], [2]))
    # source 1 was at place 4: 4 mod 4 is 0
    assert [sg.choose(1, None, 0) for _ in range(5)] == [0, 1, 3, 4, 0]
    kg = Kg(Setting(3))
    kg.workers_changed(change([0, 2, 3], [3], [1]))
    plain = Kg(Setting(3))
    keys = [b"%d" % i for i in range(50)]
    assert [kg.choose(0, key, 0) for key in keys] == [[0, 2, 3][plain.choose(0, key, 0)] for key in keys]
    random = SgRandom(Setting(4, sources=1, seed=9))
    random.workers_changed(change([0, 3], [], [1, 2]))
    assert random.choose(0, None, 0) == [0, 3][below(9, "sg_random:0", 0, 2)]


def test_a_joiner_starts_with_the_least_of_those_that_were_there() -> None:
    greedy = GreedyD(Setting(3, sources=1), d=2)
    greedy.load = [[4, 2, 7]]
    greedy.workers_changed(change([0, 2], [], [1]))
    greedy.workers_changed(change([0, 2, 3], [3], []))
    assert greedy.load == [[4, 2, 7, 4]]
    assert greedy.state_entries() == 3
    full = FullKnowledge(Setting(2))
    full.work = [9, 5]
    full.workers_changed(change([0, 1, 2], [2], []))
    assert full.work == [9, 5, 5]
