"""The metrics against the slow twin: the same run, every name and every cell of every table."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgroup.metrics.metric_names import METRICS
from streamgroup.metrics.run_tables import summary
from tests.metrics.compare_with_naive import assert_rows_agree, assert_same, tables
from tests.metrics.outcome_from_records import outcome_of
from tests.naive.groupings.hot_by_counts import ByCounts
from tests.naive.groupings.simple_groupings import GreedyD, Grouping, Kg, Pkg, Setting, Sg, SgRandom
from tests.naive.metrics import metrics as naive
from tests.naive.metrics.hot_keys import Heads
from tests.naive.replay.simulate import Run, simulate
from tests.random_cases import random_cases

SECOND = 1_000_000_000
WINDOWS = [("share", Fraction(1, 100)), ("share", Fraction(1, 3)), ("count", 7), ("time", 1_500_000)]


def assert_tables_agree(run: Run, window: naive.Span, heads: Heads | None = None) -> None:
    outcome = outcome_of(run, window, heads)
    expected = naive.metrics(run, window, heads=heads)
    found = summary(outcome)
    assert list(found) == list(METRICS)
    for name, value in found.items():
        assert_same(name, value, expected["summary"][name])
    made = tables(outcome)
    assert made["summary"].drop("schema_version").to_dicts() == [found]
    for name in ("windows", "workers", "loads"):
        assert_rows_agree(made[name], expected[name])
    as_text = [{**row, "key": None if row["key"] is None else row["key"].decode()} for row in expected["keys"]]
    assert_rows_agree(made["keys"], as_text)


KEYS = st.sampled_from([None, b"", b"a", b"b", b"c", b"d", b"e,", "é".encode()])


@st.composite
def runs(draw: st.DrawFn, kinds: Sequence[type[Grouping]] = (Sg, SgRandom, Kg, Pkg, GreedyD)) -> Run:
    gaps = draw(st.lists(st.tuples(st.integers(0, 3000), KEYS), min_size=1, max_size=60))
    traced = draw(st.booleans())
    costs = draw(st.lists(st.integers(0, 5000), min_size=len(gaps), max_size=len(gaps)))
    tuples: list[Any] = []
    now = 0
    for (gap, key), cost in zip(gaps, costs, strict=True):
        now += gap
        tuples.append((now, key, float(cost) if traced else None))
    workers, sources = draw(st.integers(1, 9)), draw(st.integers(1, 4))
    kind = draw(st.sampled_from(kinds))
    setting = Setting(workers, sources)
    grouping = GreedyD(setting, d=3) if kind is GreedyD else kind(setting)
    return simulate(
        tuples,
        grouping,
        workers=workers,
        sources=sources,
        service_ns=draw(st.sampled_from([None, 0, 1, 700_000, SECOND])),
        slowdown=draw(st.sampled_from(["1", "half:2", "1,0.25,3"])),
        network_delay_ns=draw(st.sampled_from([0, 12_345])),
    )


@random_cases(150)
@given(run=runs(), window=st.sampled_from(WINDOWS))
def test_every_table_agrees_with_the_slow_twin(run: Run, window: naive.Span) -> None:
    assert_tables_agree(run, window)


@random_cases(150)
@given(
    run=runs([ByCounts]),
    window=st.sampled_from(WINDOWS),
    theta=st.sampled_from([None, Fraction(1, 100), Fraction(1, 4), Fraction(1)]),
    cold=st.sampled_from([None, 1, 2]),
)
def test_hot_keys_agree_with_the_slow_twin(
    run: Run, window: naive.Span, theta: Fraction | None, cold: int | None
) -> None:
    assert_tables_agree(run, window, Heads(theta, cold))


@pytest.mark.parametrize("kind", [Sg, Kg, Pkg])
@pytest.mark.parametrize("window", WINDOWS)
def test_a_longer_skewed_run_agrees(kind: Any, window: naive.Span) -> None:
    keys = [f"k{int(1 / ((i * 0.6180339887) % 1 + 0.003))}".encode() for i in range(3000)]
    tuples = [(i * 40, key, None) for i, key in enumerate(keys)]
    run = simulate(tuples, kind(Setting(13)), workers=13, service_ns=450_000)
    assert_tables_agree(run, window)


def test_one_tuple_on_more_workers_than_keys() -> None:
    run = simulate([(7, b"k", None)], Pkg(Setting(5)), workers=5)
    assert_tables_agree(run, WINDOWS[0])
    found = summary(outcome_of(run, WINDOWS[0]))
    assert found["idle_workers"] == 4
    assert found["offered_load"] is None
    assert found["latency_p50_ms"] == found["latency_max_ms"] == 1.0
    window = tables(outcome_of(run, WINDOWS[0]))["windows"].row(0, named=True)
    assert window["latency_p50_ms"] == window["latency_p99_ms"] == 1.0


def test_nothing_takes_any_time() -> None:
    """Makespan 0: what divides by time does not exist, and nothing is NaN."""
    run = simulate([(0, b"a", None), (0, b"b", None)], Sg(Setting(2, 1)), workers=2, sources=1, service_ns=0)
    found = summary(outcome_of(run, WINDOWS[0]))
    nothing = {
        "work_imbalance",
        "work_peak_to_mean",
        "makespan_vs_lower_bound",
        "throughput_tps",
        "throughput_limit_tps",
        "utilization_mean",
        "utilization_max",
        "offered_load",
    }
    assert all(found[name] is None for name in nothing)
    assert found["queue_max"] == 0
    assert found["imbalance"] == 0.0
    assert_tables_agree(run, WINDOWS[0])


def test_window_rows_add_up_to_the_whole() -> None:
    """The last, partial window counts too, for every kind of window."""
    tuples = [(i * 1000, b"ab"[i % 2 : i % 2 + 1], None) for i in range(23)]
    run = simulate(tuples, Kg(Setting(2)), workers=2)
    for window in WINDOWS:
        made = tables(outcome_of(run, window))
        assert made["windows"]["tuples"].sum() == made["loads"]["tuples"].sum() == 23
        assert made["windows"]["imbalance"][-1] == made["summary"]["imbalance"][0]
        assert made["latency"].select(pl.col("tuples").sum()).item() == 23
