"""The edges of a replay: one tuple, one worker, more workers than keys, windows, the end of the clock, overflow."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgroup.base.errors import DataError, StreamgroupError, UsageError
from streamgroup.kernels import latency_histogram
from streamgroup.replay.accounting import key_worker_pairs
from streamgroup.replay.accounting.window_ends import WindowRule
from streamgroup.replay.input.arrivals import ConstantArrivals
from streamgroup.replay.replay_trace import replay
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.traces.trace import Batch, Trace, open_trace
from tests.traces_by_hand import Tuple, write_trace


def opened(path: Path, tuples: list[Tuple]) -> Trace:
    return open_trace(write_trace(path / "t", tuples))


@pytest.mark.parametrize("grouping", ["sg", "kg", "pkg", "greedy_d:d=9"])
def test_one_tuple(tmp_path: Path, grouping: str) -> None:
    outcome = replay(opened(tmp_path, [(5, b"a", None)]), ReplayOptions(grouping=grouping, workers=3), interpreted=True)
    assert outcome.worker.tuples.sum() == 1
    assert outcome.last_finish_ns == 1_000_000
    assert outcome.offered_load is None
    assert outcome.window.number.tolist() == [0]


def test_more_workers_than_keys(tmp_path: Path) -> None:
    trace = opened(tmp_path, [(i, b"k%d" % (i % 2), None) for i in range(50)])
    outcome = replay(trace, ReplayOptions(grouping="kg", workers=1000), interpreted=True)
    assert (outcome.worker.tuples > 0).sum() <= 2
    assert outcome.worker.keys.sum() == 2


def test_latency_counts_from_the_arrival_in_the_trace(tmp_path: Path) -> None:
    trace = opened(tmp_path, [(0, b"a", None)] * 3)
    outcome = replay(trace, ReplayOptions(grouping="kg", workers=1, service="1s"), interpreted=True)
    assert outcome.worker.latency_sum_ns == [6_000_000_000]
    assert (outcome.latency_min_ns, outcome.latency_max_ns) == (1_000_000_000, 3_000_000_000)


def test_negative_hashes_and_colliding_candidates_stay_in_range(tmp_path: Path) -> None:
    keys = [b"polygenelubricants", b"PUFPaY9KxDAcGqfsorJp1R", b"", b"a"]
    trace = opened(tmp_path, [(i, keys[i % 4], None) for i in range(64)])
    for workers in (1, 2, 3, 5, 7):
        for grouping in ("kg", "pkg", "greedy_d:d=5", "sg", "sg_random"):
            outcome = replay(trace, ReplayOptions(grouping=grouping, workers=workers), interpreted=True)
            assert outcome.worker.tuples.sum() == 64


def test_an_empty_trace_is_refused(tmp_path: Path) -> None:
    trace = opened(tmp_path, [])
    with pytest.raises(DataError, match="empty"):
        replay(trace, ReplayOptions(grouping="kg", workers=1))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"workers": 0}, "-n 0"),
        ({"workers": 70_000}, "-n 70000"),
        ({"sources": 0}, "--sources 0"),
        ({"arrivals": "rate"}, "needs a value"),
        ({"arrivals": "rate=0"}, "not between"),
        ({"arrivals": "rate=x"}, "not a number"),
        ({"arrivals": "sometimes"}, "no kind 'sometimes'"),
        ({"arrivals": "rate=5", "speedup": "2"}, "change the trace's times"),
        ({"speedup": "0"}, "--speedup 0"),
        ({"slowdown": "0"}, "--slowdown"),
        ({"slowdown": "fast"}, "not a number"),
        ({"service": "-1ms"}, "not a duration"),
        ({"window": "0"}, "cannot be empty"),
        ({"window": "10q"}, "not a time"),
        ({"window": "1e-300%"}, "not that many windows"),
        ({"window": "1e30s"}, "146 years"),
        ({"network_delay": "1e30s"}, "146 years"),
        ({"control_delay": "1e30s"}, "146 years"),
        ({"source_assignment": "hash"}, "no kind 'hash'"),
        ({"seed": -1}, "--seed -1"),
        ({"hash_seed": 1 << 63}, "--hash-seed"),
        ({"service": "0", "arrivals": "utilization=0.8"}, "mean cost over 0"),
    ],
)
def test_wrong_options_are_told(tmp_path: Path, options: dict[str, object], words: str) -> None:
    trace = opened(tmp_path, [(0, b"a", None)])
    given_options = {"grouping": "kg", "workers": 2, **options}
    with pytest.raises(UsageError, match=words):
        replay(trace, ReplayOptions(**given_options), interpreted=True)  # type: ignore[arg-type]


def test_a_finish_past_the_clock_is_refused(tmp_path: Path) -> None:
    trace = opened(tmp_path, [(0, b"a", 1.0), (0, b"a", 9.1e12), (0, b"a", 3e38)])
    with pytest.raises(DataError, match="2\\^53"):
        replay(trace, ReplayOptions(grouping="kg", workers=1), interpreted=True)
    far = opened(tmp_path / "far", [(-(2**62), b"a", None), (2**62, b"a", None)])
    with pytest.raises(DataError, match="146 years"):
        replay(far, ReplayOptions(grouping="kg", workers=1), interpreted=True)
    slow = opened(tmp_path / "slow", [(0, b"a", None)] * 600)
    with pytest.raises(DataError, match="146 years"):
        replay(slow, ReplayOptions(grouping="kg", workers=1, service="100d"), interpreted=True)


def test_sums_of_latencies_pass_two_to_the_63(tmp_path: Path) -> None:
    service = 8_000_000_000_000_000
    trace = opened(tmp_path, [(0, b"a", None)] * 400)
    outcome = replay(trace, ReplayOptions(grouping="kg", workers=1, service=f"{service}ns"), interpreted=True)
    assert outcome.worker.latency_sum_ns == [service * 400 * 401 // 2]
    assert sum(outcome.window.latency_sum_ns) == service * 400 * 401 // 2 > 2**63


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.integers(0, 400), min_size=1, max_size=120),
    st.sampled_from(["1%", "7%", "100%", "33.3%", "0.1%", "1", "7", "50", "200", "1us", "130ns", "1s"]),
    st.integers(1, 50),
)
def test_every_tuple_has_its_window(gaps: list[int], text: str, size: int) -> None:
    arrival = np.cumsum(np.array([0, *gaps[1:]], dtype=np.int64))
    count = len(arrival)
    rule = WindowRule(text, count)
    found = np.empty(count, dtype=np.int64)
    for offset in range(0, count, size):
        chunk = arrival[offset : offset + size]
        places, numbers = rule.begins(offset, chunk)
        assert places[0] == 0
        assert (np.diff(places) > 0).all()
        found[offset : offset + len(chunk)] = np.repeat(numbers, np.diff(places, append=len(chunk)))
    if text.endswith("%"):
        share = Fraction(text[:-1]) / 100
        expected = [i // (share * count) for i in range(count)]
    elif text.isdigit():
        expected = [i // int(text) for i in range(count)]
    else:
        width = {"1us": 1000, "130ns": 130, "1s": 10**9}[text]
        expected = [int(a) // width for a in arrival]
    assert found.tolist() == expected


def test_windows_sum_to_the_total_whatever_their_length(tmp_path: Path) -> None:
    trace = opened(tmp_path, [(i * 700, b"k%d" % (i % 5), None) for i in range(257)])
    for window in ("1%", "100", "3", "10ms", "1d"):
        outcome = replay(trace, ReplayOptions(grouping="pkg", workers=3, window=window), interpreted=True)
        assert outcome.window.tuples.sum() == 257
        assert np.array_equal(outcome.window.tuples.sum(axis=0), outcome.worker.tuples)
        assert outcome.window.busy_ns.sum() == 257_000_000
        assert sum(outcome.window.latency_sum_ns) == sum(outcome.worker.latency_sum_ns)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 6), st.booleans()), max_size=300), st.booleans())
def test_pairs_are_counted_by_both_structures(touches: list[tuple[int, int, bool]], in_bits: bool) -> None:
    found = key_worker_pairs.make_pairs(31, 7, max_bits=1000 if in_bits else 0)
    run: set[tuple[int, int]] = set()
    window: set[tuple[int, int]] = set()
    for key, worker, ends in touches:
        if ends:
            found.forget_window()
            window.clear()
        expected = 0 if (key, worker) in window else 1 if (key, worker) in run else 3
        assert found.touch(key, worker) == expected
        window.add((key, worker))
        run.add((key, worker))
    for key in range(31):
        assert found.workers_of(key) == len({pair for pair in run if pair[0] == key})


def test_the_hash_set_of_pairs_grows() -> None:
    found = key_worker_pairs.make_pairs(1 << 40, 64, max_bits=0)
    assert isinstance(found, key_worker_pairs.HashPairs)
    for key in range(40_000):
        if found.is_full(1):
            found = key_worker_pairs.grown(found)
        assert found.touch(key * 977, key % 64) == 3
    assert found.slot.shape[0] >= 80_000
    assert all(found.touch(key * 977, key % 64) == 0 for key in range(0, 40_000, 37))


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 2**62))
def test_a_latency_is_in_its_bucket_and_near_its_middle(ns: int) -> None:
    bucket = int(latency_histogram.bucket_of(ns))
    bounds = latency_histogram.lower_bounds()
    assert 0 <= bucket < latency_histogram.BUCKETS == len(bounds)
    assert abs(float(latency_histogram.middle(bucket)) - ns) <= 0.005 * ns
    if ns < 2**52:
        assert bounds[bucket] <= ns
        assert bucket + 1 == len(bounds) or ns < bounds[bucket + 1]


def test_buckets_are_never_too_many() -> None:
    assert int(latency_histogram.bucket_of(2**62)) == latency_histogram.BUCKETS - 1


@settings(max_examples=100, deadline=None)
@given(
    st.fractions(min_value=Fraction(1, 50), max_value=10**9),
    st.integers(0, 2**40),
    st.integers(1, 60),
)
def test_constant_arrivals_are_exact_anywhere(spacing: Fraction, offset: int, size: int) -> None:
    try:
        arrivals = ConstantArrivals(spacing, offset + size)
    except StreamgroupError:
        return
    expected = [(offset + i) * spacing.numerator // spacing.denominator for i in range(size)]
    assert arrivals.chunk(offset, None, size).tolist() == expected


@pytest.mark.parametrize(("spacing", "steps"), [(Fraction(10**6), 10**9), (Fraction(10**6) + Fraction(1, 3), 10**8)])
def test_a_thousand_million_steps_of_a_millisecond_end_exactly(spacing: Fraction, steps: int) -> None:
    size = 1 << 20
    arrivals = ConstantArrivals(spacing, steps + 1)
    last, least, most = -1, 10**12, 0
    for offset in range(0, steps + 1, size):
        chunk = arrivals.chunk(offset, None, min(size, steps + 1 - offset))
        gaps = np.diff(chunk, prepend=last if offset else chunk[0] - 10**6)
        least, most, last = min(least, int(gaps.min())), max(most, int(gaps.max())), int(chunk[-1])
    assert last == steps * spacing.numerator // spacing.denominator
    assert least == 10**6
    assert most == (10**6 if spacing == 10**6 else 10**6 + 1)


def test_spread_ties_over_eighty_years_fit_the_clock(tmp_path: Path) -> None:
    year = 365 * 86_400 * 10**6
    trace = opened(tmp_path, [(0, b"a", None), (80 * year, b"a", None), (80 * year, b"b", None)])
    outcome = replay(trace, ReplayOptions(grouping="kg", workers=1, spread_ties=True), interpreted=True)
    assert outcome.last_arrival_ns == 120 * year * 1000
    far = opened(tmp_path / "far", [(0, b"a", None), (80 * year, b"a", None), *[(80 * year, b"b", None)] * 50])
    with pytest.raises(DataError, match="146 years"):
        replay(far, ReplayOptions(grouping="kg", workers=1, spread_ties=True), interpreted=True)


def test_poisson_arrivals_past_the_clock_are_refused(tmp_path: Path) -> None:
    trace = opened(tmp_path, [(0, b"a", None)] * 5)
    with pytest.raises(DataError, match="146 years"):
        replay(trace, ReplayOptions(grouping="kg", workers=1, arrivals="poisson=1e-9", seed=3), interpreted=True)


@pytest.mark.parametrize(
    ("tuples", "words"),
    [
        ({"key_id": [0, 7, 1]}, "tuple 1 has a key_id that is not in the dictionary of 2 keys"),
        ({"timestamp": [5, 4, 6]}, "tuple 1 is earlier"),
        ({"cost": [1.0, 1.0, -2.0]}, "tuple 2 has a cost"),
        ({"cost": [1.0, float("nan"), 2.0]}, "tuple 1 has a cost"),
    ],
)
def test_a_trace_that_was_damaged_after_it_was_made_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tuples: dict[str, list[float]], words: str
) -> None:
    trace = opened(tmp_path, [(1, b"a", 1.0), (2, b"a", 1.0), (3, b"b", 1.0)])
    columns: dict[str, list[float]] = {"timestamp": [1, 2, 3], "key_id": [0, 0, 1], "cost": [1.0, 1.0, 1.0], **tuples}
    kinds = {"timestamp": np.int64, "key_id": np.uint32, "cost": np.float32}
    damaged = Batch(0, **{name: np.array(columns[name], dtype=kind) for name, kind in kinds.items()})
    monkeypatch.setattr(Trace, "batches", lambda *_, **__: iter([damaged]))
    for grouping in ("kg", "pkg"):
        with pytest.raises(DataError, match=words):
            replay(trace, ReplayOptions(grouping=grouping, workers=3))
