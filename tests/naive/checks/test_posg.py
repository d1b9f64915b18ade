"""POSG in the naive twin: worked examples, traces by hand, properties. Times in the comments are in ms."""

import random
from fractions import Fraction
from itertools import permutations, product
from math import ceil, e, inf, log2
from typing import Any

import pytest

from tests.naive.cases_by_hand import MS, SECOND, at_ms, served
from tests.naive.groupings.posg import Matrices, Posg, change_of
from tests.naive.groupings.simple_groupings import FullKnowledge, Setting, Sg, WorkersChange
from tests.naive.kernels.hashes_and_draws import candidate
from tests.naive.kernels.shared_helpers import sketch_column
from tests.naive.replay.arrivals import arrival_times
from tests.naive.replay.options import Change, Options
from tests.naive.replay.simulate import simulate
from tests.naive.worked_examples import example

Row = tuple[int, bytes, float]


def in_seconds(arrivals: list[int], costs: list[int]) -> list[Row]:
    return [(t * 1_000_000, b"%d" % cost, cost * 1e6) for t, cost in zip(arrivals, costs, strict=True)]


def test_posg_01_round_robin() -> None:
    given, expected = example("POSG-01")
    run = simulate(in_seconds(given["arrivals_s"], given["exec_s"]), Posg(Setting(2, 1)), workers=given["k"], sources=1)
    assert [r.worker for r in run.records] == expected["assignment"]
    latencies = [((r.finish_ns or 0) - r.arrival_ns) // SECOND for r in run.records]
    assert latencies == expected["completion_s"]
    assert sum(latencies) == expected["cumulated_s"]
    waits = [((r.start_ns or 0) - r.arrival_ns) // SECOND for r in run.records]
    assert sum(waits) == expected["wasted_s"]


def test_posg_03_tightness() -> None:
    given, expected = example("POSG-03")
    k, costs = given["k"], given["w"]
    tuples = in_seconds([0] * len(costs), costs)
    run = simulate(tuples, FullKnowledge(Setting(k, 1)), workers=k, sources=1)
    makespan = max(r.finish_ns or 0 for r in run.records)
    assert makespan == expected["greedy_makespan"] * SECOND
    best = min(
        max(sum(c for c, w in zip(costs, workers, strict=True) if w == op) for op in range(k))
        for workers in product(range(k), repeat=len(costs))
    )
    assert best == expected["opt_makespan"]
    assert round(makespan / SECOND / best, 6) == expected["ratio"]


def test_posg_05_empty_cells() -> None:
    """The key's cells are 0 in row 0 and 2 in row 1."""
    _, expected = example("POSG-05")
    key = b"d"
    at = [sketch_column(key, row, 4) for row in range(2)]
    counts, times = [[0] * 4, [0] * 4], [[0] * 4, [0] * 4]
    others = [c for c in range(4) if c != at[0]]
    for column, count, time in zip(others, (2, 2, 1), (10, 14, 3), strict=True):
        counts[0][column], times[0][column] = count, time
    counts[1][at[1]], times[1][at[1]] = 2, 100
    matrices = Matrices(counts, times)
    places = [counts[row][at[row]] for row in range(2)]
    assert (min(places), places.index(min(places))) == (expected["F_min"], expected["d_min_row"])
    assert expected["recommended"] == f"sum(W[0])/sum(F[0]) = 27/5 = {matrices.estimate(key)}"
    assert expected["authors_code"] == f"{matrices.estimate(key, 'zero'):.0f} (rounds NaN to 0)"
    counts[0][at[0]], times[0][at[0]] = 2, 7
    assert matrices.estimate(key, "zero") == 3.5
    assert matrices.estimate(key) == 3.5
    assert Matrices([[0]], [[0]]).estimate(key) == 0.0


def test_unseen_items_of_no_weight_go_to_one_worker() -> None:
    for unseen, expected in (("zero", [0, 0, 0, 0]), ("mean", [0, 1, 0, 1])):
        grouping = Posg(Setting(2, 1), rows=1, columns=4, unseen=unseen)
        column = sketch_column(b"a", 0, 4)
        other = [int(c == (column + 1) % 4) for c in range(4)]
        grouping.known = {w: Matrices([other], [[10 * f for f in other]]) for w in range(2)}
        grouping.schedulers[0].state = "RUN"
        assert [grouping.choose(0, b"a", 0) for _ in range(4)] == expected
        # while all are sent to, too
        grouping.schedulers[0].begin_sending()
        before = list(grouping.schedulers[0].estimated)
        for _ in range(2):
            grouping.choose(0, b"a", 0)
        added = 10.0 if unseen == "mean" else 0.0
        assert grouping.schedulers[0].estimated == [value + added for value in before]


def test_posg_07_synchronisation() -> None:
    given, expected = example("POSG-07")
    grouping = Posg(Setting(given["k"], 1))
    own = grouping.schedulers[0]
    own.state, own.epoch, own.estimated = "WAIT_ALL", given["epoch"], list(given["C_hat_when_all_replies"])
    true, sent = given["C_true_at_marker_end"], given["C_hat_at_marker"]
    assert [a - b for a, b in zip(true, sent, strict=True)] == expected["delta"]
    for number, reply in enumerate(given["replies"]):
        assert own.state == "WAIT_ALL"
        grouping.replies[0, reply["op"]] = (number, reply["epoch"], reply["delta"])
        grouping.tick(number)
        # what is of another epoch is ignored
        assert (reply["op"] in own.replies) == (number > 0)
    assert (own.estimated, own.state) == (expected["C_hat_after"], expected["state"])


def test_posg_08_sizes() -> None:
    given, expected = example("POSG-08")
    assert [ceil(log2(1 / pair["delta"])) for pair in given["pairs"]] == expected["rows"]
    assert [round(e / pair["eps"], 3) for pair in given["pairs"]] == expected["e_over_eps"]
    assert [ceil(e / pair["eps"]) for pair in given["pairs"]] == expected["cols_ceil"]


def test_posg_10_intervals() -> None:
    """Over-provisioning p is a utilization of 1/p."""
    given, expected = example("POSG-10")
    costs = [given["w_min"] + i for i in range(given["w_n"])]
    mean = Fraction(sum(costs), len(costs))
    assert mean == Fraction(str(expected["mean_exec_ms_uniform_items"]))
    capacity = given["k"] * 1000 / mean
    for percent in given["overprovisioning_pct"]:
        options = Options(given["k"], arrivals=("utilization", Fraction(100, percent)))
        times, _ = arrival_times([(0, b"", None)] * 3, options, capacity)
        assert times is not None
        assert times[2] == round(2 * expected["inter_arrival_ms"][str(percent)] * MS)


def test_change_of_matrices() -> None:
    before, now = [2.0, None, 4.0, 4.0], [3.0, 5.0, 3.0, 4.0]
    assert change_of(before, now, "skip_empty") == 2 / 10
    assert change_of(before, now, "literal") == 7 / 10
    assert change_of(before, now, "outer") == 0.0
    assert change_of([None], [1.0], "literal") == inf
    assert change_of([None], [1.0], "skip_empty") == 0.0
    assert change_of([1.0, 1.0], [2.0, 2.0], "outer") == 1.0


def one_key(count: int, cost: float = 1000.0) -> list[Row]:
    return [(i * 1000, b"a", cost) for i in range(count)]


@pytest.mark.parametrize(("sync", "after"), [("finish", [10.0, 10.0]), ("exec", [6.0, 5.0])])
def test_all_states(sync: str, after: list[float]) -> None:
    """Two workers, one tuple of 1 each ms, matrices of one cell, checked every 2 tuples.

    In turn, 0 at even and 1 at odd times. Worker 0 finishes at 1, 3, 5, 7: at 3 a snapshot, at 7 stable; worker 1 at
    8. #8 and #9 carry markers, with 1 and 1. Worker 0 finishes #8 at 9, worker 1 #9 at 10: Deltas 8 and 9 by finish,
    4 and 4 by work (5 each). At 10 both are there: 9 and 10, or 5 and 5; #10 goes to worker 0 and adds 1 there.
    """
    grouping = Posg(Setting(2, 1), batch=2, rows=1, columns=1, sync=sync)
    run = simulate(one_key(8), grouping, workers=2, sources=1)
    assert [r.worker for r in run.records] == [0, 1] * 4
    assert (grouping.schedulers[0].state, grouping.control_messages, grouping.control_bytes) == (
        "ROUND_ROBIN",
        2,
        32,
    )
    grouping = Posg(Setting(2, 1), batch=2, rows=1, columns=1, sync=sync)
    run = simulate(one_key(11), grouping, workers=2, sources=1)
    own = grouping.schedulers[0]
    assert [r.worker for r in run.records] == [0, 1] * 4 + [0, 1, 0]
    assert own.state == "RUN"
    assert [c / MS for c in own.estimated] == after
    assert (grouping.control_messages, grouping.control_bytes) == (4, 4 * 16)
    assert [i.state for i in grouping.instances] == ["STABILIZING", "START"]
    assert (grouping.state_entries(0), grouping.allowed, grouping.detector_entries()) == (6, 0, None)


def test_delays() -> None:
    """As before, but matrices take 3 and replies 2: SEND_ALL at 11, markers at 11 and 12, WAIT_ALL until 15."""
    states = {}
    for count in range(9, 17):
        grouping = Posg(Setting(2, 1), batch=2, rows=1, columns=1, matrix_delay=3 * MS, reply_delay="2ms")
        simulate(one_key(count), grouping, workers=2, sources=1)
        states[count - 1] = grouping.schedulers[0].state
    assert states == {
        8: "ROUND_ROBIN",
        9: "ROUND_ROBIN",
        10: "ROUND_ROBIN",
        11: "SEND_ALL",
        12: "WAIT_ALL",
        13: "WAIT_ALL",
        14: "WAIT_ALL",
        15: "RUN",
    }


def test_several_matrices_are_on_the_way() -> None:
    """One worker, a tuple every ms: stable at 4, 8, 12, ... With a delay of 9 those of 4 arrive at 13."""
    grouping = Posg(Setting(1, 1), batch=2, rows=1, columns=1, matrix_delay=9 * MS)
    simulate(one_key(12), grouping, workers=1, sources=1)
    assert [(due, worker, what.counts) for due, worker, what in grouping.sketches] == [
        (13 * MS, 0, [[4]]),
        (17 * MS, 0, [[4]]),
        (21 * MS, 0, [[4]]),
    ]
    assert (grouping.schedulers[0].epoch, grouping.control_messages) == (0, 3)
    # Each that comes begins an epoch.
    for now, epoch in ((12, 0), (13, 1), (16, 1), (17, 2), (20, 2), (21, 3)):
        grouping.tick(now * MS)
        assert grouping.schedulers[0].epoch == epoch
    assert grouping.sketches == []


def test_matrices_of_a_worker_arrive_in_the_order_sent() -> None:
    grouping = Posg(Setting(2, 1))
    old, new, other = (Matrices([[1]], [[time]]) for time in (10, 20, 30))
    grouping.sketches = [(5, 1, old), (5, 1, new), (5, 0, other)]
    grouping.tick(5)
    assert (grouping.known, grouping.sketches) == ({0: other, 1: new}, [])
    assert grouping.schedulers[0].epoch == 1


def test_sizes_by_precision() -> None:
    given, expected = example("POSG-08")
    for pair, rows, columns in zip(given["pairs"], expected["rows"], expected["cols_ceil"], strict=True):
        grouping = Posg(Setting(1, 1), **pair)
        assert (grouping.rows, grouping.columns) == (rows, columns)


def test_new_matrices_send_all_again() -> None:
    grouping = Posg(Setting(3, 2))
    grouping.sketches = [(5, worker, Matrices([[1]], [[10 + worker]])) for worker in range(3)]
    grouping.tick(4)
    assert [s.state for s in grouping.schedulers] == ["ROUND_ROBIN"] * 2
    grouping.tick(5)
    assert [(s.state, s.epoch) for s in grouping.schedulers] == [("SEND_ALL", 1)] * 2
    for source in (0, 0, 1):
        worker = grouping.choose(source, b"a", 6)
        grouping.observe(source, b"a", worker, 6)
    assert grouping.instances[0].markers == {0: (1, 1, 10.0), 1: (2, 1, 10.0)}
    grouping.sketches = [(7, 1, Matrices([[1]], [[20]]))]
    grouping.tick(7)
    assert [(s.state, s.epoch, s.next_op) for s in grouping.schedulers] == [("SEND_ALL", 2, 0)] * 2
    chosen = []
    for _ in range(4):
        chosen.append(grouping.choose(0, b"a", 8))
        grouping.observe(0, b"a", chosen[-1], 8)
    assert chosen == [0, 1, 2, 2]
    # the marker of epoch 1 is replaced at source 0 and lives on at source 1
    assert grouping.instances[0].markers == {0: (3, 2, 20.0), 1: (2, 1, 10.0)}
    assert grouping.schedulers[0].estimated == [20.0, 11.0 + 20.0, 24.0]
    grouping.executed(0, b"a", 0, 0, 30)
    grouping.executed(0, b"a", 0, 30, 60)
    assert grouping.replies == {(1, 0): (60, 1, 50.0)}
    grouping.executed(0, b"a", 0, 60, 90)
    assert grouping.replies[0, 0] == (90, 2, 70.0)
    grouping.tick(90)
    assert [s.replies for s in grouping.schedulers] == [{0: 70.0}, {}]
    assert (grouping.control_messages, grouping.control_bytes) == (2, 32)


def test_resync() -> None:
    """As in RUN from #10 on, and no other matrices for long: batch x 2 workers x 1 = 4 tuples, then SEND_ALL."""
    grouping = Posg(Setting(2, 1), batch=2, resync_windows=1)
    own = grouping.schedulers[0]
    grouping.known = {w: Matrices([[1]], [[10]]) for w in range(2)}
    own.state, own.epoch, own.estimated = "RUN", 1, [0.0, 5.0]
    chosen = [grouping.choose(0, b"a", 0) for _ in range(6)]
    assert chosen == [0, 1, 0, 1, 0, 1]
    assert (own.state, own.epoch, own.estimated) == ("WAIT_ALL", 2, [30.0, 35.0])


def test_workers_change() -> None:
    """What a leaver told is forgotten. A leave may make all known, but only new matrices end the turns."""
    grouping = Posg(Setting(3, 2))
    grouping.known = {w: Matrices([[1]], [[10]]) for w in (0, 2)}
    grouping.sketches = [(40, 2, Matrices([[1]], [[30]])), (50, 1, Matrices([[1]], [[10]]))]
    grouping.schedulers[0].estimated = [3.0, 1.0, 2.0]
    grouping.schedulers[0].pointer = 2
    grouping.workers_changed(WorkersChange(10, [0, 2], [], [1]))
    assert [(s.state, s.epoch, s.pointer) for s in grouping.schedulers] == [
        ("ROUND_ROBIN", 1, 0),
        ("ROUND_ROBIN", 1, 1),
    ]
    grouping.executed(1, b"a", 0, 0, 30)
    assert (grouping.instances[1].executed, grouping.control_messages) == (0, 0)
    assert [grouping.choose(0, b"a", 20) for _ in range(3)] == [0, 2, 0]
    grouping.tick(40)
    assert [s.state for s in grouping.schedulers] == ["SEND_ALL"] * 2
    assert sorted(grouping.known) == [0, 2]
    grouping.workers_changed(WorkersChange(60, [0, 2, 3], [3], []))
    assert grouping.schedulers[0].estimated == [3.0, 1.0, 2.0, 2.0]
    assert [s.state for s in grouping.schedulers] == ["ROUND_ROBIN"] * 2
    assert len(grouping.instances) == 4
    # joins, leaves and crashes in a replay: nothing is lost, and it sends to all again after the last of them
    tuples = [(i * 300, b"%d" % (i % 7), 500.0 + i % 7) for i in range(3000)]
    changes = (Change("leave", at_ms(300), 1), Change("join", at_ms(500)), Change("crash", at_ms(700), 0))
    grouping = Posg(Setting(3, 2), batch=16, rows=2, columns=8)
    run = simulate(tuples, grouping, workers=3, sources=2, changes=changes, redeliver=True, network_delay_ns=MS)
    assert all(s.epoch > 4 and s.state != "ROUND_ROBIN" for s in grouping.schedulers)
    assert {r.status for r in run.records} == {"finished"}
    assert grouping.control_messages > 4


def costs_by_key(count: int, seed: int) -> list[Row]:
    """Zipf-like keys whose cost is their own, at 95 % of what five workers can do."""
    draw = random.Random(seed)
    keys = [min(int(draw.paretovariate(0.8)), 500) for _ in range(count)]
    costs = [1 + candidate(b"%d" % key, 1, 64) for key in keys]
    gap = sum(costs) / count / 5 / 0.95
    return [(round(i * gap), b"%d" % key, float(cost)) for i, (key, cost) in enumerate(zip(keys, costs, strict=True))]


def mean_latency(tuples: list[Row], grouping: Any, k: int = 5) -> float:
    run = simulate(tuples, grouping, workers=k, sources=1)
    return sum((r.finish_ns or 0) - r.arrival_ns for r in run.records) / len(tuples)


def test_between_full_knowledge_and_turns() -> None:
    tuples = costs_by_key(6000, seed=3)
    setting = Setting(5, 1)
    found = [mean_latency(tuples, g) for g in (FullKnowledge(setting), Posg(setting, batch=64), Sg(setting))]
    assert found == sorted(found)


@pytest.mark.parametrize("sync", ["finish", "exec"])
@pytest.mark.parametrize("stability", ["skip_empty", "literal", "outer"])
def test_one_worker_is_turns(sync: str, stability: str) -> None:
    tuples = costs_by_key(500, seed=4)
    grouping = Posg(Setting(1, 2), batch=8, sync=sync, stability=stability)
    run = simulate(tuples, grouping, workers=1, sources=2)
    assert served(run) == served(simulate(tuples, Sg(Setting(1, 2)), workers=1, sources=2))
    assert grouping.control_messages > 0


def test_greedy_makespan() -> None:
    """Full knowledge is within 2 - 1/k of the best."""
    for order in sorted(set(permutations((1, 1, 2, 3, 5)))):
        run = simulate(in_seconds([0] * 5, list(order)), FullKnowledge(Setting(2, 1)), workers=2, sources=1)
        makespan = max(r.finish_ns or 0 for r in run.records) / SECOND
        assert 6 <= makespan <= 1.5 * 6
