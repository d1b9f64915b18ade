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
    Learners,
    Plans,
    add_up,
    bucket_of,
    forget,
    held,
    learn,
    make_counts,
    make_learners,
    make_plans,
    plan_for,
    worker_of,
)
from streamgroup.kernels.counts.space_saving import capacity_of

EXAMPLES = {one["id"]: one for one in json.loads((Path(__file__).parents[2] / "data" / "examples.json").read_text())}


def hashes(buckets: list[int], columns: int) -> Any:
    """Make hashes that put keys into given buckets."""
    hashed = np.array([-(-bucket * (1 << 32) // columns) for bucket in buckets], dtype=np.uint32)
    assert [int(bucket_of(one, columns)) for one in hashed] == buckets
    return hashed


def planned(learners: Learners, hashed: Any, live: list[int], theta: tuple[int, int]) -> Plans:
    """Plan for the counts of all sources."""
    capacity, (sources, columns) = capacity_of(learners.tables), learners.bucket.shape
    counts, plan = make_counts(capacity * sources, columns), make_plans(1, capacity, columns, max(live) + 1)
    for source in range(sources):
        add_up(learners, source, counts)
    rows = np.zeros((2, max(capacity + columns, len(live)), 3), dtype=np.int64)
    plan_for(counts, plan, 0, hashed, np.array(live), np.array(theta), rows)
    # What a plan was made from is forgotten.
    assert not any(array.any() for array in (learners.bucket, counts.sure[:, 0], counts.bucket, counts.size[:1]))
    return plan


def test_worked_example() -> None:
    given, expected = EXAMPLES["RIV-01"]["input"], EXAMPLES["RIV-01"]["expected"]
    names = sorted(given["counts"])
    columns = 2 * given["k"]
    hashed = hashes([given["bucket"][name] for name in names], columns)
    learners = make_learners(3, ceil(2 / given["theta"]), columns)
    for key, name in enumerate(names):
        for number in range(given["counts"][name]):
            learn(learners, number % 3, hashed[key], key)
    assert [held(learners, source) for source in range(3)] == [
        sum(given["counts"][name] > source for name in names) + columns for source in range(3)
    ]
    plan = planned(learners, hashed, list(range(given["k"])), (1, 5))
    items = plan.item[: plan.size[0, 0]].tolist()
    assert [load for _, load in sorted((item, load) for item, _, load in items if item < columns)] == (
        expected["bucket_load"]
    )
    assert {names[item - columns]: load for item, _, load in items if item >= columns} == expected["heavy"]
    called = [f"key {names[item - columns]}" if item >= columns else f"bucket {item}" for item, _, _ in items]
    assert list(zip(called, [worker for _, worker, _ in items], strict=True)) == list(expected["mapping"].items())
    assert plan.load.tolist() == [expected["loads"]]
    owners = {name: int(worker_of(plan, 0, hashed[key], key, -1)) for key, name in enumerate(names)}
    mapping = expected["mapping"]
    assert owners == {name: mapping.get(f"key {name}", mapping[f"bucket {given['bucket'][name]}"]) for name in names}


def test_without_a_plan_it_is_the_other() -> None:
    plan = make_plans(1, 3, 4, 2)
    assert worker_of(plan, 0, np.uint32(7), 1, 5) == 5


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
    learners = make_learners(2, 10, columns)
    for key in [3, 3, 4]:
        learn(learners, 1, hashed[key], key)
    forget(learners, 1)
    for place, key in enumerate(keys):
        learn(learners, place % 2, hashed[key], key)
    assert learners.bucket.sum(axis=0).tolist() == [sum(key % columns == one for key in keys) for one in range(columns)]
    plan = planned(learners, hashed, live, theta)
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
    assert plan.item[: plan.size[0, 0]].tolist() == expected
    assert {worker: int(plan.load[0, worker]) for worker in live} == shares
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
        assert worker_of(plan, 0, hashed[key], key, -1) == {one: worker for one, worker, _ in expected}[item]
