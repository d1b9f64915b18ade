"""Consistent hashing with bounded loads: the bound is exact and holds at every tuple; hot keys fill workers to it."""

from fractions import Fraction
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgroup.base.errors import UsageError
from streamgroup.metrics.run_tables import summary
from streamgroup.replay.replay_trace import replay
from streamgroup.replay.scenario.grouping_selection import select
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.traces.trace import Trace, open_trace
from tests.groupings.contexts_and_worker_changes import KEYS, changed, chosen, started
from tests.traces_by_hand import write_trace

TUPLES = 6000


@pytest.fixture(scope="module")
def skewed(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    """The hottest key has more than half of the tuples."""
    keys = np.random.default_rng(4).zipf(2.0, TUPLES)
    tuples = [(100 * i, b"key %d" % key, None) for i, key in enumerate(keys)]
    return open_trace(write_trace(tmp_path_factory.mktemp("bounded") / "t", tuples))


def bound(c: Fraction, tuples: int, workers: int) -> int:
    return ceil((1 + c) * tuples / workers)


def on_a_ring(c: str, owner: list[int], home: int) -> Any:
    """One source, and a ring by hand with key 0 at a point of it."""
    state = started(f"bounded_load:c={c}", len(set(owner)), sources=1)
    homes = np.full_like(state.home, home)
    return state._replace(owner=np.array(owner, dtype=np.uint16), home=homes)


@pytest.mark.parametrize(
    ("c", "workers"),
    [
        # Bounds 1, 1, 2, 2, 3, 3: half of the tuples each, so two workers are enough, and 0 is never reached.
        ("0.5", [1, 2, 1, 2, 1, 2]),
        # Bounds 1, 1, 2, 2, 3, 3, 3, 4: behind the last point comes the first.
        ("0.25", [1, 2, 1, 2, 1, 2, 0, 1]),
        ("2", [1, 1, 1, 1, 1, 1]),
    ],
)
def test_by_hand(c: str, workers: list[int]) -> None:
    assert chosen(on_a_ring(c, [0, 1, 1, 2], 1), 0, len(workers)) == workers


def test_the_bound_is_not_rounded() -> None:
    """It is 3 for 90 tuples to 33 workers, and in floating point above it."""
    assert ceil((1 + 0.1) * 90 / 33) == 4
    state = started("bounded_load:c=0.1", 33)
    chosen(state, 0, 90)
    assert state.load[0].max() == 3


@settings(max_examples=60, deadline=None)
@given(
    c=st.integers(1, 10_000_000).map(lambda parts: Fraction(parts, 1_000_000)) | st.just(Fraction(1, 4)),
    workers=st.integers(1, 12),
    vnodes=st.integers(1, 20),
    tuples=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 5) | st.integers(0, KEYS - 1)), max_size=150),
)
def test_no_worker_has_more_than_the_bound_at_any_tuple(
    c: Fraction, workers: int, vnodes: int, tuples: list[tuple[int, int]]
) -> None:
    state = started(f"bounded_load:c={float(c)},vnodes={vnodes}", workers)
    sent = [0, 0, 0]
    for source, key in tuples:
        before = state.load.copy()
        worker = int(state.choose(source, key, 0))
        sent[source] += 1
        before[source, worker] += 1
        assert np.array_equal(state.load, before)
        assert state.load[source].max() <= bound(c, sent[source], workers)
    # The same when it is not followed tuple by tuple.
    assert state.bound.tolist() == [bound(c, count, workers) for count in sent]


@pytest.mark.parametrize(("vnodes", "seed"), [(1, 1), (1, 2), (3, 3)])
def test_the_first_worker_with_room_is_found_though_searches_are_remembered(vnodes: int, seed: int) -> None:
    """Keys that are 256 apart share a place in the memory, and a leaver leaves the bound about as it was."""
    state = started(f"bounded_load:c=0.01,vnodes={vnodes}", 30, sources=1)
    remembered = 0
    for i, key in enumerate(np.random.default_rng(seed).choice([3, 259, 4, 260], 3000).tolist()):
        if i == 1500:
            state = changed(state, list(range(29)), left=(29,), sources=1)
            assert not state.memory.any()
        before = state.load[0].copy()
        worker = int(state.choose(0, key, 0))
        onwards = np.roll(state.owner, -int(state.home[key]))
        assert worker == onwards[np.argmax(before[onwards] < state.bound[0])]
        remembered += state.memory[0, key % 256, :2].tolist() == [key, state.bound[0]]
    assert remembered > 300


def test_who_is_above_the_bound_after_a_change_gets_nothing_until_it_has_caught_up() -> None:
    state = started("bounded_load:c=0.5", 2, sources=1)
    chosen(state, 0, 100)
    first = int(np.argmax(state.load[0]))
    assert sorted(state.load[0].tolist()) == [25, 75]
    live = [0, 1, 2, 3]
    state = changed(state, live, joined=(2, 3), sources=1)
    assert sorted(state.load[0].tolist()) == [25, 25, 25, 75]
    above = 0
    for _ in range(400):
        tuples = int(state.load[0].sum()) + 1
        (worker,) = chosen(state, 0, 1)
        assert state.load[0, worker] <= bound(Fraction(1, 2), tuples, 4)
        above += state.load[0, first] > bound(Fraction(1, 2), tuples, 4)
    # The 75 are within the bound from the tuple on that makes them 198.
    assert above == 197 - 150
    state = changed(state, [2, 3], left=(0, 1), sources=1)
    tuples = int(state.load[0, [2, 3]].sum())
    assert state.bound.tolist() == [bound(Fraction(1, 2), tuples, 2)]


@pytest.mark.parametrize("changes", [{}, {"join": ("1000", "2500"), "leave": ("2000:2",), "crash": ("3000:0",)}])
def test_with_a_large_slack_it_is_key_grouping_on_the_ring(
    skewed: Trace, tmp_path: Path, changes: dict[str, Any]
) -> None:
    def workers(text: str, name: str) -> list[int]:
        options = ReplayOptions(text, 8, sources=3, arrivals="rate=3000", **changes)
        replay(skewed, options, log_directory=tmp_path / name)
        found: list[int] = pq.read_table(tmp_path / name)["worker"].to_pylist()
        return found

    assert workers("bounded_load:c=10,vnodes=30", "a") == workers("kg:ring=true,vnodes=30", "b")
    assert workers("bounded_load:c=1,vnodes=30", "c") != workers("kg:ring=true,vnodes=30", "d")


@pytest.mark.parametrize("c", [0.05, 0.25, 1.0, 2.0])
def test_a_hot_key_fills_its_workers_to_the_bound(skewed: Trace, c: float) -> None:
    row = summary(replay(skewed, ReplayOptions(f"bounded_load:c={c}", 10, sources=3, arrivals="rate=3000")))
    # One tuple of each source, rounded up.
    assert 1 + c - 0.001 <= row["peak_to_mean"] <= 1 + c + 3 * 10 / TUPLES


@pytest.mark.parametrize("c", ["0", "-0.25", "10.5", "0.1234567", "1e-7", "inf", "nan"])
def test_what_slack_may_be(c: str) -> None:
    with pytest.raises(UsageError, match="c"):
        select(f"bounded_load:c={c}")


def test_a_slack_has_six_decimals_at_most() -> None:
    with pytest.raises(UsageError, match="6 decimals at most"):
        select("bounded_load:c=0.1234567")
    assert started("bounded_load:c=1e-6", 3).step == 1_000_001
