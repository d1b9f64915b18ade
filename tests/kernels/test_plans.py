"""Plans: the worked example, the bound of LPT, and learning against counting."""

import json
from collections import Counter
from itertools import product
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgroup.groupings.rivetti_dkg.plans import (
    Learner,
    Plan,
    bucket_of,
    forget,
    learn,
    make_learner,
    make_plan,
    plan_for,
    worker_of,
)
from streamgroup.kernels.space_saving import capacity_of

EXAMPLES = {one["id"]: one for one in json.loads((Path(__file__).parents[1] / "data" / "examples.json").read_text())}


def hashes(buckets: list[int], columns: int) -> Any:
    """Make hashes that put keys into given buckets."""
    hashed = np.array([-(-bucket * (1 << 32) // columns) for bucket in buckets], dtype=np.uint32)
    assert [int(bucket_of(one, columns)) for one in hashed] == buckets
    return hashed


def planned(learner: Learner, hashed: Any, live: list[int], theta: tuple[int, int]) -> Plan:
    capacity, columns = capacity_of(learner.tables), len(learner.bucket)
    plan = make_plan(capacity, columns, max(live) + 1)
    rows = np.zeros((2, max(capacity + columns, len(live)), 3), dtype=np.int64)
    plan_for(learner, plan, hashed, np.array(live), np.array(theta), rows)
    return plan


def test_worked_example() -> None:
    given, expected = EXAMPLES["RIV-01"]["input"], EXAMPLES["RIV-01"]["expected"]
    names = sorted(given["counts"])
    columns = 2 * given["k"]
    hashed = hashes([given["bucket"][name] for name in names], columns)
    learner = make_learner(ceil(2 / given["theta"]), columns)
    held = np.zeros(3, dtype=np.int64)
    for key, name in enumerate(names):
        for _ in range(given["counts"][name]):
            learn(learner, hashed[key], key, held)
    assert held.tolist() == [len(names) + columns] * 3
    plan = planned(learner, hashed, list(range(given["k"])), (1, 5))
    assert learner.bucket.tolist() == expected["bucket_load"]
    items = plan.item[: plan.size[0]].tolist()
    assert {names[item - columns]: load for item, _, load in items if item >= columns} == expected["heavy"]
    called = [f"key {names[item - columns]}" if item >= columns else f"bucket {item}" for item, _, _ in items]
    assert list(zip(called, [worker for _, worker, _ in items], strict=True)) == list(expected["mapping"].items())
    assert plan.load.tolist() == expected["loads"]
    owners = {name: int(worker_of(plan, hashed[key], key, -1)) for key, name in enumerate(names)}
    mapping = expected["mapping"]
    assert owners == {name: mapping.get(f"key {name}", mapping[f"bucket {given['bucket'][name]}"]) for name in names}


def test_without_a_plan_it_is_the_other() -> None:
    plan = make_plan(3, 4, 2)
    assert worker_of(plan, np.uint32(7), 1, 5) == 5


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.integers(0, 9), min_size=1, max_size=60),
    st.integers(1, 6),
    st.lists(st.integers(0, 7), min_size=1, max_size=3, unique=True).map(sorted),
    st.sampled_from([(1, 2), (1, 4), (1, 9), (1, 100)]),
)
def test_plans_are_as_good_as_lpt_is_and_follow_its_order(
    keys: list[int], columns: int, live: list[int], theta: tuple[int, int]
) -> None:
    hashed = hashes([key % columns for key in range(10)], columns)
    # A table with room for all keys counts exactly.
    learner, held = make_learner(10, columns), np.zeros(1, dtype=np.int64)
    for key in [3, 3, 4]:
        learn(learner, hashed[key], key, held)
    forget(learner)
    for key in keys:
        learn(learner, hashed[key], key, held)
    assert learner.bucket.tolist() == [sum(key % columns == one for key in keys) for one in range(columns)]
    plan = planned(learner, hashed, live, theta)
    heavy = {key: count for key, count in Counter(keys).items() if count * theta[1] >= theta[0] * len(keys)}
    rest = Counter(key % columns for key in keys if key not in heavy)
    loads = {**{columns + key: count for key, count in heavy.items()}, **{one: rest[one] for one in range(columns)}}
    order = sorted(loads, key=lambda item: (-loads[item], item))
    shares = dict.fromkeys(live, 0)
    expected = []
    for item in order:
        worker = min(live, key=lambda one: (shares[one], one))
        shares[worker] += loads[item]
        expected.append([item, worker, loads[item]])
    assert plan.item[: plan.size[0]].tolist() == expected
    assert {worker: int(plan.load[worker]) for worker in live} == shares
    assert plan.load.sum() == len(keys)
    if len(live) ** sum(load > 0 for load in loads.values()) <= 3**7:
        positive = [load for load in loads.values() if load > 0]
        best = min(
            max(sum(load for load, at in zip(positive, to, strict=True) if at == one) for one in range(len(live)))
            for to in product(range(len(live)), repeat=len(positive))
        )
        # 4/3 - 1/(3n), in integers.
        assert 3 * len(live) * max(shares.values()) <= (4 * len(live) - 1) * best
    for key in range(10):
        item = columns + key if key in heavy else key % columns
        assert worker_of(plan, hashed[key], key, -1) == {one: worker for one, worker, _ in expected}[item]
