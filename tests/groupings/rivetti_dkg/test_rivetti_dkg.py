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
from streamgroup.replay.replay_trace import replay
from streamgroup.replay.scenario.grouping_selection import select
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.traces.trace import open_trace
from tests.groupings.contexts_and_worker_changes import KEYS, changed, context, started
from tests.traces_by_hand import write_trace


def keys_of(count: int, seed: int = 5) -> list[int]:
    return np.minimum(np.random.default_rng(seed).zipf(1.4, count), KEYS - 1).tolist()


def send(state: DistributionAware, keys: list[int]) -> list[int]:
    found = []
    for place, key in enumerate(keys):
        state.tick(0)
        found.append(int(state.choose(place % 3, key, 0)))
    state.tick(0)
    return found


def items(state: DistributionAware, number: int = 0) -> list[list[int]]:
    first = number * (len(state.plans.item) // len(state.plans.size))
    return state.plans.item[first : first + state.plans.size[number, ITEMS]].tolist()


def test_it_learns_by_key_grouping_and_then_every_key_has_one_worker() -> None:
    # A third of the tuples for each of three sources.
    state = started("rivetti_dkg:learning_length=1200", 8)
    keys = keys_of(1200)
    first = context(list(range(8))).candidates(1)[:, 0]
    # The tuple that completes the learning goes to F_1, too.
    assert send(state, keys) == first[keys].tolist()
    assert state.plans.size[0, COLUMNS] == 16
    assert state.plans.load.sum() == 1200
    owners: dict[int, set[int]] = {}
    for place, key in enumerate(keys_of(3000, seed=6)):
        owners.setdefault(key, set()).add(int(state.choose(place % 3, key, 0)))
    assert {len(workers) for workers in owners.values()} == {1}
    assert any(next(iter(workers)) != first[key] for key, workers in owners.items())


def test_heavy_keys_are_planned_one_by_one() -> None:
    state = started("rivetti_dkg:learning_length=2100,theta=0.05", 4)
    keys = keys_of(2100)
    send(state, keys)
    counts = Counter(keys)
    heavy = {item - 8: load for item, _, load in items(state) if item >= 8}
    # 40 entries for 700 tuples of each source: the tables together know what is frequent to within 3 x 17.5 tuples.
    assert set(heavy) <= {key for key, count in counts.items() if count >= 105}
    assert set(heavy) >= {key for key, count in counts.items() if count >= 105 + 53}
    assert all(counts[key] - 53 <= load <= counts[key] for key, load in heavy.items())
    # One key has more than a worker ought to get: it is alone, and the others share the rest.
    assert state.plans.load.max() == max(heavy.values()) > 500
    assert state.plans.load.sum() == 2100


def test_what_a_source_is_said_to_hold_and_what_it_sends() -> None:
    state = started("rivetti_dkg:learning_length=30", 3)
    assert state.state_entries.tolist() == [6, 6, 6]
    send(state, [7, 8, 7, 7, 8, 9])
    assert state.state_entries.tolist() == [7, 7, 8]
    assert state.control_messages[0] == 0
    send(state, [1, 2, 3] * 8)
    # Two, two and three keys with their counts, and six counters each.
    reports = 7 * 16 + 3 * 6 * 8
    heavy = len(items(state)) - 6
    assert heavy > 0
    assert (state.control_messages[0], state.control_bytes[0]) == (3 + 3, reports + 3 * (heavy + 6) * 16)
    send(state, [5, 5, 5])
    assert state.state_entries.tolist() == [heavy + 6] * 3


def test_reports_add_up_whichever_source_sends_them_and_the_plan_takes_two_delays() -> None:
    grouping = select("rivetti_dkg:learning_length=90")
    told = context(list(range(4)), params=grouping.params)._replace(control_delay=50)
    state = grouping.module.start(grouping.params, told)
    for now, key in enumerate(keys_of(89)):
        state.choose(1, key, now)
    assert (state.control_messages[0], state.due[0]) == (2, (1 << 63) - 1)
    state.choose(1, 7, 89)
    assert (state.control_messages[0], state.due[0]) == (3, 89 + 100)
    # What is reported while the plan is on its way comes too late.
    for key in keys_of(30, seed=8):
        state.choose(2, key, 90)
    state.tick(188)
    assert (state.control_messages[0], state.plans.size[0, COLUMNS]) == (4, 0)
    state.tick(189)
    assert (state.control_messages[0], state.plans.size[0, COLUMNS]) == (4 + 3, 8)
    assert state.plans.load.sum() == 90


def test_each_source_may_learn_for_itself() -> None:
    state = started("rivetti_dkg:learning_length=100,learner=source", 5)
    for key in keys_of(100):
        state.choose(0, key, 0)
        state.choose(2, key // 2, 0)
    assert [state.plans.load[number].sum() for number in range(3)] == [100, 0, 100]
    assert items(state, 0) != items(state, 2)
    assert (state.control_messages[0], state.control_bytes[0]) == (0, 0)
    first = context(list(range(5))).candidates(1)[:, 0]
    assert [int(state.choose(1, key, 0)) for key in range(99)] == first[:99].tolist()
    ways = {source: [int(state.choose(source, key, 0)) for key in range(KEYS)] for source in (0, 2)}
    assert ways[0] != ways[2]
    # Each plan gives away what a leaver had.
    after = changed(state, [0, 1, 3, 4], left=(2,))
    for source in (0, 2):
        moved = [int(after.choose(source, key, 0)) for key in range(KEYS)]
        assert 2 not in moved
        assert all(was in (2, now) for was, now in zip(ways[source], moved, strict=True))


def test_one_source_needs_no_messages() -> None:
    shared, apart = (started(f"rivetti_dkg:learning_length=50,learner={one}", 4, 1) for one in ("shared", "source"))
    keys = keys_of(200)
    assert [shared.choose(0, key, 0) for key in keys] == [apart.choose(0, key, 0) for key in keys]
    assert shared.control_messages[0] == 0


def test_it_learns_again_from_nothing_while_the_old_plan_routes() -> None:
    state = started("rivetti_dkg:learning_length=99,relearn_every=51", 5)
    send(state, keys_of(99))
    plan = items(state)
    for number in range(50):
        # 51 tuples, and 99 that are learned from: all of one key.
        send(state, [3, 3, 3])
        assert (items(state) == plan) == (number < 49)
    (key, _, load), *others = items(state)
    assert (key, load) == (10 + 3, 99)
    assert {one[2] for one in others} == {0}
    assert state.plans.load.sum() == 99


def test_without_learning_again_a_plan_stays() -> None:
    state = started("rivetti_dkg:learning_length=99", 5)
    send(state, keys_of(99))
    plan = items(state)
    send(state, keys_of(1000, seed=9))
    assert items(state) == plan


def test_only_what_a_leaver_had_moves_to_those_with_the_least() -> None:
    state = started("rivetti_dkg:learning_length=1200", 6)
    send(state, keys_of(1200))
    before = items(state)
    owner = [int(state.choose(0, key, 0)) for key in range(KEYS)]
    after = changed(state, [0, 1, 3, 4, 5, 6], joined=(6,), left=(2,))
    load = [*state.plans.load[0].tolist(), 0]
    load[6] = min(load[worker] for worker in (0, 1, 3, 4, 5))
    for item, worker, weight in before:
        if worker == 2:
            least = min((0, 1, 3, 4, 5, 6), key=lambda one: (load[one], one))
            load[least] += weight
            assert [item, least, weight] in items(after)
        else:
            assert [item, worker, weight] in items(after)
    assert [after.plans.load[0, worker] for worker in (0, 1, 3, 4, 5, 6)] == [load[one] for one in (0, 1, 3, 4, 5, 6)]
    moved = [int(after.choose(0, key, 0)) for key in range(KEYS)]
    assert 2 not in moved
    assert all(was in (2, now) for was, now in zip(owner, moved, strict=True))
    # The state before the change is as it was.
    assert items(state) == before


def test_while_it_learns_keys_are_hashed_to_the_live_and_a_change_of_workers_begins_it_anew() -> None:
    state = started("rivetti_dkg:learning_length=99,relearn_every=9", 4)
    send(state, keys_of(60))
    after = changed(state, [1, 3], left=(0, 2))
    first = context([1, 3]).candidates(1)[:, 0]
    keys = keys_of(99, seed=8)
    assert send(after, keys) == first[keys].tolist()
    # The size for two workers.
    assert after.plans.size[0, COLUMNS] == 4
    assert {worker for _, worker, _ in items(after)} <= {1, 3}
    assert after.plans.load.sum() == 99
    # And then, if there are more workers by then, that of seven.
    more = changed(after, [1, 3, 4, 5, 6, 7, 8], joined=(4, 5, 6, 7, 8))
    send(more, keys_of(108, seed=10))
    assert more.plans.size[0, COLUMNS] == 14
    assert {worker for _, worker, _ in items(more)} == {1, 3, 4, 5, 6, 7, 8}


def test_a_plan_that_is_on_its_way_when_workers_change_is_made_for_those_who_are_there() -> None:
    grouping = select("rivetti_dkg:learning_length=99")
    told = context(list(range(4)), params=grouping.params)._replace(control_delay=50)
    state = grouping.module.start(grouping.params, told)
    for place, key in enumerate(keys_of(99)):
        state.choose(place % 3, key, 0)
    after = changed(state, [0, 1, 2, 3, 4, 5, 6, 7, 8], joined=(4, 5, 6, 7, 8))
    after.tick(100)
    assert after.plans.size[0].tolist() == [len(items(after)), 8]
    assert after.plans.load.sum() == 99
    assert {worker for _, worker, load in items(after) if load} > {0, 1, 2, 3}


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
    state, live = started("rivetti_dkg:learning_length=51", 5), list(range(5))
    for now in range(60):
        state.tick(now)
        state.choose(now % 3, now % 7, now)
    sizes = []
    for change in range(40):
        joined, left = ((5 + change,), ()) if change % 2 == 0 else ((), (live[0],))
        live = sorted({*live, *joined} - set(left))
        state = changed(state, live, joined, left)
        sizes.append((len(state.plans.item), len(state.plans.heavy), state.plans.owner.shape[1]))
    assert sizes[-1] == sizes[10]


def test_a_plan_that_comes_after_the_end_of_the_clock_never_comes() -> None:
    # 1,000,000 hours: twice that is more than half of what 63 bits hold, and was the sign of no plan.
    grouping = select("rivetti_dkg:learning_length=4")
    late = context(list(range(4)), params=grouping.params)._replace(control_delay=1_000_000 * 3600 * 10**9)
    state = grouping.module.start(grouping.params, late)
    for now in range(40):
        state.tick(now)
        state.choose(now % 3, now % 5, now)
    assert 1 << 62 < state.due[0] < (1 << 63) - 1
