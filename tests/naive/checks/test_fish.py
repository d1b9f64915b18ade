"""FISH: decayed SpaceSaving, the number of candidates, the ring, the work that waits; worked examples and by hand."""

import copy
import json
from typing import Any

import pytest

from tests.naive.cases_by_hand import MS
from tests.naive.checks.test_hot_key_groupings import example, stream
from tests.naive.groupings.fish import Fish, Speeds
from tests.naive.groupings.grouping_by_text import make
from tests.naive.groupings.simple_groupings import Setting, WorkersChange
from tests.naive.kernels.optimal_choices import find_d, shares_of_weights
from tests.naive.kernels.space_saving import Decayed, SpaceSaving, Weight
from tests.naive.replay.simulate import simulate
from tests.naive.share_threshold import share


def contents(table: Decayed) -> dict[str, Any]:
    return {
        (key or b"").decode(): pytest.approx([entry.stored / table.inc, entry.error / table.inc])
        for key, entry in table.table.items()
    }


@pytest.mark.parametrize("name", ["SS-03", "SS-04"])
def test_decayed_space_saving(name: str) -> None:
    given, expected = example(name)
    table = Decayed(given["capacity"], given["N_epoch"], given["alpha"])
    lines = iter(expected["trace"])
    for key in given["stream"].replace(" ", ""):
        before = copy.deepcopy(table)
        if table.offer(key.encode()):
            before.end_epoch()
            assert next(lines) == "decay " + next_line(before, given)
        what, _, state = next(lines).partition(" ")
        assert what == key
        assert json.loads(state) == contents(table)
    assert list(lines) == []
    final = {key: [entry["count"], entry["error"]] for key, entry in expected["final"].items()}
    assert final == contents(table)


def next_line(table: Decayed, given: dict[str, Any]) -> str:
    rounded = {
        (key or b"").decode(): [round(entry.stored / table.inc, 9), round(entry.error / table.inc, 9)]
        for key, entry in sorted(table.table.items(), key=lambda item: item[0] or b"")
    }
    return json.dumps(rounded)


def test_fish_01() -> None:
    given, expected = example("FISH-01")
    table = Decayed(10, given["N_epoch"], given["alpha"])
    found = []
    for _ in range(given["epochs"]):
        for i in range(given["N_epoch"] - bool(found)):
            table.offer(str(i % 20).encode())
        before = table.total / table.inc
        assert table.offer(b"0")
        found.append([before, table.total_at_start / table.inc])
    assert found == [pytest.approx(pair) for pair in expected["S"]]
    assert 0.99 * expected["limit_before"] < found[-1][0] <= expected["limit_before"]
    assert 0.99 * expected["limit_after"] < found[-1][1] <= expected["limit_after"]


def holding(weights: dict[str, float], total: float, at_start: float = 0.0, epoch: int = 1000) -> Decayed:
    table = Decayed(1000, epoch, 0.2)
    table.table = {key.encode(): Weight(weight, 0.0, i) for i, (key, weight) in enumerate(weights.items())}
    table.total, table.total_at_start = total, at_start
    return table


def test_fish_02() -> None:
    given, expected = example("FISH-02")
    theta = share(given["theta"], given["n"])
    start = float(given["S_after_decay"])
    table = holding({"k": float(given["c_new"])}, start + given["c_new"], start)
    assert float(theta) == pytest.approx(expected["theta"], abs=1e-8)
    assert 1 / table.denominator("ratio") == pytest.approx(expected["f_c_over_S"], abs=1e-8)
    assert table.is_hot(b"k", theta, "ratio") == expected["hot_c_over_S"]
    assert 1 / table.denominator("epoch_end") == pytest.approx(expected["f_normalised"])
    assert table.is_hot(b"k", theta, "epoch_end") == expected["hot_normalised"]


def test_fish_09() -> None:
    given, expected = example("FISH-09")
    for alpha, starts, f in (
        (given["alpha"], given["S_start"], expected["f"]),
        (1.0, expected["alpha_1"]["S_start"], expected["alpha_1"]["f"]),
    ):
        table = Decayed(10, given["N_epoch"], alpha)
        found = []
        for _ in range(2 if alpha < 1 else 3):
            table.offer(b"k")
            found.append((table.total_at_start / table.inc, given["c_k"] * table.inc / table.denominator("epoch_end")))
            for _ in range(given["N_epoch"] - 1):
                table.offer(b"k")
        if alpha < 1:
            steady = holding({}, 0.0, float(starts[2]))
            found.append((250.0, given["c_k"] / steady.denominator("epoch_end")))
        assert found == [(pytest.approx(s), pytest.approx(share_of)) for s, share_of in zip(starts, f, strict=True)]


def fish_16(d_min: int, n: int = 16) -> Fish:
    return Fish(Setting(n, 1), d_min=d_min, theta="1/64", f_mode="ratio")


@pytest.mark.parametrize("case", range(16))
def test_fish_03(case: int) -> None:
    expected = example("FISH-03")[1][case]
    fish = fish_16(expected["d_min"])
    fish.tables[0] = holding({"top": 0.4, "k": expected["f"]}, 1.0)
    assert fish.count_candidates(0, b"k") == expected["d"]
    assert fish.allowed == (0 if expected["index"] is None else expected["d"])
    if expected["index"] is not None:
        assert fish.tables[0].halvings(b"k") == expected["index"]


def test_fish_04() -> None:
    given, expected = example("FISH-04")
    fish = fish_16(given["d_min"], given["W_num"])
    fish.tables[0] = holding({"top": given["f_top"], "k": 0.0}, 1.0)
    entry = fish.tables[0].table[b"k"]
    for f, d, most in expected["f_d_M"]:
        entry.stored = f
        assert fish.count_candidates(0, b"k") == d
        assert entry.given == most


def test_fish_05() -> None:
    given, expected = example("FISH-05")
    fish = Fish(Setting(1, 1), interval="399ms")
    times = {0: given["P_ms"] * MS}
    fish.sent = [[float(given["backlog_before"] + given["assigned_in_interval"])]]
    fish.drain(0, times, given["T_ms"] * MS)
    assert fish.sent == [[expected["recommended"]]]
    assert fish.drained == [given["T_ms"] * MS]
    # the literal reading counts what was assigned once more, and takes off T
    fish = Fish(Setting(1, 1), interval=f"{given['T_ms']}ms", drain="literal", theta="1/n")
    fish.sent = [[float(given["backlog_before"])]]
    for _ in range(given["assigned_in_interval"]):
        fish.choose(0, b"k", 0)
    fish.drain(0, times, given["T_ms"] * MS)
    assert fish.sent == [[450.0]]
    fish.drain(0, times, 2 * given["T_ms"] * MS)
    assert (fish.sent, fish.lately) == ([[expected["literal_Alg3"]]], [[0.0]])
    assert fish.drained == [2 * given["T_ms"] * MS]


def test_literal_drain_is_of_each_state_and_through_changes() -> None:
    fish = Fish(Setting(3, 4), interval="10ns", drain="literal")
    fish.sent[2], fish.lately[2] = [9.0, 3.0, 4.0], [2.0, 0.0, 1.0]
    # a P of 0 leaves nothing; 4 + 1 - 20 is below 0; the other sources are as they were
    fish.drain(2, {0: 5.0, 1: 0.0, 2: 0.5}, 31)
    assert fish.sent == [[0.0] * 3, [0.0] * 3, [9.0, 0.0, 0.0], [0.0] * 3]
    assert fish.drained == [0, 0, 31, 0]
    fish.lately[2] = [1.0, 2.0, 3.0]
    fish.workers_changed(WorkersChange(32, [0, 2, 3], [3], [1]))
    assert fish.lately[2] == [1.0, 2.0, 3.0, 0.0]
    shared = Fish(Setting(2, 4), interval="10ns", scope="global", drain="literal")
    for source in range(4):
        shared.choose(source, b"k", 0)
    assert shared.lately == shared.sent == [[2.0, 2.0]]
    shared.drain(0, {0: 5.0, 1: 20.0}, 11)
    assert (shared.sent, shared.lately) == ([[2.0, 3.5]], [[0.0, 0.0]])


def test_drain_is_after_more_than_the_interval_and_a_share_of_the_sources() -> None:
    fish = Fish(Setting(2, 4), interval="10ns")
    fish.sent[2] = [9.0, 3.0]
    fish.drain(2, {0: 1.0, 1: 0.5}, 10)
    assert fish.sent[2] == [9.0, 3.0]
    fish.drain(2, {0: 1.0, 1: 0.5}, 12)
    assert fish.sent[2] == [6.0, 0.0]
    shared = Fish(Setting(2, 4), interval="10ns", scope="global")
    shared.sent = [[30.0, 30.0]]
    shared.drain(0, {0: 1.0, 1: 0.0}, 12)
    assert shared.sent == [[18.0, 0.0]]


@pytest.mark.parametrize(("hwa", "name"), [(True, "hwa_choice"), (False, "count_based_choice")])
def test_fish_06(hwa: bool, name: str) -> None:
    given, expected = example("FISH-06")
    workers = list(given["P"])
    fish = Fish(Setting(4, 1), hwa=hwa, theta="1/4n", f_mode="ratio")
    fish.speeds.told = {w: float(given["P"][worker]) for w, worker in enumerate(workers)}
    fish.sent = [[float(given["unprocessed"][worker]) for worker in workers]]
    waiting = {worker: c * p for worker, c, p in zip(workers, fish.sent[0], given["P"].values(), strict=True)}
    assert waiting == expected["waiting"]
    # the first key of a stream may go to all
    chosen = fish.choose(0, b"k", 0)
    assert fish.allowed == 4
    assert workers[chosen] == expected[name]


def test_without_decay_it_is_space_saving_and_with_all_of_it_a_new_table_each_epoch() -> None:
    plain, kept, fresh = SpaceSaving(8), Decayed(8, 10, 1.0), Decayed(8, 10, 0.0)
    for number, key in enumerate(stream(500)):
        if number % 10 == 0:
            new = SpaceSaving(8)
        for table in (plain, new, kept, fresh):
            table.offer(key)
        for table, other in ((plain, kept), (new, fresh)):
            assert {k: (e.count, e.error) for k, e in table.table.items()} == {
                k: (e.stored, e.error) for k, e in other.table.items()
            }


def test_weights_stay_within_bounds_and_faint_keys_leave() -> None:
    table = Decayed(50, 2, 1e-3)
    for number in range(400):
        table.offer(b"a" if number else b"b")
        assert (b"b" in table.table) == (number < 6)
    # 199 times a thousandfold: far past 2^400, were it not renormalised
    assert 2.0**-10 < table.inc < 2.0**400
    assert table.total / table.inc == pytest.approx(2.002, abs=1e-5)


def test_speeds_are_told_by_the_clock_of_the_workers() -> None:
    speeds = Speeds(Setting(3, 2, control_delay=5), 100)
    for i in range(1, 50):
        speeds.tick(10 * i - 1)
        speeds.executed(0, 10, 10 * i)
    assert speeds.reports == 0
    speeds.executed(2, 7, 495)
    speeds.executed(0, 60, 500)
    speeds.tick(504)
    assert speeds.known([0, 1, 2]) is None
    speeds.tick(505)
    assert speeds.told == {0: 11.0}
    # who did not report counts as the mean of the others
    assert speeds.known([1, 0, 2]) == {0: 11.0, 1: 11.0, 2: 11.0}
    assert speeds.known([1, 2]) is None
    speeds.executed(0, 20, 510)
    speeds.executed(0, 30, 590)
    # several timers have passed: the latest, at 800, reports once
    speeds.tick(804)
    assert speeds.told == {0: 11.0}
    assert speeds.reports == 2
    speeds.tick(805)
    assert speeds.told == {0: 25.0}
    # nothing has finished since
    speeds.tick(1000)
    assert speeds.reports == 2
    speeds.told[2] = 5.0
    assert speeds.known([0, 1, 2]) == {0: 25.0, 1: 15.0, 2: 5.0}


def test_by_hand_without_a_ring() -> None:
    functions = {b"a": (2, 1, 2, 1), b"b": (3, 1, 0, 2), b"c": (2, 0)}
    fish = Fish(Setting(4, 1, candidates=lambda key, j: functions[key][j - 1]), ring=False, f_mode="ratio")
    # a is all: any worker, 2, 1, and then by id; b is half as much: 4 >> 1, its first two; then as much as a again
    assert fish.candidates(b"a", 4) == [2, 1, 0, 3]
    found = [(fish.choose(0, key, 0), fish.allowed) for key in (b"a", b"a", b"b", b"b", b"b")]
    assert found == [(2, 4), (1, 4), (3, 2), (0, 4), (3, 4)]
    assert fish.sent == [[1.0, 1.0, 1.0, 2.0]]
    # c becomes 1 of 17, which is below 1/16: two candidates and not hot
    for _ in range(11):
        fish.choose(0, b"a", 0)
    fish.sent = [[5.0, 5.0, 4.0, 4.0]]
    assert fish.choose(0, b"c", 0) == 2
    assert fish.allowed == 0
    assert fish.choices(b"c") == 2
    assert fish.state_entries(0) == 3 + 4


def test_changes_of_workers() -> None:
    fish = Fish(Setting(4, 1), hwa=False, f_mode="ratio")
    # clockwise from a: 2, 0, 1, 3, and with 4 it is 4, 0, 1
    for key in (b"a", b"a", b"a"):
        fish.choose(0, key, 0)
    assert fish.sent == [[1.0, 1.0, 1.0, 0.0]]
    fish.workers_changed(WorkersChange(0, [0, 1], [], [2, 3]))
    assert fish.tables[0].table[b"a"].given == 2
    fish.workers_changed(WorkersChange(0, [0, 1, 4], [4], []))
    # the least of those who are there, not of who left
    assert fish.sent == [[1.0, 1.0, 1.0, 0.0, 1.0]]
    assert [fish.choose(0, b"a", 0) for _ in range(3)] == [4, 0, 1]
    assert fish.allowed == 3
    cold = Fish(Setting(5, 1), theta="1")
    before = {key: cold.candidates(key, 2) for key in stream(100)}
    cold.workers_changed(WorkersChange(0, [0, 1, 2, 4], [], [3]))
    for key, candidates in before.items():
        assert [w for w in candidates if w != 3] == [w for w in cold.candidates(key, 2) if w in candidates]


def test_heads_of_all_and_of_the_best_number() -> None:
    for text in ("fish:head=w", "fish:chk=false"):
        grouping = make(text, Setting(6, 1))
        for key in stream(50):
            grouping.choose(0, key, 0)
            assert grouping.allowed in (0, 6)


@pytest.mark.parametrize("f_mode", ["ratio", "epoch_end"])
def test_the_best_number_is_that_of_the_counts_of_a_whole_epoch(f_mode: str) -> None:
    """A key that is a quarter of all needs 5 of 20 workers at least, after a decay as before, from the start on."""
    fish = Fish(Setting(20, 1), head="d", epoch=40, theta="1/n", f_mode=f_mode)
    again = Decayed(1000, 40, 0.2)
    planned = 0
    for number in range(1, 101):
        key = b"top" if number % 4 == 0 else str(number).encode()
        again.offer(key)
        fish.choose(0, key, 0)
        if number in (1, 2, 4, 8, 16, 32, 40, 80):
            hot = sorted((e.stored for e in again.table.values() if e.stored > 1 / 20 * again.total), reverse=True)
            planned = find_d(shares_of_weights(hot, again.total), 20)
        assert fish.allowed in (0, planned)
        assert planned >= 5
    assert fish.allowed == planned < 20


def test_without_hot_keys_an_epoch_leaves_two() -> None:
    for options in ({"head": "d"}, {"d_min": "avg"}):
        fish = Fish(Setting(20, 1), epoch=40, theta="1/n", **options)
        for number in range(41):
            fish.choose(0, str(number).encode(), 0)
        assert (fish.d, fish.d_min) == ([2], [2])


def test_smallest_number_from_the_mean_of_the_hot() -> None:
    """Of four keys each is a quarter of all, so that none gets less than a quarter of 16; at first they are fewer."""
    fish = Fish(Setting(16, 1), d_min="avg", epoch=40, theta="1/n", alpha=0.5)
    for i in range(41):
        fish.choose(0, str(i % 4).encode(), 0)
        assert fish.d_min == [16 if i == 0 else 8 if i < 3 else 4]
    assert fish.tables[0].total / fish.tables[0].inc == 21


def test_slow_workers_get_less() -> None:
    """One hot key, workers of speeds 1 and 3 in turn, more than they can do: loads follow the speeds once known."""
    tuples = [(i * 400, b"k", 1000.0) for i in range(4000)]
    run = simulate(tuples, make("fish:interval=5ms", Setting(4, 1)), workers=4, sources=1, slowdown="1,3")
    later = [r.worker for r in run.records[2000:]]
    fast, slow = later.count(0) + later.count(2), later.count(1) + later.count(3)
    assert fast / slow == pytest.approx(3, rel=0.05)
    assert run.grouping.control_messages >= 4 * 100
    assert run.grouping.control_bytes == 16 * run.grouping.control_messages
    even = simulate(tuples, make("fish:hwa=false,f_mode=ratio", Setting(4, 1)), workers=4, sources=1, slowdown="1,3")
    assert [r.worker for r in even.records] == [(2, 1, 3, 0)[i % 4] for i in range(4000)]
    assert even.grouping.control_messages == 0


def test_an_oracle_knows_from_the_first_tuple_on() -> None:
    tuples = [(i, b"k", 2.0) for i in range(8)]
    run = simulate(tuples, make("fish:pw=oracle", Setting(2, 1)), workers=2, sources=1, slowdown="1,3")
    # C P, clockwise from k 1 is before 0: 0 0 -> 1, 0 6 -> 0, 2 6 -> 0, 4 6 -> 0, 6 6 -> 1, 6 12 -> 0, 8 12 -> 0, ...
    assert [r.worker for r in run.records] == [1, 0, 0, 0, 1, 0, 0, 0]
    assert run.grouping.control_messages == 0


@pytest.mark.parametrize("more", ["", "head=d,epoch=5", "d_min=avg,epoch=5", "ring=false,pw=oracle", "scope=global"])
def test_one_worker(more: str) -> None:
    tuples = [(i, key, 0.0 if i % 2 else 1.0) for i, key in enumerate(stream(60))]
    run = simulate(tuples, make(f"fish:interval=1us,{more}", Setting(1, 2)), workers=1, sources=2)
    assert {r.worker for r in run.records} == {0}
