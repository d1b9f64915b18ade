"""Distribution-aware key grouping: when it learns, what it plans, and what becomes of a leaver's keys."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from streamgroup.base.errors import UsageError
from streamgroup.groupings.rivetti_dkg import DistributionAware
from streamgroup.groupings.rivetti_dkg.plans import COLUMNS, ITEMS
from streamgroup.replay.run import replay
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.replay.scenario.selection import select
from streamgroup.traces.trace import open_trace
from tests.groupings.crew import KEYS, changed, context, started
from tests.traces_by_hand import write_trace


def keys_of(count: int, seed: int = 5) -> list[int]:
    return np.minimum(np.random.default_rng(seed).zipf(1.4, count), KEYS - 1).tolist()


def send(state: DistributionAware, keys: list[int]) -> list[int]:
    return [int(state.choose(place % 3, key, 0)) for place, key in enumerate(keys)]


def items(state: DistributionAware) -> list[list[int]]:
    return state.plan.item[: state.plan.size[ITEMS]].tolist()


def test_it_learns_by_key_grouping_and_then_every_key_has_one_worker() -> None:
    state = started("rivetti_dkg:learning_length=1000", 8)
    keys = keys_of(1000)
    first = context(list(range(8))).candidates(1)[:, 0]
    # The tuple that completes the learning goes to F_1, too.
    assert send(state, keys) == first[keys].tolist()
    assert state.plan.size[COLUMNS] == 16
    assert state.plan.load.sum() == 1000
    owners: dict[int, set[int]] = {}
    for key in keys_of(3000, seed=6):
        owners.setdefault(key, set()).add(int(state.choose(0, key, 0)))
    assert {len(workers) for workers in owners.values()} == {1}
    assert any(next(iter(workers)) != first[key] for key, workers in owners.items())


def test_heavy_keys_are_planned_one_by_one() -> None:
    state = started("rivetti_dkg:learning_length=2000,theta=0.05", 4)
    keys = keys_of(2000)
    send(state, keys)
    counts = Counter(keys)
    heavy = {item - 8: load for item, _, load in items(state) if item >= 8}
    # 40 entries for 2000 tuples: the table knows what is frequent to within 50 tuples.
    assert set(heavy) <= {key for key, count in counts.items() if count >= 100}
    assert set(heavy) >= {key for key, count in counts.items() if count >= 150}
    assert all(counts[key] - 50 <= load <= counts[key] for key, load in heavy.items())
    # One key has more than a worker ought to get: it is alone, and the others share the rest.
    assert state.plan.load.max() == max(heavy.values()) > 500
    assert state.plan.load.sum() == 2000


def test_what_a_source_is_said_to_hold() -> None:
    state = started("rivetti_dkg:learning_length=10", 3)
    assert state.state_entries.tolist() == [6, 6, 6]
    send(state, [7, 8, 7])
    assert state.state_entries.tolist() == [8, 8, 8]
    send(state, list(range(100, 120)))
    # All entries that there can be are 2/theta.
    assert state.state_entries.tolist() == [6 + 9] * 3


def test_it_learns_again_from_nothing_while_the_old_plan_routes() -> None:
    state = started("rivetti_dkg:learning_length=100,relearn_every=50", 5)
    send(state, keys_of(100))
    plan = items(state)
    for number in range(150):
        # 50 tuples, and 100 that are learned from: all of one key.
        send(state, [3])
        assert (items(state) == plan) == (number < 149)
    (key, _, load), *others = items(state)
    assert (key, load) == (10 + 3, 100)
    assert {one[2] for one in others} == {0}
    assert state.plan.load.sum() == 100


def test_without_learning_again_a_plan_stays() -> None:
    state = started("rivetti_dkg:learning_length=100", 5)
    send(state, keys_of(100))
    plan = items(state)
    send(state, keys_of(1000, seed=9))
    assert items(state) == plan


def test_only_what_a_leaver_had_moves_to_those_with_the_least() -> None:
    state = started("rivetti_dkg:learning_length=1000", 6)
    send(state, keys_of(1000))
    before = items(state)
    owner = [int(state.choose(0, key, 0)) for key in range(KEYS)]
    after = changed(state, [0, 1, 3, 4, 5, 6], joined=(6,), left=(2,))
    load = [*state.plan.load.tolist(), 0]
    load[6] = min(load[worker] for worker in (0, 1, 3, 4, 5))
    for item, worker, weight in before:
        if worker == 2:
            least = min((0, 1, 3, 4, 5, 6), key=lambda one: (load[one], one))
            load[least] += weight
            assert [item, least, weight] in items(after)
        else:
            assert [item, worker, weight] in items(after)
    assert [after.plan.load[worker] for worker in (0, 1, 3, 4, 5, 6)] == [load[one] for one in (0, 1, 3, 4, 5, 6)]
    moved = [int(after.choose(0, key, 0)) for key in range(KEYS)]
    assert 2 not in moved
    assert all(was in (2, now) for was, now in zip(owner, moved, strict=True))
    # The state before the change is as it was.
    assert items(state) == before


def test_while_it_learns_keys_are_hashed_to_the_live_and_the_learner_keeps_its_size() -> None:
    state = started("rivetti_dkg:learning_length=100,relearn_every=10", 4)
    send(state, keys_of(60))
    after = changed(state, [1, 3], left=(0, 2))
    first = context([1, 3]).candidates(1)[:, 0]
    keys = keys_of(40, seed=8)
    assert send(after, keys) == first[keys].tolist()
    assert after.plan.size[COLUMNS] == 8
    assert {worker for _, worker, _ in items(after)} <= {1, 3}
    assert after.plan.load.sum() == 100
    # The next learner has the size for two workers, and so has its plan.
    send(after, keys_of(110, seed=9))
    assert after.plan.size[COLUMNS] == 4
    # And the one after it, if there are more workers by then, that of seven.
    more = changed(after, [1, 3, 4, 5, 6, 7, 8], joined=(4, 5, 6, 7, 8))
    send(more, keys_of(110, seed=10))
    assert more.plan.size[COLUMNS] == 14
    assert {worker for _, worker, _ in items(more)} == {1, 3, 4, 5, 6, 7, 8}


@pytest.mark.parametrize("text", ["learning_length=500", "learning_length=300,relearn_every=200,theta=1/n,mu=1.3"])
def test_compiled_equals_interpreted_where_much_happens(tmp_path: Path, text: str) -> None:
    labels = keys_of(5000)
    trace = open_trace(write_trace(tmp_path / "t", [(at, b"%d" % label, None) for at, label in enumerate(labels)]))
    options = ReplayOptions(
        grouping=f"rivetti_dkg:{text}", workers=7, sources=3, join=("1ms", "2500us"), leave=("700us:2", "2ms:0")
    )
    found: list[Any] = []
    for interpreted in (False, True):
        folder = tmp_path / str(interpreted)
        replay(trace, options, log_directory=folder, interpreted=interpreted)
        found.append(pq.read_table(folder))
    assert found[0] == found[1]


def test_a_table_that_is_too_large_is_refused() -> None:
    with pytest.raises(UsageError, match="a table holds up to"):
        started("rivetti_dkg:theta=0.0000001", 4)


def test_settings_show_in_the_name() -> None:
    assert select("rivetti_dkg:theta=1/(4n),mu=3").text == "rivetti_dkg:theta=1/4n,mu=3.0"


def test_a_plan_keeps_its_size_over_changes_of_workers() -> None:
    state, live = started("rivetti_dkg:learning_length=50", 5), list(range(5))
    for key in range(60):
        state.choose(0, key % 7, key)
    sizes = []
    for change in range(40):
        joined, left = ((5 + change,), ()) if change % 2 == 0 else ((), (live[0],))
        live = sorted({*live, *joined} - set(left))
        state = changed(state, live, joined, left)
        sizes.append((len(state.plan.item), len(state.plan.heavy), len(state.plan.owner)))
    assert sizes[-1] == sizes[10]
