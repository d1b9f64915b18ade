"""Dynamic Key Grouping in the naive twin: worked examples, traces by hand, properties."""

import random
from itertools import pairwise
from math import floor
from typing import Any

import pytest

from tests.naive.cases_by_hand import SECOND, at_ms
from tests.naive.groupings.dynamic_kg import DynamicKg, Item, promote, promote_literally
from tests.naive.groupings.simple_groupings import Kg, Pkg, Setting, WorkersChange
from tests.naive.metrics.metrics import summary
from tests.naive.replay.options import Change
from tests.naive.replay.simulate import simulate
from tests.naive.worked_examples import example


def only_place(place: int) -> Any:
    return lambda key, j: place


def items(rows: list[Any]) -> list[Item]:
    return [Item(key.encode(), count) for key, count in rows]


def rows(space: list[Item]) -> list[Any]:
    return [[item.key.decode(), item.count] for item in space]


def test_dyn_01_thresholds() -> None:
    given, expected = example("DYN-01")
    for n in given["n"]:
        row = expected[str(n)]
        grouping, whole = DynamicKg(Setting(n)), DynamicKg(Setting(n), load="int")
        assert 100 / n == row["ideal"]
        assert round(grouping.threshold(), 2) == row["threshold"]
        assert whole.threshold() == row["threshold_code_int"]
        assert floor(100 / grouping.threshold()) + 1 == row["max_machines"]
        # a stream of one key gets as many, now and then
        grouping = DynamicKg(
            Setting(n, 1), warmup="0s", teenage_period="1s", old_period="1s", check_interval=0, expected_keys=10
        )
        for i in range(100 * n):
            grouping.tick(i * SECOND)
            grouping.choose(0, b"a", i * SECOND)
        assert grouping.choices(b"a") == row["max_machines"]


def test_dyn_02_03_04_promote() -> None:
    for rule, name, capacity, result in (
        (promote, "DYN-02", 3, None),
        (promote, "DYN-03", 2, "recommended"),
        (promote, "DYN-04", 1, "authors_code"),
        (promote_literally, "DYN-02", 3, None),
        (promote_literally, "DYN-03", 2, "literal"),
        (promote_literally, "DYN-04", 1, "literal_break_if_L_gt_F"),
    ):
        given, expected = example(name)
        source, destination = items(given["SS"]), items(given["DS"])
        rule(source, destination, capacity)
        wanted = expected if result is None else expected[result]
        assert {"SS": rows(source), "DS": rows(destination)} == {"SS": wanted["SS"], "DS": wanted["DS"]}


def test_dyn_06_scale_down() -> None:
    given, expected = example("DYN-06")
    n, base = given["n"], given["index"]
    grouping = DynamicKg(Setting(n, 1, candidates=only_place(base)))
    own = grouping.of[0]
    for place, percent in given["load_pct"].items():
        own.counts[int(place)] = percent
    own.counts[1] = 100 - sum(own.counts)
    own.total = 100
    own.width[b"a"] = given["Nm"]
    own.add(b"a")
    assert round(grouping.threshold(), 2) == given["T"]
    workers = [grouping.neighbour(b"a", j) for j in range(given["Nm"])]
    assert sum(grouping.load(own, w) < grouping.threshold() for w in workers) == expected["NLL"]
    assert grouping.choose(0, b"a", 20 * SECOND) == expected["chosen"]
    assert own.width[b"a"] == expected["Nm_after"]
    assert [grouping.neighbour(b"a", j) for j in range(own.width[b"a"])] == expected["candidates_after"]
    # the next check is 60 s later, and forgets what is 2 anyway
    grouping.choose(0, b"a", 80 * SECOND)
    assert own.width[b"a"] == 3
    grouping.choose(0, b"a", 80 * SECOND + 1)
    assert own.width == {}


def test_dyn_07_around() -> None:
    given, expected = example("DYN-07")
    grouping = DynamicKg(Setting(given["n"], candidates=only_place(given["index"])))
    assert [grouping.neighbour(b"a", j) for j in range(given["Nm"])] == expected["targets"]


def test_dyn_09_records() -> None:
    given, expected = example("DYN-09")
    records = {g: round(given["throughput"][g] * ms / 1000) for g, ms in given["latency_ms"].items()}
    assert records == expected["total_records"]


def test_dyn_10_deviation() -> None:
    """Of 1000 tuples 680 are of one key, of each of ten others 32, one for each worker; PKG's rest goes where it is."""
    given, expected = example("DYN-10")
    n = given["n"]
    hot = round(1000 * given["p1"])
    rest = (1000 - hot) // n
    tuples: list[Any] = [(i, b"hot", None) for i in range(hot)]
    tuples += [(hot, b"%d" % (i % n), None) for i in range(n * rest)]

    def first(key: bytes | None, j: int) -> int:
        return (j - 1) if key == b"hot" else int(key or b"")

    for grouping, name in ((Kg, "KG"), (Pkg, "PKG")):
        run = simulate(tuples, grouping(Setting(n, 1, candidates=first)), workers=n, sources=1)
        assert summary(run)["load_stddev_percent"] == pytest.approx(expected[name])


def stream_of(grouping: DynamicKg, times_keys: list[tuple[float, bytes]], source: int = 0) -> list[tuple[int, int]]:
    """Worker and allowed of each tuple, given in s."""
    found = []
    for at, key in times_keys:
        now = round(at * SECOND)
        grouping.tick(now)
        found.append((grouping.choose(source, key, now), grouping.allowed))
    return found


def test_a_key_gets_old_and_wider() -> None:
    """Two tuples a second of one key, 4 workers from place 3: T = 25 + 5 = 30.

    Workers 3 and 0 in turn. At 15 s it moves to Teenage, at 60 s to Old as well. The check at 0.5 s is wasted, the
    next after 60.5: at 61 s, both loads are about 50, so worker 1 is tried.
    """
    grouping = DynamicKg(Setting(4, 1, candidates=only_place(3)))
    found = stream_of(grouping, [(i / 2, b"a") for i in range(124)])
    assert [w for w, _ in found[:122]] == [3, 0] * 61
    assert [d for _, d in found] == [0] * 120 + [2, 2, 3, 3]
    assert [w for w, _ in found[122:]] == [1, 1]
    assert grouping.of[0].width == {b"a": 3}
    assert (grouping.state_entries(0), grouping.state_entries(), grouping.detector_entries()) == (6, 6, 1)
    assert grouping.choices(b"a") == 3


def test_spaces_fill_and_are_cut() -> None:
    """Expected 10 keys: Baby keeps 5, Teenage has 4 places, Old 1."""
    grouping = DynamicKg(Setting(4, 1), expected_keys=10, teenage_period="1s", old_period="2s")
    own = grouping.of[0]
    counts = {b"a": 1, b"b": 3, b"c": 2, b"d": 2, b"e": 1, b"f": 1, b"g": 1}
    stream_of(grouping, [(0.5, key) for key, count in counts.items() for _ in range(count)])
    assert [item.key for item in own.baby] == list(counts)
    grouping.tick(SECOND)
    # b3 c2 d2 a1 e1 are kept; four go up, each to the head
    assert [item.key for item in own.teenage] == [b"a", b"d", b"c", b"b"]
    assert [item.key for item in own.baby] == [b"e"]
    assert set(own.item) == {b"a", b"b", b"c", b"d", b"e"}
    # f is new again; e has 2 now, more than a. At 2 s: e swaps with a; then b is old
    stream_of(grouping, [(1.5, b"f"), (1.5, b"e")])
    grouping.tick(2 * SECOND)
    assert rows(own.old) == [["b", 3]]
    # Teenage was a d c b, sorted b d c a; e came to the head for a. Sorted again b e d c; b went up
    assert [item.key for item in own.teenage] == [b"e", b"d", b"c"]
    assert [item.key for item in own.baby] == [b"f", b"a"]
    # at 3 s a place is free: f and a have 1 each; a was seen first, and is first
    grouping.tick(3 * SECOND)
    assert [item.key for item in own.teenage] == [b"a", b"e", b"d", b"c"]
    assert grouping.state_entries(0) == 6 + 4


def test_literally_as_many_swaps_as_there_are_places_taken() -> None:
    source, destination = items([["x", 9], ["y", 9], ["z", 9]]), items([["p", 9], ["q", 1]])
    promote_literally(source, destination, 4)
    assert (rows(destination), rows(source)) == ([["y", 9], ["x", 9]], [["z", 9], ["q", 1], ["p", 9]])
    promote_literally([], destination, 4)
    assert rows(destination) == [["y", 9], ["x", 9]]


def test_literally_nothing_is_ever_promoted_from_the_start() -> None:
    grouping = DynamicKg(
        Setting(4, 1), expected_keys=10, teenage_period="1s", old_period="2s", promotion="literal", warmup="0s"
    )
    found = stream_of(grouping, [(i / 4, b"%d" % (i % 9)) for i in range(360)])
    own = grouping.of[0]
    # as many as are kept, and those that were seen since
    assert 5 <= len(own.baby) <= 9
    assert (own.teenage, own.old, own.width) == ([], [], {})
    assert {allowed for _, allowed in found} == {0}
    own.old = [Item(b"p", 1)]
    own.teenage = [Item(b"q", 1)]
    grouping.tick(90 * SECOND)
    assert (len(own.teenage), len(own.old)) == (1, 1)
    assert own.teenage[0].key == b"p"
    assert own.old[0].count > 1


def test_missed_timers_run_once() -> None:
    """From 1 to 5: the even ones between were missed, so that Teenage runs once, and Old."""
    grouping = DynamicKg(Setting(2, 2), expected_keys=10, teenage_period="1s", old_period="4s")
    stream_of(grouping, [(0.1, b"a")], source=1)
    grouping.tick(SECOND)
    assert len(grouping.of[1].teenage) == 1
    stream_of(grouping, [(1.1, b"b")], source=1)
    grouping.tick(5 * SECOND)
    assert rows(grouping.of[1].old) == [["b", 1]]
    assert rows(grouping.of[1].teenage) == [["a", 1]]
    assert grouping.of[0].items() == 0


def test_whole_percents_tie() -> None:
    """10.9 and 10.1 are both 10: the first is taken."""
    for load, expected in (("float", 1), ("int", 0)):
        grouping = DynamicKg(Setting(3, 1, candidates=only_place(0)), load=load)
        grouping.of[0].counts, grouping.of[0].total = [109, 101, 790], 1000
        assert grouping.choose(0, b"a", 0) == expected


def test_baby_cap() -> None:
    grouping = DynamicKg(Setting(3, 1), baby_cap=2)
    stream_of(grouping, [(0, b"a"), (0, b"b"), (0, b"c"), (0, b"a")])
    assert rows(grouping.of[0].baby) == [["a", 2], ["b", 1]]


def test_workers_change() -> None:
    grouping = DynamicKg(Setting(4, 1, candidates=only_place(2)))
    own = grouping.of[0]
    own.counts, own.total, own.width = [5, 1, 4, 2], 12, {b"a": 4, b"b": 3}
    grouping.workers_changed(WorkersChange(1, [0, 2, 3], [], [1]))
    assert (own.counts, own.total, own.width) == ([5, 1, 4, 2], 11, {b"a": 3, b"b": 3})
    assert [grouping.neighbour(b"a", j) for j in range(3)] == [2, 3, 0]
    grouping.workers_changed(WorkersChange(1, [0, 2, 3, 4], [4], []))
    assert (own.counts, own.total) == ([5, 1, 4, 2, 2], 13)
    assert grouping.choose(0, b"c", 2) == 3
    # who has no more than all begin with is forgotten
    own.width = {b"a": 4, b"b": 3}
    grouping.workers_changed(WorkersChange(3, [2, 4], [], [0, 3]))
    assert own.width == {}
    grouping.workers_changed(WorkersChange(3, [4], [], [2]))
    grouping = DynamicKg(Setting(1, 1))
    assert [grouping.choose(0, b"a", i * 100 * SECOND) for i in range(5)] == [0] * 5


@pytest.mark.parametrize("load", ["float", "int"])
def test_bounds(load: str) -> None:
    """Widths are 2..n, Old and Teenage have their sizes, and an item is in one space."""
    draw = random.Random(5)
    keys = [b"%d" % min(int(draw.paretovariate(0.6)), 400) for _ in range(6_000)]
    tuples: list[Any] = [(i * 40_000, key, None) for i, key in enumerate(keys)]
    grouping = DynamicKg(Setting(8, 2), load=load, check_interval="5s")
    changes = (Change("leave", at_ms(150_000), 1), Change("join", at_ms(200_000)))
    widths = set()
    tick = grouping.tick

    def watched(now: int) -> None:
        tick(now)
        for own in grouping.of:
            widths.update(own.width.values())
            assert len(own.old) <= 10
            assert len(own.teenage) <= 40
            spaces = [item.key for space in (own.old, own.teenage, own.baby) for item in space]
            assert len(set(spaces)) == len(spaces) == len(own.item)

    grouping.tick = watched  # type: ignore[method-assign]
    run = simulate(tuples, grouping, workers=8, sources=2, changes=changes)
    assert widths
    assert widths <= set(range(3, 9))
    hot = [c.allowed for c in run.choices]
    assert 2 < max(hot) <= 8
    assert all(own.total == sum(own.counts[w] for w in grouping.live) for own in grouping.of)
    assert all(a.now <= b.now for a, b in pairwise(run.choices))
