"""The facts that describe finds, against slow definitions."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgroup.traces import layout
from streamgroup.traces.statistics import describe as module
from streamgroup.traces.statistics.describe import describe, zipf_exponent
from streamgroup.traces.trace import open_trace

Make = Callable[..., Path]


def test_facts_of_a_small_trace(by_writer: Make) -> None:
    rows = [(0, b"a"), (0, b"b"), (0, None), (400_000, b"a"), (999_999, b"a"), (999_999, b"\xff")]
    trace = open_trace(
        by_writer(
            rows,
            cost=[1, 2, 3, 4, 5, 9],
            in_order=False,
            out_of_order=1,
            rows_read=8,
            rows_kept=6,
            rows_rejected=0,
            rows_filtered=2,
        )
    )
    facts = describe(trace, top=3).to_json()
    assert json.loads(json.dumps(facts)) == {**facts, "top_keys": facts["top_keys"]}
    assert facts["top_keys"] == [
        {"key": "a", "count": 3, "share": 0.5},
        {"key": None, "count": 1, "share": 1 / 6},
        {"key": "b", "count": 1, "share": 1 / 6},
    ]
    expected = {
        "tuples": 6,
        "keys": 4,
        "first_timestamp": 0,
        "last_timestamp": 999_999,
        "span_us": 999_999,
        "p1": 0.5,
        "in_order": False,
        "out_of_order": 1,
        "rows_read": 8,
        "rows_kept": 6,
        "rows_rejected": 0,
        "rows_filtered": 2,
        "distinct_timestamps": 3,
        "tied_tuples": 5,
        "largest_tie": 3,
        "total_cost_ns": 24_000,
        "mean_cost_us": 4.0,
        "rate_mean": 6.0,
        "rate_min": 0.0,
        "rate_max": 300.0,
    }
    assert {name: facts[name] for name in expected} == expected
    assert facts["zipf_exponent"] > 0


def test_traces_without_a_tuple_a_span_or_a_second_key(by_writer: Make, by_hand: Make) -> None:
    none = describe(open_trace(by_writer([])))
    assert (none.tuples, none.span_us, none.rate_mean, none.zipf_exponent, none.drift) == (0, None, None, None, None)
    assert none.top_keys == ()
    one = describe(open_trace(by_writer([(5, b"a")], name="one")))
    assert (one.span_us, one.rate_mean, one.zipf_exponent, one.p1, one.drift) == (0, None, None, 1.0, None)
    hand = describe(open_trace(by_hand()))
    assert (hand.in_order, hand.rows_read, hand.top_keys[0].key) == (True, None, "b")


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 6), min_size=1, max_size=40), st.integers(1, 9))
def test_ties_and_rates_over_any_batches(gaps: list[int], block: int) -> None:
    from streamgroup.traces.statistics.describe import _Ties

    stamps = np.cumsum(np.array(gaps) // 3)
    ties = _Ties()
    for first in range(0, len(stamps), block):
        ties.add(stamps[first : first + block])
    ties.end()
    groups = Counter(stamps.tolist())
    assert ties.distinct == len(groups)
    assert ties.tied == sum(size for size in groups.values() if size > 1)
    assert ties.largest == max(groups.values())


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, 5), max_size=40), st.integers(0, 12), st.integers(1, 7))
def test_the_most_frequent_keys_whatever_the_stretches(counts: list[int], k: int, stretch: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_BLOCK", stretch)
        found = module.top_ids(np.array(counts, np.int64), k)
    ranked = sorted((-count, key) for key, count in enumerate(counts) if count)
    assert found == [key for _, key in ranked[:k]]


def test_slices_of_time_add_up_over_batches(by_writer: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    stamps = np.sort(np.random.default_rng(3).integers(-10_000, 90_000, 5000)).tolist()
    root = by_writer([(stamp, b"a") for stamp in stamps])
    monkeypatch.setattr(layout, "BLOCK_ROWS", 333)
    facts = describe(open_trace(root))
    width = stamps[-1] - stamps[0] + 1
    slices = Counter((stamp - stamps[0]) * 100 // width for stamp in stamps)
    assert facts.rate_max == pytest.approx(max(slices.values()) * 1e8 / width)
    assert facts.rate_min == pytest.approx(min(slices[i] for i in range(100)) * 1e8 / width)
    assert facts.tied_tuples == sum(size for size in Counter(stamps).values() if size > 1)


def test_drift_of_the_hot_set(by_writer: Make) -> None:
    still = [(i, b"k%d" % (i % 10)) for i in range(1000)]
    facts = describe(open_trace(by_writer(still, name="still")))
    assert (facts.drift, facts.drift_total) == (0.0, 0.0)
    moving = [(i, b"%d-%d" % (i // 100, i % 10)) for i in range(1000)]
    facts = describe(open_trace(by_writer(moving, name="moving")))
    assert (facts.drift, facts.drift_total) == (1.0, 1.0)
    # One of ten hot keys is another one in each slice: 9 common of 11.
    creeping = [(i, b"k%d" % (i % 10 + i // 100)) for i in range(1000)]
    facts = describe(open_trace(by_writer(creeping, name="creeping")))
    assert facts.drift == pytest.approx(1 - 9 / 11)
    assert facts.drift_total == pytest.approx(1 - 1 / 19)


@pytest.mark.parametrize("exponent", [0.5, 0.9, 1.0, 1.2, 2.0])
def test_the_exponent_is_recovered_from_exact_frequencies(exponent: float) -> None:
    count = np.round(1e9 * np.arange(1, 1001) ** -exponent).astype(np.int64)
    found = zipf_exponent(np.random.default_rng(0).permutation(count))
    assert found == pytest.approx(exponent, abs=1e-4)


def test_exponents_at_the_ends() -> None:
    assert zipf_exponent(np.array([7])) is None
    assert zipf_exponent(np.array([7, 0])) is None
    assert zipf_exponent(np.array([], np.int64)) is None
    assert zipf_exponent(np.full(50, 4)) == 0.0
    steep = zipf_exponent(np.array([10**12, 1]))
    assert steep == pytest.approx(np.log2(1e12), rel=1e-6)


def test_every_value_has_a_unit_and_a_meaning(by_writer: Make) -> None:
    facts = describe(open_trace(by_writer([(5, b"a")]))).to_json()
    assert list(module.MEANINGS) == [name for name in facts if name not in ("fingerprint", "top_keys")]
    assert all(meaning for _, meaning in module.MEANINGS.values())
