"""What groupings do when workers come and go."""

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgroup.groupings._loads_when_workers_change import carry_loads
from streamgroup.groupings.protocol import WorkersChange
from streamgroup.kernels import hash_placement, random_draws
from streamgroup.replay.scenario.grouping_selection import family, select
from tests.groupings.contexts_and_worker_changes import KEYS, changed, chosen, context, started

COUNTING = ["pkg", "greedy_d:d=5"]
EVERY = [*family(), "pkg:d=1", "pkg:d=3", "greedy_d:d=40", "full_knowledge:backlog=true"]


def spread(state: Any, tuples: int, sources: int = 3) -> list[int]:
    """Choose for tuples of all sources and of many keys."""
    return [int(state.choose(i % sources, (i * i + 7 * i) % KEYS, 0)) for i in range(tuples)]


def loads(rows: list[list[int]], live: list[int], joined: tuple[int, ...] = ()) -> Any:
    return carry_loads(np.array(rows), WorkersChange(0, np.array(live), joined, ())).tolist()


def test_survivors_keep_their_loads_and_a_joiner_starts_at_the_smallest_of_each_source() -> None:
    assert loads([[5, 3, 9], [1, 2, 0]], [0, 1, 2, 3], (3,)) == [[5, 3, 9, 3], [1, 2, 0, 0]]


def test_who_left_does_not_count_for_a_joiner() -> None:
    assert loads([[5, 3, 9], [0, 2, 4]], [0, 2, 3, 4], (3, 4)) == [[5, 3, 9, 5, 5], [0, 2, 4, 0, 0]]


def test_ids_that_were_skipped_have_room_and_room_never_shrinks() -> None:
    assert loads([[5, 3, 9]], [1, 6], (6,)) == [[5, 3, 9, 0, 0, 0, 3]]
    assert loads([[5, 3, 9]], [0]) == [[5, 3, 9]]


def test_without_survivors_joiners_start_at_nothing() -> None:
    assert loads([[5, 3]], [2, 3], (2, 3)) == [[5, 3, 0, 0]]


def test_a_vector_for_all_sources_is_carried_like_a_row() -> None:
    change = WorkersChange(0, np.array([1, 2, 3]), (3,), (0,))
    carried = carry_loads(np.array([1.5, 2.5, 4.0]), change)
    assert carried.tolist() == [1.5, 2.5, 4.0, 2.5]
    assert carried.dtype == np.float64


@pytest.mark.parametrize("text", COUNTING)
def test_each_source_keeps_what_it_counted(text: str) -> None:
    state = started(text, 6)
    spread(state, 2000)
    before = state.load.copy()
    after = changed(state, [0, 1, 3, 4, 5, 6], joined=(6,), left=(2,))
    assert np.array_equal(after.load[:, :6], before)
    assert np.array_equal(after.load[:, 6], before[:, [0, 1, 3, 4, 5]].min(axis=1))
    assert after.load.sum() > before.sum()
    # The old state is not touched: a new run may start from it.
    assert np.array_equal(state.load, before)


@pytest.mark.parametrize("text", COUNTING)
def test_a_joiner_is_not_flooded(text: str) -> None:
    state = started(text, 4)
    spread(state, 8000)
    after = changed(state, [0, 1, 2, 3, 4], joined=(4,))
    found = Counter(spread(after, 1000))
    assert found[4] < 2 * 1000 / 5


@pytest.mark.parametrize("text", ["kg", "pkg:d=1", "greedy_d:d=1"])
def test_the_first_candidate_is_a_place_in_the_list_of_the_live(text: str) -> None:
    live = [0, 2, 3, 5, 9]
    after = changed(started(text, 6), live, joined=(9,), left=(1, 4))
    told = context(live)
    places = hash_placement.candidate(told.hash_lo, told.hash_hi, 1, 5)
    assert [int(after.choose(1, key, 0)) for key in range(KEYS)] == [live[place] for place in places]


@pytest.mark.parametrize(("leaver", "share"), [(0, 1 / 2), (4, 25 / 90), (9, 1 / 2)])
def test_key_grouping_moves_keys_of_workers_that_stay(leaver: int, share: float) -> None:
    state = started("kg", 10)
    before = np.array([state.choose(0, key, 0) for key in range(KEYS)])
    after = changed(state, [worker for worker in range(10) if worker != leaver], left=(leaver,))
    moved = np.array([after.choose(0, key, 0) for key in range(KEYS)]) != before
    assert moved[before == leaver].all()
    # The place in the list is a product, not a remainder: the chance to stay is linear in the place.
    assert abs(moved.mean() - share) < 4 * (0.25 / KEYS) ** 0.5


@pytest.mark.parametrize("leaver", [0, 4, 9])
def test_by_remainder_all_but_one_key_in_n_move(leaver: int) -> None:
    state, params = started("kg:hash=mod", 10), select("kg:hash=mod").params
    before = np.array([state.choose(0, key, 0) for key in range(KEYS)])
    assert np.bincount(before).min() > KEYS / 10 / 2
    after = changed(state, [worker for worker in range(10) if worker != leaver], left=(leaver,), params=params)
    moved = np.array([after.choose(0, key, 0) for key in range(KEYS)]) != before
    # A key keeps its place in the list by 1/10, and all places but those behind the leaver are other workers.
    assert moved.mean() > 0.8
    if leaver == 9:
        assert abs(moved.mean() - 0.9) < 4 * (0.09 / KEYS) ** 0.5


@pytest.mark.parametrize("text", ["pkg", "greedy_d:d=3"])
def test_every_choice_is_one_of_the_candidates_among_the_live(text: str) -> None:
    live = [0, 3, 4, 7]
    after = changed(started(text, 7), live, joined=(7,), left=(1, 2, 5, 6))
    d = after.candidates.shape[1]
    table = context(live).candidates(d)
    for key in range(KEYS):
        assert int(after.choose(0, key, 0)) in table[key].tolist()


def test_round_robin_goes_on_modulo_the_number_of_the_live() -> None:
    state = started("sg", 5, sources=3)
    assert chosen(state, 0, 4) == [0, 1, 2, 3]
    assert chosen(state, 1, 1) == [1]
    after = changed(state, [0, 2, 3], left=(1, 4))
    # Places 4, 2 and 2 of five become 1, 2 and 2 of three.
    assert chosen(after, 0, 4) == [2, 3, 0, 2]
    assert chosen(after, 1, 3) == [3, 0, 2]
    assert chosen(after, 2, 2) == [3, 0]


def test_round_robin_is_even_over_the_live() -> None:
    live = [1, 4, 6, 7]
    after = changed(started("sg", 6), live, joined=(6, 7), left=(0, 2, 3, 5))
    for source in range(3):
        assert Counter(chosen(after, source, 400)) == dict.fromkeys(live, 100)


def test_random_draws_go_on_over_the_live() -> None:
    state = started("sg_random", 5)
    chosen(state, 1, 37)
    live = [0, 2, 8]
    after = changed(state, live, joined=(8,), left=(1, 3, 4))
    words = random_draws.words(0, "sg_random:1", np.arange(37, 1237))
    assert chosen(after, 1, 1200) == [live[place] for place in hash_placement.place(words, 3)]


@pytest.mark.parametrize("text", EVERY)
def test_one_worker_that_is_left_gets_everything(text: str) -> None:
    state, params = started(text, 4), select(text).params
    spread(state, 100)
    after = changed(state, [2], left=(0, 1, 3), params=params)
    assert set(spread(after, 200)) == {2}
    # And it may be replaced by another.
    assert set(spread(changed(after, [5], joined=(5,), left=(2,), params=params), 200)) == {5}


@pytest.mark.parametrize("text", EVERY)
def test_all_live_workers_can_be_chosen_after_a_change(text: str) -> None:
    state = started(text, 3)
    spread(state, 300)
    live = [0, 2, 3, 4]
    after = changed(state, live, joined=(3, 4), left=(1,), params=select(text).params)
    if text in ("oracle", "full_knowledge:backlog=true"):
        found = []
        for _ in range(400):
            found.append(int(after.choose(0, 0, 0)))
            after.free[found[-1]] += 10
    else:
        found = spread(after, 2000)
    assert set(found) == set(live)


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[list[int], tuple[int, ...], tuple[int, ...]]]:
    """Draw the first live workers and some changes: (live, joined, left)."""
    live = list(range(draw(st.integers(1, 6))))
    following = len(live)
    steps: list[tuple[list[int], tuple[int, ...], tuple[int, ...]]] = [(live, (), ())]
    for _ in range(draw(st.integers(1, 5))):
        more = draw(st.integers(0, 2))
        joined = tuple(range(following, following + more))
        following += more
        leavers = draw(st.lists(st.sampled_from(live), unique=True, max_size=len(live) - (0 if joined else 1)))
        live = sorted((set(live) | set(joined)) - set(leavers))
        steps.append((live, joined, tuple(leavers)))
    return steps


def shape_of(value: Any) -> tuple[Any, ...]:
    """What decides whether compiled code fits."""
    if isinstance(value, np.ndarray):
        return (value.dtype, value.ndim, value.flags.c_contiguous, value.flags.writeable)
    if isinstance(value, tuple):
        return (type(value), *map(shape_of, value))
    return (type(value),)


@pytest.mark.parametrize("text", EVERY)
@settings(max_examples=25, deadline=None)
@given(histories())
def test_nothing_but_live_workers_and_nothing_to_compile_anew(text: str, steps: Any) -> None:
    state = started(text, len(steps[0][0]))
    kind, shapes = type(state), [shape_of(value) for value in state]
    for live, joined, left in steps:
        if joined or left:
            state = changed(state, live, joined, left, params=select(text).params)
        assert type(state) is kind
        assert [shape_of(value) for value in state] == shapes
        assert set(spread(state, 60)) <= set(live)
    if isinstance(state.state_entries, int) and not text.startswith(("consistent", "salted")):
        # Something for each live worker, or one thing, or nothing; `salted` has something for each salted key.
        assert state.state_entries in (0, 1) or state.state_entries % len(steps[-1][0]) == 0
