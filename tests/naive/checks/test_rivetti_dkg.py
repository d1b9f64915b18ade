"""Rivetti's grouping in the naive twin: the worked example, traces by hand, properties."""

from itertools import product
from typing import Any

import pytest

from tests.naive.cases_by_hand import at_ms
from tests.naive.groupings.rivetti_dkg import Load, Plan, RivettiDkg, heavy_and_rest
from tests.naive.groupings.simple_groupings import Kg, Setting, WorkersChange
from tests.naive.kernels.shared_helpers import sketch_column
from tests.naive.kernels.space_saving import SpaceSaving
from tests.naive.replay.options import Change
from tests.naive.replay.simulate import simulate
from tests.naive.worked_examples import example


def test_riv_01_build() -> None:
    given, expected = example("RIV-01")
    table = SpaceSaving(10)
    buckets = [0] * 4
    for key, count in given["counts"].items():
        for _ in range(count):
            table.offer(key.encode())
        buckets[given["bucket"][key]] += count
    total = sum(given["counts"].values())
    heavy = {k: table.estimate(k, "count-error") for k in table.table}
    heavy = {k: c for k, c in heavy.items() if c >= given["theta"] * total}
    assert {k.decode(): c for k, c in heavy.items() if k} == expected["heavy"]
    items = heavy_and_rest(heavy, buckets, {k: given["bucket"][k.decode()] for k in heavy if k})
    assert [
        i.load for i in sorted(items, key=lambda i: -1 if i.bucket is None else i.bucket) if i.bucket is not None
    ] == (expected["bucket_load"])
    plan = Plan(items, list(range(given["k"])))
    mapping = {f"key {i.key.decode()}" if i.key else f"bucket {i.bucket}": i.worker for i in plan.items}
    assert list(mapping.items()) == list(expected["mapping"].items())
    assert list(plan.loads.values()) == expected["loads"]


def test_ties_in_a_plan() -> None:
    """Buckets before keys, lower ids first; the least loaded worker, the lowest of equal ones."""
    items = heavy_and_rest({b"x": 3, b"y": 3}, [0, 6, 3, 6], {b"x": 1, b"y": 3})
    assert [(i.bucket, i.key) for i in items] == [
        (1, None),
        (2, None),
        (3, None),
        (None, b"x"),
        (None, b"y"),
        (0, None),
    ]
    assert [i.worker for i in Plan(items, [4, 7]).items] == [4, 7, 4, 7, 4, 7]


def feed(grouping: RivettiDkg, keys: list[bytes]) -> list[int]:
    """Tuples of two sources in turn, 1 ns apart."""
    found = []
    for i, key in enumerate(keys):
        grouping.tick(i)
        found.append(grouping.choose(i % 2, key, i))
    return found


def plan_of(grouping: RivettiDkg, source: int = 0) -> Plan:
    plan = grouping.sources[source].plan
    assert plan is not None
    return plan


TWELVE = [b"a", b"a", b"b", b"c", b"a", b"d", b"a", b"b", b"a", b"e", b"b", b"a"]


def test_learns_by_hash_then_by_plan() -> None:
    """Twelve tuples, theta 1/4: a (6) and b (3) are heavy. #11 still goes by its hash; #12 is the first by plan."""
    grouping = RivettiDkg(Setting(2, 2), learning_length=12)
    found = feed(grouping, TWELVE)
    kg = Kg(Setting(2, 2))
    assert found == [kg.choose(0, key, 0) for key in TWELVE]
    # Source 0 had a (4) and b (2), source 1 a (2), b (1), c, d, e: 2 and 5 entries, and 4 buckets each.
    assert (grouping.control_messages, grouping.control_bytes) == (2, 7 * 16 + 8 * 8)
    assert grouping.state_entries() == 5 + 4
    grouping.tick(12)
    plan = plan_of(grouping)
    assert plan is plan_of(grouping, 1)
    rest = [0] * 4
    for key in (b"c", b"d", b"e"):
        rest[sketch_column(key, 0, 4)] += 1
    assert [i.load for i in plan.items] == [6, 3, *sorted(rest, reverse=True)]
    assert [(i.key, i.worker) for i in plan.items[:2]] == [(b"a", 0), (b"b", 1)]
    # Two heavy keys and four buckets to each source.
    assert (grouping.control_messages, grouping.control_bytes) == (4, 7 * 16 + 8 * 8 + 2 * 6 * 16)
    assert feed(grouping, [b"a", b"b"]) == [0, 1]
    of_bucket = {i.bucket: i.worker for i in plan.items if i.bucket is not None}
    for key in (b"c", b"d", b"new", b""):
        assert feed(grouping, [key]) == [of_bucket[sketch_column(key, 0, 4)]]
    assert grouping.state_entries(0) == 6
    assert grouping.allowed == 0


def test_a_plan_comes_two_control_delays_after_the_last_report_that_it_needs() -> None:
    """Source 0 alone sends: it reports after each 6 tuples, and the second report is enough."""
    grouping = RivettiDkg(Setting(2, 2, control_delay=10), learning_length=12)
    for i, key in enumerate(TWELVE):
        grouping.tick(i)
        grouping.choose(0, key, i)
    # A third comes too late, and costs a message all the same.
    for i in range(12, 18):
        grouping.tick(i)
        grouping.choose(0, b"late", i)
    assert grouping.control_messages == 3
    grouping.tick(30)
    assert grouping.sources[0].plan is None
    grouping.tick(31)
    assert [i.key for i in plan_of(grouping).items if i.bucket is None] == [b"a", b"b"]
    assert plan_of(grouping, 1) is plan_of(grouping)
    assert grouping.control_messages == 5


def test_each_source_may_learn_for_itself() -> None:
    """As in the authors' code: own tuples, own plan, and nothing is sent."""
    grouping = RivettiDkg(Setting(2, 2), learning_length=6, learner="source")
    feed(grouping, [key for pair in zip(TWELVE[:6], [b"x"] * 6, strict=True) for key in pair])
    assert [i.key for i in plan_of(grouping).items if i.bucket is None] == [b"a"]
    assert [i.key for i in plan_of(grouping, 1).items if i.bucket is None] == [b"x"]
    assert (grouping.control_messages, grouping.control_bytes) == (0, 0)


def test_equally_heavy_keys_by_id() -> None:
    keys = [b"a", b"b"] * 6
    for ids, expected in ((None, [b"a", b"b"]), ({b"a": 1, b"b": 0}, [b"b", b"a"])):
        grouping = RivettiDkg(Setting(2, 1), learning_length=12, ids=ids)
        for key in keys:
            grouping.choose(0, key, 0)
        assert [i.key for i in plan_of(grouping).items if i.bucket is None] == expected


def test_only_what_is_certain_counts() -> None:
    """Two entries: b takes a's place with count 2, error 1, and so on: nobody has more than 1 for certain."""
    grouping = RivettiDkg(Setting(2, 1), theta="1/2", epsilon_factor=1, learning_length=6, mu=1)
    for key in (b"a", b"b", b"c", b"d", b"e", b"f"):
        grouping.choose(0, key, 0)
    assert grouping.state_entries() == 2 + 2
    assert [i.bucket is not None for i in plan_of(grouping).items] == [True, True]
    assert sum(i.load for i in plan_of(grouping).items) == 6


def test_relearn() -> None:
    """Plan after #3. Three tuples by it alone, then it is learned again from #7 on; the new plan is from #11 on."""
    grouping = RivettiDkg(Setting(2, 1), theta="1/2", learning_length=4, relearn_every=3)
    plans: list[Any] = []
    seen = []
    for i in range(19):
        grouping.choose(0, b"a" if i < 7 else b"b", i)
        plans.append(grouping.sources[0].plan)
        seen.append((grouping.sources[0].sent, grouping.sources[0].learner is not None))
    assert plans[2] is None
    assert plans[3] is not None
    assert len({id(p) for p in plans[3:10]}) == 1
    assert plans[10] is not plans[9]
    assert seen[3:11] == [(0, False), (1, False), (2, False), (3, False), (1, True), (2, True), (3, True), (0, False)]
    assert [i.key for i in plans[9].items if i.bucket is None] == [b"a"]
    assert [i.key for i in plans[10].items if i.bucket is None] == [b"b"]
    assert plans[17] is not plans[16]


def test_workers_change() -> None:
    """Items of who leaves go, as they are in the plan, to who has least; who joins has as little as the least."""
    items = [Load(9, None, b"a"), Load(7, 0, None), Load(5, 1, None), Load(4, None, b"b"), Load(3, 2, None)]
    plan = Plan(items, [0, 1, 2])
    assert [i.worker for i in plan.items] == [0, 1, 2, 2, 1]
    assert plan.loads == {0: 9, 1: 10, 2: 9}
    plan.change(WorkersChange(0, [0, 2], [], [1]))
    assert [i.worker for i in plan.items] == [0, 0, 2, 2, 2]
    assert plan.loads == {0: 16, 2: 12}
    plan.change(WorkersChange(0, [0, 2, 3], [3], []))
    assert plan.loads == {0: 16, 2: 12, 3: 12}
    plan.change(WorkersChange(0, [2, 3], [], [0]))
    assert [i.worker for i in plan.items] == [2, 3, 2, 2, 2]
    assert plan.loads == {2: 21, 3: 19}
    # while it learns it is KG on those that are there, and it begins anew: 30 tuples after #10 make the plan
    tuples = [(i * 1000, b"%d" % (i % 9), None) for i in range(60)]
    changes = (Change("leave", at_ms(10), 1), Change("join", at_ms(52)))
    grouping = RivettiDkg(Setting(3, 2), learning_length=30, relearn_every=8)
    run = simulate(tuples, grouping, workers=3, sources=2, changes=changes)
    assert 1 not in {r.worker for r in run.records[10:]}
    assert {i.worker for i in plan_of(grouping).items} == {0, 2}
    assert plan_of(grouping).buckets() == 4
    # four tuples of each source by the plan, then it learns, and anew from #52 on, with buckets for three
    assert [(own.sent, len(own.learner.buckets)) for own in grouping.sources if own.learner] == [(4, 6), (4, 6)]


@pytest.mark.parametrize("mu", [1, 2.5])
def test_one_worker_a_key_and_the_bound_of_lpt(mu: float) -> None:
    keys = [b"%d" % (i * i % 23) for i in range(400)] + [b"hot"] * 100
    grouping = RivettiDkg(Setting(3, 2), learning_length=500, mu=mu)
    feed(grouping, keys)
    grouping.tick(500)
    plan = plan_of(grouping)
    assert sum(i.load for i in plan.items) == 500
    found: dict[bytes, set[int]] = {}
    for i, key in enumerate(keys):
        found.setdefault(key, set()).add(grouping.choose(i % 2, key, i))
    assert all(len(workers) == 1 for workers in found.values())
    loads = [i.load for i in plan.items][:9]
    fresh = Plan([Load(load, b, None) for b, load in enumerate(loads)], [0, 1, 2])
    best = min(
        max(sum(c for c, w in zip(loads, workers, strict=True) if w == op) for op in range(3))
        for workers in product(range(3), repeat=len(loads))
    )
    assert max(fresh.loads.values()) <= (4 / 3 - 1 / 9) * best
