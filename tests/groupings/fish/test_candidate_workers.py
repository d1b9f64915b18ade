"""Lists of a key's nearest workers: a row for several places, lists that grow, and a ring or none."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgroup.groupings.fish import candidate_workers as module
from streamgroup.groupings.fish.candidate_workers import make_shortlists, place_of, row_of
from streamgroup.groupings.fish.start_and_worker_changes import shortlists_of
from streamgroup.kernels.hash_placement import candidate, candidate_words, ring_positions
from streamgroup.kernels.hash_ring import first_point, first_two, make_ring
from tests.groupings.contexts_and_worker_changes import context

KEYS = 20
LOW, HIGH = np.random.default_rng(3).integers(-(2**63), 2**63, (2, KEYS))
LIVE = np.array([0, 2, 3, 5, 8, 9, 11], dtype=np.int64)
NO_RING = (np.empty(0, dtype=np.int32), np.empty(0, dtype=np.uint16))


def on_a_ring() -> tuple[Any, list[list[int]]]:
    """Make lists by a ring, and list all workers of each key by going round it."""
    ring = make_ring(LIVE, 4)
    points = first_point(ring, ring_positions(LOW))
    made = make_shortlists(first_two(ring), LIVE, points, ring.owner, np.empty((0, 2), dtype=np.uint64))
    owners = ring.owner.tolist()
    return made, [list(dict.fromkeys(owners[point:] + owners[:point])) for point in points.tolist()]


def by_functions() -> tuple[Any, list[list[int]]]:
    """Make lists of F_1, F_2, ..., which may coincide, and list as many of them for each key."""
    functions = np.array([LIVE[candidate(LOW, HIGH, j, len(LIVE))] for j in range(1, len(LIVE) + 1)]).T
    nearest = np.ascontiguousarray(functions[:, :2].astype(np.uint16))
    return make_shortlists(nearest, LIVE, *NO_RING, candidate_words(LOW, HIGH)), functions.tolist()


@pytest.mark.parametrize("kind", [on_a_ring, by_functions])
def test_lists_whatever_was_in_their_row(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    # Room for four rows: five keys or seven points share one.
    monkeypatch.setattr(module, "_MOST_BYTES", 4 * 2 * len(LIVE))
    lists, wanted = kind()
    assert len(lists.kept) == 4
    rng = np.random.default_rng(1)
    for key, d in zip(rng.integers(0, KEYS, 600), rng.integers(3, len(LIVE) + 1, 600), strict=True):
        place = int(place_of(lists, key))
        row = int(row_of(lists, place, d))
        # All workers of a key are each of them once; F_1, ..., F_n are not.
        expected = wanted[key][:d] if d < len(LIVE) else list(dict.fromkeys(wanted[key] + LIVE.tolist()))
        assert lists.lists[row, :d].tolist() == expected
        assert row == (place if d < len(LIVE) or len(lists.point) else place + KEYS) % 4
        assert lists.nearest[place].tolist() == wanted[key][:2]


def test_a_newcomer_takes_the_row_and_a_list_that_is_too_short_doubles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_BYTES", 4 * 2 * len(LIVE))
    lists, wanted = by_functions()

    def kept_after(key: int, d: int) -> list[int]:
        found: list[int] = lists.kept[row_of(lists, key, d)].tolist()
        return found

    assert lists.kept.tolist() == [[-1, 0]] * 4
    assert kept_after(1, 3) == [1, 3]
    # One more worker is asked for: twice as many are listed, and fewer than that change nothing.
    assert kept_after(1, 4) == [1, 6]
    assert kept_after(1, 3) == [1, 6]
    assert lists.lists[1, :6].tolist() == wanted[1][:6]
    # Seven are all workers, which are listed apart: without a ring they are not F_1, ..., F_7.
    assert kept_after(1, 7) == [1 + KEYS, 7]
    assert kept_after(1, 6) == [1, 6]
    # Another key of the same row starts with what it asks for.
    assert kept_after(5, 3) == [5, 3]
    assert lists.lists[1, :3].tolist() == wanted[5][:3]
    assert kept_after(1, 3) == [1, 3]
    assert lists.lists[1, :3].tolist() == wanted[1][:3]


@pytest.mark.parametrize("live", [[4], [4, 9]])
@pytest.mark.parametrize("nodes", [0, 5])
def test_one_or_two_workers_are_all(live: list[int], nodes: int) -> None:
    told = context(live)
    lists = shortlists_of(told, nodes)
    firsts = candidate(told.hash_lo, told.hash_hi, 1, len(live))
    for key, first in enumerate(told.live[firsts].tolist()):
        nearest = lists.nearest[place_of(lists, key)].tolist()
        assert set(nearest) == set(live)
        assert nodes > 0 or nearest[0] == first


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 70), st.integers(3, 600), st.booleans())
def test_as_many_rows_as_places_if_they_fit(places: int, workers: int, has_ring: bool) -> None:
    nearest = np.zeros((places, 2), dtype=np.uint16)
    points = np.zeros(3, dtype=np.int32) if has_ring else NO_RING[0]
    words = np.zeros((places, 2), dtype=np.uint64)
    lists = make_shortlists(nearest, np.arange(workers), points, NO_RING[1], words)
    rows = len(lists.kept)
    assert rows // 2 < (places if has_ring else 2 * places) <= rows
    assert lists.lists.shape == (rows, workers)
