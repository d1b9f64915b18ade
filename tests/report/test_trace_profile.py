"""What is drawn of a trace, against a slow count of the same."""

from collections import Counter
from fractions import Fraction
from itertools import pairwise
from math import gcd
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgroup.report import trace_profile as module
from streamgroup.report.trace_profile import TraceProfile, profile_trace
from streamgroup.traces import layout
from streamgroup.traces.trace import open_trace
from tests.study.small_hand_written_traces import write_trace


def _look(path: Path, times: list[int], keys: list[str]) -> TraceProfile:
    return profile_trace(open_trace(write_trace(path, times, keys)))


def _cell(time: int, first: int, units: int, unit: int, cells: int) -> int:
    """The one cell among equal ones, in whole units, that holds a time."""
    at = Fraction(time - first, unit)
    (found,) = [i for i in range(cells) if -(-units * i // cells) <= at < -(-units * (i + 1) // cells)]
    return found


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(0, 400), min_size=1, max_size=60),
    st.sampled_from([1, 1_000, 3_600_000_000]),
    st.integers(1, 20),
    st.booleans(),
)
def test_rates_are_those_counted_one_by_one(
    tmp_path_factory: pytest.TempPathFactory, gaps: list[int], unit: int, block: int, few: bool
) -> None:
    times = [int(at) * unit - 10**6 for at in np.cumsum(gaps)]
    first, width = times[0], times[-1] - times[0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layout, "BLOCK_ROWS", block)
        if not few:
            patch.setattr(module, "_INSTANTS", 0)
        found = _look(tmp_path_factory.mktemp("trace") / "t", times, ["a"] * len(times)).rate
    step = (gcd(*(time - first for time in times)) or 1) if few else 1
    units = width // step + 1
    buckets = min(200, units)
    pieces = min(10, units // buckets)
    counts = Counter(_cell(time, first, units, step, buckets) for time in times)
    fine = Counter(_cell(time, first, units, step, buckets * pieces) for time in times)
    assert found["tuples"].to_list() == [counts[i] for i in range(buckets)]
    edges = [-(-units * i // (buckets * pieces)) * step / 1e6 for i in range(buckets * pieces + 1)]
    assert found["from_s"].to_list() == edges[:-1:pieces]
    assert found["to_s"].to_list() == edges[pieces::pieces]
    if width == 0:
        assert found.select("rate", "peak_rate").row(0) == (None, None)
        return
    for i, (low, high, rate, peak) in enumerate(found.select("from_s", "to_s", "rate", "peak_rate").iter_rows()):
        assert rate == pytest.approx(counts[i] / (high - low))
        near = range(i * pieces, (i + 1) * pieces)
        assert peak == pytest.approx(max(fine[j] / (edges[j + 1] - edges[j]) for j in near))


def test_times_in_whole_hours_leave_no_false_gaps(tmp_path: Path) -> None:
    hour = 3_600_000_000
    found = _look(tmp_path / "t", [i * hour for i in range(300) for _ in range(7)], ["a"] * 2100).rate
    assert found.height == 200
    assert set(found["rate"].round(12)) == {round(7 / 3600, 12)}
    assert found["peak_rate"].to_list() == pytest.approx(found["rate"].to_list())


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 15)), min_size=1, max_size=80), st.integers(1, 20))
def test_shares_of_hot_keys_are_those_counted_one_by_one(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int, int]], block: int
) -> None:
    times = [int(at) for at in np.cumsum([gap for gap, _ in rows])]
    keys = [f"k{key:02}" for _, key in rows]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layout, "BLOCK_ROWS", block)
        seen = _look(tmp_path_factory.mktemp("trace") / "t", times, keys)

    def most(names: list[str]) -> list[str]:
        # Ids go by frequency in the whole trace, then by name; so do ties within a window.
        overall = Counter(keys)
        ids = sorted(overall, key=lambda key: (-overall[key], key))
        return sorted(set(names), key=lambda key: (-names.count(key), ids.index(key)))[:10]

    unit = gcd(*(time - times[0] for time in times[:block])) or 1
    units = (times[-1] - times[0]) // unit + 1
    cells = min(60, units)
    windows: dict[int, list[str]] = {}
    for time, key in zip(times, keys, strict=True):
        windows.setdefault(_cell(time, times[0], units, unit, cells), []).append(key)
    peaks = {
        key: max(names.count(key) / len(names) for names in windows.values() if 10 * cells * len(names) >= len(keys))
        for key in set(keys)
        if any(key in names and 10 * cells * len(names) >= len(keys) for names in windows.values())
    }
    top = sorted(peaks, key=lambda key: (-peaks[key], -keys.count(key), key))[:10]
    assert [one.key for one in seen.top_keys] == top
    assert [one.share for one in seen.top_keys] == [keys.count(key) / len(keys) for key in top]
    shares, stays, before = [], [], None
    for window, names in windows.items():
        edges = [-(-units * i // cells) * unit / 1e6 for i in (window, window + 1)]
        stay = None if before is None else len(set(most(names)) & before) / len(most(names))
        stays.append((*edges, len(names), stay))
        before = set(most(names))
        for rank, key in enumerate(top, 1):
            shares.append((*edges, len(names), rank, names.count(key) / len(names)))
    assert seen.stay.rows() == stays
    assert seen.hot.rows() == shares


def test_ranks_are_spaced_by_their_logarithm(tmp_path: Path) -> None:
    keys = [f"k{i}" for i in range(1, 2001) for _ in range(2000 // i)]
    seen = _look(tmp_path / "t", list(range(len(keys))), keys)
    rank, count, fit = (seen.ranks[name].to_list() for name in ("rank", "count", "zipf"))
    assert (rank[0], rank[-1]) == (1, 2000)
    assert 100 < len(rank) <= 300
    assert count == [2000 // i for i in rank]
    assert rank[:6] == [1, 2, 3, 4, 5, 6]
    assert max(b / a for a, b in pairwise(rank[50:])) < 1.06
    assert seen.zipf_exponent is not None
    total = sum(i**-seen.zipf_exponent for i in range(1, 2001))
    assert fit == pytest.approx([len(keys) * i**-seen.zipf_exponent / total for i in rank])


def test_traces_without_a_tuple_a_span_or_a_second_key(tmp_path: Path) -> None:
    none = _look(tmp_path / "none", [], [])
    assert none.top_keys == ()
    assert [frame.height for frame in (none.rate, none.ranks, none.hot, none.stay)] == [0, 0, 0, 0]
    one = _look(tmp_path / "one", [7], ["a"])
    assert one.rate.rows() == [(0.0, 1e-6, 1, None, None)]
    assert one.ranks.rows() == [(1, 1, None)]
    assert (one.hot.rows(), one.stay.rows()) == ([(0.0, 1e-6, 1, 1, 1.0)], [(0.0, 1e-6, 1, None)])
    instant = _look(tmp_path / "instant", [7, 7, 7], ["a", "b", "a"])
    assert instant.rate.rows() == [(0.0, 1e-6, 3, None, None)]
    assert instant.hot["share"].to_list() == [2 / 3, 1 / 3]
    for frame, other in ((none.rate, one.rate), (none.ranks, one.ranks), (none.hot, one.hot), (none.stay, one.stay)):
        assert frame.schema == other.schema


def test_times_as_far_apart_as_can_be(tmp_path: Path) -> None:
    seen = _look(tmp_path / "t", [-(2**63), 0, 2**63 - 1], ["a", "b", "b"])
    assert seen.rate["tuples"].sum() == 3
    assert seen.rate.filter(pl.col("tuples") > 0)["from_s"].to_list() == pytest.approx(
        [0, 2**63 / 1e6, 1.99 * 2**63 / 1e6], rel=0.01
    )
    assert seen.stay.height == 3
