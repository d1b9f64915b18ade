"""FISH: what holds for every choice, changes of workers, and parameters."""

from collections import Counter

import numpy as np
import pytest

from streamgroup.base.errors import UsageError
from streamgroup.base.limits import MOST_WORKERS
from streamgroup.groupings.fish.decayed_space_saving import SIZE, WIDTH
from streamgroup.kernels.hash_placement import candidate, ring_positions
from streamgroup.kernels.hash_ring import first_point, make_ring, walk
from streamgroup.replay.scenario.grouping_selection import select
from tests.groupings.contexts_and_worker_changes import KEYS, changed, context, started, workers


def nearest_workers(live: list[int], nodes: int = 100) -> list[list[int]]:
    """Give all workers of each key of `contexts_and_worker_changes.context`, nearest first."""
    told = context(live)
    ring = make_ring(told.live, nodes)
    points = first_point(ring, ring_positions(told.hash_lo))
    lists = np.zeros((KEYS, len(live)), dtype=np.uint16)
    seen = np.full(max(live) + 1, -1, dtype=np.int64)
    for key in range(KEYS):
        walk(ring.owner, points[key], len(live), seen, key, lists, key)
    found: list[list[int]] = lists.tolist()
    return found


@pytest.mark.parametrize("more", ["", ",pw=oracle", ",scope=global"])
def test_what_is_fresh_is_counted_apart_and_stays_when_workers_change(more: str) -> None:
    state = started("fish:drain=literal" + more, 3, sources=2, seen=workers(3))
    for i in range(20):
        state.choose(i % 2, i % 7, 0)
    backlogs = state.core.backlogs
    assert backlogs.fresh.shape == (1 if "global" in more else 2, 3)
    assert np.array_equal(backlogs.fresh, backlogs.left)
    assert backlogs.fresh.sum() == 20
    after = changed(state, [0, 2, 3], joined=(3,), left=(1,), seen=workers(4)).core.backlogs
    assert np.array_equal(after.fresh[:, :3], backlogs.fresh)
    assert (after.fresh[:, 3] == 0).all()
    assert started("fish", 3).core.backlogs.fresh.size == 0


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
        assert i > 0 or worker == allowed[key][0]
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
    state = started("fish:scope=global,head=w,f_mode=ratio", 6)
    # One key alone is hot from the start, and goes around the ring over all sources.
    assert [int(state.choose(i % 3, 0, 0)) for i in range(12)] == nearest_workers(list(range(6)))[0] * 2


def test_the_fewest_tuples_without_inference() -> None:
    state = started("fish:hwa=false,head=w,f_mode=ratio", 5)
    assert not hasattr(state, "executed")
    assert [int(state.choose(0, 0, i * 10**12)) for i in range(10)] == nearest_workers(list(range(5)))[0] * 2


def test_an_oracle_knows_the_mean_cost_and_the_speeds() -> None:
    seen = workers(2, (1.0, 3.0))
    state = started("fish:pw=oracle,f_mode=ratio", 2, seen=seen)
    assert select("fish:pw=oracle").params.sees() == ("cost", "slowdown")
    assert select("fish:pw=oracle,hwa=false").params.sees() == select("fish").params.sees() == ()
    assert nearest_workers([0, 1])[0] == [1, 0]
    assert [int(state.choose(0, 0, 0)) for _ in range(8)] == [1, 0, 0, 0, 1, 0, 0, 0]
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
    assert np.array_equal(after.core.backlogs.left[:, 7], state.core.backlogs.left[:, [0, 1, 3, 4]].min(axis=1))
    assert np.array_equal(after.core.backlogs.cost[:, live], after.core.backlogs.left[:, live])
    assert after.state_entries.tolist() == (state.state_entries - 1).tolist()
    assert after.core.widths.theta == 1 / 20
    allowed = nearest_workers(live)
    for i, key in enumerate(keys):
        worker = int(after.choose(i % 3, key, 0))
        d = int(after.choices[0])
        assert d <= 5
        assert worker in (live if d == 5 else allowed[key][: max(d, 2)])


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("alpha=1.1", "is above 1"),
        ("alpha=nan", "nan is not a number"),
        ("alpha=1e-200", "0 or at least"),
        ("d_min=1", "avg or a number"),
        ("d_min=mean", "avg or a number"),
        (f"d_min={MOST_WORKERS + 1}", "avg or a number"),
        ("interval=0", "longer than 0"),
        ("interval=ten", "duration"),
        ("theta=0", "above 0"),
        ("capacity=0", "is below 1"),
        ("head=all", "chk"),
    ],
)
def test_parameters_are_checked(text: str, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        select(f"fish:{text}")


def test_a_key_may_have_as_many_workers_as_there_may_be() -> None:
    assert started(f"fish:d_min={MOST_WORKERS}", 3).core.widths.least == MOST_WORKERS


def test_parameters_tell_what_they_mean() -> None:
    params = select("fish:theta=1/(4n),d_min=02").params
    assert select("fish:theta=1/(4n),d_min=02").text == "fish"
    assert params.hot_share(8) == pytest.approx(1 / 32)
    assert (params.cold_choices(1), params.cold_choices(5), params.choices_per_key(5)) == (1, 2, None)
    assert params.doubts(64, 5, 10**6) == []
    assert "1/theta = 4096" in params.doubts(1024, 5, 10**6)[0]


@pytest.mark.parametrize(
    ("text", "number"),
    [("fish:hash=mod", 1), ("fish:hash=mod,ring=false", 0), ("kg:hash=mod,ring=true", 1), ("kg:hash=mod", 0)],
)
def test_a_hash_that_has_no_effect_on_a_ring_is_doubted(text: str, number: int) -> None:
    doubts = select(text).params.doubts(8, 5, 1000)
    assert ["hash=mod has no effect" in doubt for doubt in doubts] == [True] * number


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
