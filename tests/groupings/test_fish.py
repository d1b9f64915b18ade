"""FISH: worked examples, what holds for every choice, messages and changes of workers."""

import json
from collections import Counter
from math import ceil, floor, log2
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgroup.base.errors import UsageError
from streamgroup.groupings.fish import Fish
from streamgroup.kernels.backlogs import _cheapest, drain, make_backlogs, send, take_times
from streamgroup.kernels.decayed_space_saving import (
    BEFORE,
    SIZE,
    TOP,
    TOTAL,
    WIDTH,
    count_tuple,
    make_table,
    slot_of,
)
from streamgroup.kernels.hashing import candidate, ring_positions
from streamgroup.kernels.hotness import average_width, chk_width, denominator, halvings, is_hot, optimal_width, sort_hot
from streamgroup.kernels.reports import finished, make_reports, pass_time
from streamgroup.kernels.ring import first_point, make_ring, walk
from streamgroup.kernels.shortlists import make_shortlists
from streamgroup.replay.selection import select
from tests.groupings.crew import KEYS, changed, context, started, workers

EXAMPLES = json.loads((Path(__file__).parents[1] / "data" / "examples.json").read_text())
MS = 1_000_000


def example(name: str) -> tuple[Any, Any]:
    (found,) = [entry for entry in EXAMPLES if entry["id"] == name]
    return found["input"], found["expected"]


def nearest_workers(live: list[int], nodes: int = 100) -> list[list[int]]:
    """Give all workers of each key of `crew.context`, nearest first."""
    told = context(live)
    ring = make_ring(told.live, nodes)
    points = first_point(ring, ring_positions(told.hash_lo))
    lists = np.zeros((KEYS, len(live)), dtype=np.uint16)
    seen = np.full(max(live) + 1, -1, dtype=np.int64)
    for key in range(KEYS):
        walk(ring.owner, points[key], len(live), seen, key, lists, key)
    found: list[list[int]] = lists.tolist()
    return found


def test_a_new_key_is_hot_right_after_a_decay() -> None:
    given_, expected = example("FISH-02")
    theta = 1 / (4 * given_["n"])
    assert theta == pytest.approx(expected["theta"], rel=1e-5)
    whole = given_["S_after_decay"] + given_["c_new"]
    assert given_["c_new"] / whole == pytest.approx(expected["f_c_over_S"], rel=1e-5)
    assert is_hot(given_["c_new"], theta, whole) is expected["hot_c_over_S"]
    assert is_hot(given_["c_new"], theta, 1 / 0.0008) is expected["hot_normalised"]


def table_of(stored: list[float], n_epoch: int = 1000, alpha: float = 0.2) -> Any:
    """Make a table in which key i has been counted `stored[i]` times a step."""
    table = make_table(1, 1000, alpha, n_epoch)
    for key in range(len(stored)):
        count_tuple(table, 0, key)
    for key, value in enumerate(stored):
        table.stored[0, slot_of(table, 0, key)] = value
    table.sums[0, TOP] = max(stored)
    return table


def test_the_two_denominators() -> None:
    given_, expected = example("FISH-09")
    for alpha, starts, shares in (
        (0.2, given_["S_start"], expected["f"]),
        (1.0, expected["alpha_1"]["S_start"], expected["alpha_1"]["f"]),
    ):
        table = table_of([1.0], given_["N_epoch"], alpha)
        for start, share in zip(starts, shares, strict=True):
            table.sums[0, BEFORE] = start
            assert given_["c_k"] / denominator(table, 0, True) == pytest.approx(share)
        assert denominator(table, 0, False) == table.sums[0, TOTAL] == 1.0


def test_chk_without_history() -> None:
    given_, expected = example("FISH-03")
    for row in expected:
        table = table_of([max(given_["f"]), row["f"]])
        slot = slot_of(table, 0, 1)
        if row["index"] is None:
            assert not is_hot(row["f"], 1 / 64, 1.0)
            continue
        assert is_hot(row["f"], 1 / 64, 1.0)
        assert halvings(row["f"], max(given_["f"])) == row["index"]
        assert chk_width(table, 0, slot, 16, row["d_min"]) == row["d"]


def test_chk_never_takes_back() -> None:
    given_, expected = example("FISH-04")
    table = table_of([given_["f_top"], 0.0])
    slot = slot_of(table, 0, 1)
    for share, d, most in expected["f_d_M"]:
        table.stored[0, slot] = share
        found = 2
        if is_hot(share, 1 / 64, 1.0):
            found = chk_width(table, 0, slot, given_["W_num"], given_["d_min"])
        assert found == d
        assert table.info[0, slot, WIDTH] == most


@settings(max_examples=300, deadline=None)
@given(st.floats(1e-100, 1e100), st.floats(1.0, 1e30))
def test_halvings_are_exact(stored: float, factor: float) -> None:
    top = stored * factor
    i = int(halvings(stored, top))
    assert i >= 0
    assert stored * 2.0**i <= top < stored * 2.0 ** (i + 1)
    assert abs(i - floor(log2(factor))) <= 1


def lists_of(count: int) -> Any:
    """Give the workers of a single key: 0 and 1 if it is cold."""
    none = (np.empty(0, dtype=np.int32), np.empty(0, dtype=np.uint16), np.empty((1, 2), dtype=np.uint64))
    return make_shortlists(np.array([[0, 1]], dtype=np.uint16), np.arange(count), *none)


def test_a_backlog_counts_each_tuple_once() -> None:
    given_, expected = example("FISH-05")
    backlogs = make_backlogs(1, np.arange(1), given_["T_ms"] * MS - 1, 1.0)
    take_times(backlogs, np.array([given_["P_ms"] * MS]))
    backlogs.sent[0, 0] = given_["backlog_before"] + given_["assigned_in_interval"]
    drain(backlogs, 0, given_["T_ms"] * MS)
    assert backlogs.sent[0, 0] == expected["recommended"]
    assert backlogs.since[0] == given_["T_ms"] * MS


def test_to_the_letter_a_backlog_counts_each_tuple_twice() -> None:
    given_, expected = example("FISH-05")
    backlogs = make_backlogs(1, np.arange(2), given_["T_ms"] * MS, 1.0, True)
    shortlists = lists_of(2)
    for _ in range(given_["assigned_in_interval"]):
        assert send(backlogs, shortlists, 0, 0, 0) == 0
        backlogs.sent[0, 1] = backlogs.cost[0, 1] = 1000.0
    take_times(backlogs, np.array([given_["P_ms"] * MS, 0.0]))
    drain(backlogs, 0, given_["T_ms"] * MS)
    assert backlogs.sent[0].tolist() == [450.0, 1000.0]
    # However much later it is, the constant T is taken off; what takes no time is done.
    drain(backlogs, 0, 10 * given_["T_ms"] * MS)
    assert backlogs.sent[0].tolist() == [expected["literal_Alg3"], 0.0]
    # A second time nothing is fresh.
    drain(backlogs, 0, 20 * given_["T_ms"] * MS)
    assert backlogs.sent[0].tolist() == [expected["literal_Alg3"] - given_["T_ms"], 0.0]


@pytest.mark.parametrize("more", ["", ",pw=oracle", ",scope=global"])
def test_what_is_fresh_is_counted_apart_and_stays_when_workers_change(more: str) -> None:
    state = started("fish:drain=literal" + more, 3, sources=2, seen=workers(3))
    for i in range(20):
        state.choose(i % 2, i % 7, 0)
    backlogs = state.core.backlogs
    assert backlogs.fresh.shape == (1 if "global" in more else 2, 3)
    assert np.array_equal(backlogs.fresh, backlogs.sent)
    assert backlogs.fresh.sum() == 20
    after = changed(state, [0, 2, 3], joined=(3,), left=(1,), seen=workers(4)).core.backlogs
    assert np.array_equal(after.fresh[:, :3], backlogs.fresh)
    assert (after.fresh[:, 3] == 0).all()
    assert started("fish", 3).core.backlogs.fresh.size == 0


@pytest.mark.parametrize(("told", "choice"), [(True, "hwa_choice"), (False, "count_based_choice")])
def test_figure_7(told: bool, choice: str) -> None:
    given_, expected = example("FISH-06")
    names = list(given_["P"])
    backlogs = make_backlogs(1, np.arange(4), 10**9, 1.0)
    backlogs.sent[0] = [given_["unprocessed"][name] for name in names]
    take_times(backlogs, np.array([float(given_["P"][name]) if told else -1.0 for name in names]))
    if told:
        assert dict(zip(names, backlogs.cost[0].tolist(), strict=True)) == expected["waiting"]
    assert names[send(backlogs, lists_of(4), 0, 0, 4)] == expected[choice]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from([0.0, 1.0, 1.0, 2.0, 2.5, 3.0]), min_size=1, max_size=40), st.data())
def test_the_cheapest_is_the_first_of_equal_ones(costs: list[float], data: st.DataObject) -> None:
    d = data.draw(st.integers(1, len(costs)))
    order = data.draw(st.permutations(range(len(costs))))
    floor_ = data.draw(st.sampled_from([-1.0, min(costs)]))
    cost, lists = np.array([costs]), np.array([order], dtype=np.uint16)
    assert _cheapest(lists, 0, d, cost, 0, floor_) == min(order[:d], key=lambda worker: costs[worker])


def test_no_time_at_all_leaves_nothing() -> None:
    backlogs = make_backlogs(2, np.arange(2), 5, 2.0)
    take_times(backlogs, np.array([0.0, 10.0]))
    backlogs.sent[:] = 7.0
    drain(backlogs, 1, 5)
    assert backlogs.sent.tolist() == [[7.0, 7.0], [7.0, 7.0]]
    drain(backlogs, 1, 100)
    assert backlogs.sent.tolist() == [[7.0, 7.0], [0.0, 2.0]]


def test_widths_for_all_hot_keys() -> None:
    stored = [5.0, 40.0, 1.0, 12.0, 40.0, 2.0]
    table = table_of(stored)
    hot = np.zeros(1000)
    size = sort_hot(table, 0, 0.02, 100.0, hot)
    assert hot[:size].tolist() == [40.0, 40.0, 12.0, 5.0]
    assert average_width(hot, size, 100.0, 50) == ceil(50 * 0.97 / 4)
    # One key with half of the stream needs half of the workers at least; in a huge slack, no more.
    assert optimal_width(np.array([50.0]), 1, 100.0, 64, 10.0) == 32
    assert optimal_width(np.array([50.0]), 1, 100.0, 64, 1e-4) > 32
    assert optimal_width(np.array([100.0]), 1, 100.0, 64, 1e-4) == 64
    assert optimal_width(np.array([1.0]), 1, 1.0, 1, 1e-4) == 1


@pytest.mark.parametrize("text", ["fish", "fish:hwa=false", "fish:pw=oracle", "fish:head=d", "fish:ring=false"])
@pytest.mark.parametrize("count", [1, 2, 3, 12])
def test_each_choice_is_one_of_the_workers_of_its_key(text: str, count: int) -> None:
    state = started(text, count, seen=workers(count))
    told = context(list(range(count)))
    allowed = nearest_workers(list(range(count)))
    if "ring" in text:
        functions = [candidate(told.hash_lo, told.hash_hi, j, count) for j in range(1, count + 1)]
        allowed = np.array(functions).T.tolist()
    widths: dict[tuple[int, int], int] = {}
    for i, key in enumerate((np.random.default_rng(1).zipf(1.4, 4000) % KEYS).tolist()):
        source = i % 3
        worker = int(state.choose(source, key, i * 1000))
        d = int(state.choices[0])
        assert d == 0 or min(2, count) <= d <= count
        assert worker in (range(count) if max(d, 2) >= count else allowed[key][: max(d, 2)])
        if d > 0 and "head" not in text:
            # Nothing is forgotten here, so no key's width shrinks: 500 keys have room, and only one epoch ends.
            assert d >= widths.get((source, key), 0)
            widths[source, key] = d
        assert state.state_entries[source] == state.core.table.numbers[source, SIZE] + count
    assert state.detector_entries[0] == state.core.table.numbers[:, SIZE].sum()
    assert max(widths.values(), default=count) == count


def test_sources_do_not_share_what_they_count() -> None:
    alone, among = started("fish", 8), started("fish", 8)
    keys = (np.random.default_rng(4).zipf(1.3, 2000) % KEYS).tolist()
    first = [int(alone.choose(0, key, 0)) for key in keys]
    second = []
    for key in keys:
        second.append(int(among.choose(0, key, 0)))
        among.choose(1, 499 - key, 0)
    assert first == second


def test_one_backlog_for_all_sources() -> None:
    state = started("fish:scope=global,head=w", 6)
    # One key alone is hot from the start, and goes around over all sources.
    assert [int(state.choose(i % 3, 0, 0)) for i in range(12)] == [0, 1, 2, 3, 4, 5] * 2


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
    power, known = state.core.backlogs.power, state.core.backlogs.known
    serve(state, 1, 49, 7, 5 * MS)
    state.tick(20 * MS)
    assert (state.control_messages[0], state.control_bytes[0], known[0]) == (0, 0, 0)
    serve(state, 1, 1, 57, 21 * MS)
    assert (state.control_messages[0], state.control_bytes[0]) == (2, 32)
    state.tick(24 * MS - 1)
    assert known[0] == 0
    state.tick(24 * MS)
    # Those who have not reported count as the mean of those who have.
    assert power.tolist() == [8.0, 8.0, 8.0]
    serve(state, 0, 50, 20, 25 * MS)
    serve(state, 1, 2, 100, 26 * MS)
    state.tick(29 * MS)
    assert power.tolist() == [20.0, 8.0, 14.0]
    # At 30 ms worker 1 reports, which worker 0, idle since, does not; it arrives at 33 ms.
    state.tick(32 * MS)
    assert state.control_messages[0] == 6
    assert power.tolist() == [20.0, 8.0, 14.0]
    state.tick(33 * MS)
    assert power.tolist() == [20.0, 100.0, 60.0]


def test_a_timer_after_a_gap_fires_once_at_the_last_instant() -> None:
    state = told_fish(delay=MS)
    serve(state, 0, 50, 10, 2 * MS)
    serve(state, 0, 1, 90, 3 * MS)
    # Timers at 10, 20 and 30 ms were missed; the report is made at 30 and on its way at 30.5.
    state.tick(30 * MS + MS // 2)
    assert state.control_messages[0] == 4
    assert state.core.backlogs.power.tolist() == [10.0] * 3
    state.tick(31 * MS)
    assert state.core.backlogs.power.tolist() == [90.0] * 3


def test_reports_overtake_nobody_when_many_are_on_the_way() -> None:
    state = told_fish(delay=100 * MS, interval="1ms")
    serve(state, 0, 50, 1, MS // 2)
    for k in range(1, 80):
        serve(state, 0, 1, k, k * MS)
    seen = []
    for half in range(199, 400):
        state.tick(half * MS // 2)
        seen.append(float(state.core.backlogs.power[0]))
    # The last one was made by the first timer that anything happened after, at 99 ms.
    assert seen == [1.0] * 4 + [float(half // 2 - 100) for half in range(203, 358)] + [78.0] * 40 + [79.0] * 2


def test_too_many_reports_on_the_way_are_told() -> None:
    with pytest.raises(UsageError, match="on the way"):
        make_reports(3, 2, 1, 10**6)


def test_backlogs_lose_the_share_of_a_source() -> None:
    state = told_fish(interval="1ms", count=2)
    serve(state, 0, 50, 100_000, MS // 2)
    state.core.backlogs.sent[:, :] = 100.0
    state.tick(MS)
    state.choose(0, 0, MS)
    assert state.core.backlogs.since.tolist() == [0, 0]
    state.choose(0, 0, MS + 1)
    assert state.core.backlogs.since.tolist() == [MS + 1, 0]
    # Of (1 ms + 1 ns) / 0.1 ms tuples that a worker served, half were of this source; two were sent since.
    assert state.core.backlogs.sent.sum() == pytest.approx(402 - 2 * 5.000005)


def test_the_fewest_tuples_without_inference() -> None:
    state = started("fish:hwa=false,head=w", 5)
    assert not hasattr(state, "executed")
    assert [int(state.choose(0, 0, i * 10**12)) for i in range(10)] == [0, 1, 2, 3, 4] * 2


def test_an_oracle_knows_the_mean_cost_and_the_speeds() -> None:
    seen = workers(2, (1.0, 3.0))
    state = started("fish:pw=oracle", 2, seen=seen)
    assert select("fish:pw=oracle").params.sees() == ("cost", "slowdown")
    assert select("fish:pw=oracle,hwa=false").params.sees() == select("fish").params.sees() == ()
    assert [int(state.choose(0, 0, 0)) for _ in range(8)] == [0, 1, 0, 0, 0, 1, 0, 0]
    seen.slowdown[:] = (3.0, 1.0)
    assert [int(state.choose(0, 0, 0)) for _ in range(8)] == [1] * 8


def test_who_comes_and_goes() -> None:
    state = started("fish", 6)
    keys = (np.random.default_rng(5).zipf(1.3, 3000) % KEYS).tolist()
    for i, key in enumerate(keys):
        state.choose(i % 3, key, 0)
    widths = state.core.table.info[:, :, WIDTH].copy()
    live = [0, 1, 3, 4, 7]
    after = changed(state, live, joined=(7,), left=(2, 5))
    after.tick(0)
    assert np.array_equal(after.core.table.info[:, :, WIDTH], np.minimum(widths, 5))
    assert np.array_equal(state.core.table.info[:, :, WIDTH], widths)
    assert np.array_equal(after.core.backlogs.sent[:, 7], state.core.backlogs.sent[:, [0, 1, 3, 4]].min(axis=1))
    assert np.array_equal(after.core.backlogs.cost[:, live], after.core.backlogs.sent[:, live])
    assert after.state_entries.tolist() == (state.state_entries - 1).tolist()
    assert after.core.widths.theta == 1 / 20
    allowed = nearest_workers(live)
    for i, key in enumerate(keys):
        worker = int(after.choose(i % 3, key, 0))
        d = int(after.choices[0])
        assert d <= 5
        assert worker in (live if d == 5 else allowed[key][: max(d, 2)])


def test_a_joiner_counts_as_the_mean_and_a_leaver_no_more() -> None:
    state = told_fish(count=3)
    serve(state, 0, 50, 10, MS)
    serve(state, 2, 50, 40, MS)
    state.tick(MS)
    assert state.core.backlogs.power.tolist() == [10.0, 25.0, 40.0]
    after = changed(state, [0, 1, 3], joined=(3,), left=(2,))
    after.tick(MS)
    assert after.core.backlogs.power[[0, 1, 3]].tolist() == [10.0, 10.0, 10.0]
    # Who left still finishes what it has, and says so; nobody reckons with it.
    serve(after, 2, 3, 99, 2 * MS)
    serve(after, 3, 50, 70, 2 * MS)
    after.tick(10 * MS)
    assert after.core.backlogs.power[[0, 1, 3]].tolist() == [10.0, 40.0, 70.0]
    last = changed(after, [1], left=(0, 3))
    last.tick(11 * MS)
    assert last.core.backlogs.known[0] == 0
    assert last.core.backlogs.power[1] == 1.0


def test_unreported_finishes_wait_for_the_first_report() -> None:
    reports, backlogs = make_reports(2, 5, 10, 0), make_backlogs(5, np.arange(2), 10, 5.0)
    finished(reports, 0, 4, 3)
    pass_time(reports, backlogs, 100)
    assert reports.messages[0] == 0


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("alpha=1.1", "less than or equal to 1"),
        ("alpha=1e-200", "0 or at least"),
        ("d_min=1", "avg or a number"),
        ("d_min=mean", "avg or a number"),
        ("interval=0", "longer than 0"),
        ("interval=ten", "duration"),
        ("theta=0", "above 0"),
        ("capacity=0", "greater than or equal to 1"),
        ("head=all", "chk"),
    ],
)
def test_parameters_are_checked(text: str, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        select(f"fish:{text}")


def test_parameters_tell_what_they_mean() -> None:
    params = select("fish:theta=1/(4n),d_min=02").params
    assert select("fish:theta=1/(4n),d_min=02").text == "fish"
    assert params.hot_share(8) == pytest.approx(1 / 32)
    assert (params.cold_choices(1), params.cold_choices(5), params.choices_per_key(5)) == (1, 2, None)
    assert params.doubts(64, 10**6) == []
    assert "1/theta = 4096" in params.doubts(1024, 10**6)[0]


@pytest.mark.parametrize("live", [[0], [0, 1, 2, 3, 4], [2, 5, 9]])
def test_key_grouping_on_a_ring(live: list[int]) -> None:
    state = changed(started("kg:ring=true,vnodes=10", 2), live)
    assert [int(state.choose(0, key, 0)) for key in range(KEYS)] == [
        first for first, *_ in nearest_workers(live, nodes=10)
    ]


def test_on_a_ring_only_the_keys_of_the_leaver_move() -> None:
    state = started("kg:ring=true", 10)
    before = np.array([state.choose(0, key, 0) for key in range(KEYS)])
    after = changed(state, [worker for worker in range(10) if worker != 4], left=(4,))
    moved = np.array([after.choose(0, key, 0) for key in range(KEYS)]) != before
    assert np.array_equal(moved, before == 4)
    assert 0 < Counter(before.tolist())[4] < KEYS / 5
