"""Bins that keys probe, and owners of bins, against lists."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgroup.groupings.consistent_grouping.bins import (
    BUSY,
    IDLE,
    bins_of,
    find_bin,
    leave,
    make_owners,
    signal,
    widened,
)
from streamgroup.kernels import hash_placement
from tests.naive.groupings.consistent_grouping import Mapping
from tests.naive.groupings.simple_groupings import WorkersChange


@pytest.mark.parametrize("bins", [1, 2, 3, 7])
def test_as_many_probes_as_bins_and_then_the_least(bins: int) -> None:
    """Random loads and bounds: bounds grow, and bins fill up, while searches are remembered."""
    low, high = np.random.default_rng(5).integers(-(2**63), 2**63, (2, 40))
    hashes = hash_placement.candidate_words(low, high)
    orders = np.array([hash_placement.candidate(low, high, j, bins) for j in range(1, bins + 2)]).T.tolist()
    load, memory = np.zeros((2, bins), dtype=np.int64), np.zeros((2, 4, 3), dtype=np.int64)
    model, ends = [[0] * bins for _ in range(2)], Counter[str]()
    for i, key in enumerate(np.random.default_rng(6).integers(0, 40, 3000).tolist()):
        bound = 1 + i // (2 * bins)
        full = [place for place in orders[key][:bins] if model[i % 2][place] >= bound]
        if len(full) < bins:
            wanted = next(place for place in orders[key] if model[i % 2][place] < bound)
        else:
            # A probe after B would often hit one that is not full; it is not made.
            ends["beyond"] += model[i % 2][orders[key][bins]] < bound
            wanted = model[i % 2].index(min(model[i % 2]))
            ends["least"] += 1
        assert find_bin(load, memory, hashes, i % 2, key, bound) == wanted
        load[i % 2, wanted] += 1
        model[i % 2][wanted] += 1
    assert load.tolist() == model
    assert (ends["least"] > 0) == (ends["beyond"] > 0) == (bins > 1)


@settings(max_examples=120, deadline=None)
@given(
    st.integers(1, 5),
    st.integers(1, 3),
    st.lists(st.tuples(st.sampled_from(["busy", "busy", "idle", "idle", "join", "leave"]), st.integers(0, 9))),
)
def test_owners_against_lists(workers: int, each: int, steps: list[tuple[str, int]]) -> None:
    """Nobody is in a queue twice or in both, every bin has one owner, and all hand over the same."""
    live, ever = list(range(workers)), workers
    owners, mapping = make_owners(np.arange(workers), each), Mapping(live, each)
    for what, number in steps:
        worker = live[number % len(live)]
        if what == "join":
            live.append(ever)
            mapping.change(WorkersChange(0, list(live), [ever], []))
            ever += 1
            owners = widened(owners, ever)
        elif what == "leave":
            if len(live) == 1:
                continue
            live.remove(worker)
            mapping.change(WorkersChange(0, list(live), [], [worker]))
            leave(owners, worker, np.array(live))
        else:
            signal(owners, worker, {"busy": BUSY, "idle": IDLE}[what])
            mapping.signal(worker, what)
        assert owners.owner.tolist() == [mapping.owner(place) for place in range(workers * each)]
        held = [bins_of(owners, worker) for worker in range(ever)]
        assert sorted(place for places in held for place in places) == list(range(workers * each))
        waiting = {queue: waiting_in(owners.worker, queue) for queue in (BUSY, IDLE)}
        both = waiting[BUSY] + waiting[IDLE]
        assert len(both) == len(set(both)) <= len(live)
        assert set(both) <= set(live)


def waiting_in(rows: np.ndarray, queue: int) -> list[int]:
    found, row = list[int](), int(rows[queue, 4])
    while row != queue:
        found.append(row - 3)
        assert len(found) <= len(rows)
        row = int(rows[row, 4])
    return found
