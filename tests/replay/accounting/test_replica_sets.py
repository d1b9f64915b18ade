"""Replicas that one run has and another has not: against sets, and whole runs against the slow twin."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgroup.replay.accounting import replica_sets as module
from streamgroup.replay.accounting.key_worker_pairs import grown, make_pairs
from streamgroup.replay.accounting.replica_sets import TouchedPairs, beyond, touched
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.study.replay_run import make_run, without_changes
from streamgroup.traces.trace import open_trace
from tests.groupings.test_against_naive_twins import options, stream
from tests.naive.metrics import metrics as naive
from tests.naive.replay.random_scenarios import Scenario, place
from tests.traces_by_hand import write_trace

KEYS = 23


def made(pairs: set[tuple[int, int]], workers: int, in_bits: bool) -> TouchedPairs:
    found: Any = make_pairs(KEYS, workers, max_bits=1 << 20 if in_bits else 0)
    for key, worker in sorted(pairs, reverse=True):
        while found.is_full(1):
            found = grown(found)
        found.touch(key, worker)
    return touched(found, KEYS)


def sets(workers: int) -> st.SearchStrategy[set[tuple[int, int]]]:
    return st.sets(st.tuples(st.integers(0, KEYS - 1), st.integers(0, workers - 1)), max_size=60)


@settings(max_examples=60, deadline=None)
@given(data=st.data(), workers=st.tuples(st.integers(1, 11), st.integers(1, 11)), cells=st.sampled_from([1, 40, 4096]))
def test_pairs_beyond_those_of_another_run(data: st.DataObject, workers: tuple[int, int], cells: int) -> None:
    mine, theirs = data.draw(sets(workers[0])), data.draw(sets(workers[1]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_CELLS", cells)
        for kinds in ((True, True), (True, False), (False, True), (False, False)):
            one, other = made(mine, workers[0], kinds[0]), made(theirs, workers[1], kinds[1])
            assert beyond(one, other) == len(mine - theirs)
            assert beyond(other, one) == len(theirs - mine)
            table = np.argwhere(one.table(0, KEYS)).tolist()
            assert table == sorted(map(list, mine))


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        ("kg", {"leave": ("300",)}),
        ("kg", {"join": ("300",), "warmup": "20%"}),
        ("sg", {"leave": ("10:2",)}),
        ("pkg:hash=mod", {"crash": ("200:1",), "redeliver": True, "join": ("400", "500")}),
    ],
)
def test_the_same_as_the_twin(text: str, changes: dict[str, Any], tmp_path: Path) -> None:
    tuples, given = stream("evolving", 700), options(text, **changes)
    trace = open_trace(write_trace(tmp_path / "x.trace", tuples))
    asked = ReplayOptions(**given)
    row = make_run(trace, asked, baseline=without_changes(asked)).row
    without = {**given, "join": (), "leave": (), "crash": (), "redeliver": False}
    run, baseline = (Scenario(tuples, one) for one in (given, without))
    twin = naive.summary(run.run(), warmup=place(given["warmup"]), baseline=baseline.run())
    assert row["remapped_replicas"] == twin["remapped_replicas"] >= 0
    if text == "sg":
        # Fewer workers have fewer replicas, and none that they would not have had.
        alone = naive.summary(baseline.run())
        assert twin["replicas"] < alone["replicas"]
    else:
        assert twin["remapped_replicas"] > 0
