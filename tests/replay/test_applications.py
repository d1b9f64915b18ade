"""Applications: their results are what Polars finds in the trace, whatever the grouping, the window and the workers."""

import math
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streamgroup.base.errors import RunError, StreamgroupError, UsageError
from streamgroup.metrics.run_tables import summary, tables
from streamgroup.replay.accounting.outcome import Outcome
from streamgroup.replay.replay_trace import replay
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.replay.simulation import event_driven
from streamgroup.replay.stages import app_states, partial_results
from streamgroup.traces import layout
from streamgroup.traces.trace import Trace, open_trace
from tests.naive.metrics.what_is_counted import windows_of
from tests.naive.replay.options import TraceTuple
from tests.naive.replay.random_scenarios import Scenario, scenarios
from tests.traces_by_hand import write_trace

MEDIAN = """
MERGEABLE = False
COLUMNS = ("value",)

def start(params):
    return []

def update(state, key, value, weight):
    state.append(value)
    return state

def finish(state):
    return float(sorted(state)[len(state) // 2])
"""
COUNT = "from streamgroup.apps.count import finish, merge, start, update"
GROUPS: dict[str, list[pl.Expr]] = {
    "count": [pl.len().cast(pl.Int64).alias("result")],
    "hashtags": [pl.len().cast(pl.Int64).alias("result")],
    "vwap": [((pl.col("value") * pl.col("weight")).sum() / pl.col("weight").sum()).alias("result")],
    "stats": [
        pl.struct(
            pl.len().cast(pl.Int64).alias("count"), pl.col("value").sum().alias("sum"),
            pl.col("value").mean().alias("mean"), pl.col("value").min().alias("min"),
            pl.col("value").max().alias("max"),
        ).alias("result")
    ],
}  # fmt: skip


def value_of(place: int) -> float:
    return 0.1 + (place * 7919 % 1013) * 10.0 ** (place % 5 - 2)


def weight_of(place: int) -> float:
    return float(place * 31 % 7 + (place % 3 == 0)) / 3


def trace_of(tuples: list[TraceTuple], directory: Path) -> Trace:
    """With a value and a weight of each tuple."""
    path = write_trace(directory / "x.trace", tuples)
    for part in (path / "tuples").iterdir():
        table = pq.read_table(part)
        for name, of in (("value", value_of), ("weight", weight_of)):
            table = table.append_column(name, pa.array([of(place) for place in range(len(table))], pa.float64()))
        pq.write_table(table, part)
    return open_trace(path)


def expected(scenario: Scenario, app: str) -> list[tuple[Any, ...]]:
    """The rows (window, key id, result) of those tuples that were finished."""
    run = scenario.run()
    counts = Counter(key for _, key, _ in scenario.tuples)
    order = sorted(counts, key=lambda key: (-counts[key], key is not None, key or b""))
    every = scenario.aggregate_every() or ("share", 1)
    measured = [record for record in run.records if record.measured]
    rows = [
        (window, order.index(r.key), value_of(r.seq), weight_of(r.seq), (r.key or b"").startswith(b"#"))
        for window, content in windows_of(measured, every).items()
        for r in content
        if r.status == "finished"
    ]
    columns = {"window": pl.Int64, "key_id": pl.Int64, "value": pl.Float64, "weight": pl.Float64, "tag": pl.Boolean}
    frame = pl.DataFrame(rows, schema=columns, orient="row")
    name, _, k = app.partition(":k=")
    if name == "hashtags":
        frame = frame.filter(pl.col("tag"))
    found = frame.group_by("window", "key_id").agg(GROUPS["count" if k else name]).sort("window", "key_id")
    if k:
        ranked = found.sort("window", "result", "key_id", descending=[False, True, False])
        found = ranked.filter(pl.col("key_id").cum_count().over("window") <= int(k))
    return found.rows()


def results(outcome: Outcome) -> list[tuple[Any, ...]]:
    return pl.DataFrame(tables(outcome)["results"]).select("window", "key_id", "result").rows()


def assert_equal(found: list[tuple[Any, ...]], wanted: list[tuple[Any, ...]]) -> None:
    assert [row[:2] for row in found] == [row[:2] for row in wanted]
    for (*_, one), (*_, other) in zip(found, wanted, strict=True):
        pairs = [(one[name], other[name]) for name in other] if isinstance(other, dict) else [(one, other)]
        for a, b in pairs:
            if isinstance(b, int) or a is None:
                assert a == b or math.isnan(b)
            else:
                assert a == pytest.approx(b, rel=1e-12, abs=0)


def agree(scenario: Scenario, app: str, *, interpreted: bool) -> None:
    with tempfile.TemporaryDirectory() as directory:
        trace = trace_of(scenario.tuples, Path(directory))
        outcome = replay(trace, ReplayOptions(**scenario.options, app=app), interpreted=interpreted)
    assert_equal(results(outcome), expected(scenario, app))
    # What is missing is what was lost or dropped, no more.
    if app == "count":
        counted = sum(result for *_, result in results(outcome))
        assert counted == outcome.measured - outcome.lost - outcome.dropped


def tagged(scenario: Scenario) -> Scenario:
    """Some keys are hashtags."""
    names = {b"a": b"#a", b"b": b"#b"}
    return Scenario([(at, names.get(key, key), cost) for at, key, cost in scenario.tuples], scenario.options)


APPS = st.sampled_from(["count", "topk:k=1", "topk:k=2", "vwap", "stats", "hashtags"])


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(scenarios(["sg", "kg", "pkg"]), APPS, st.integers(1, 50), st.sampled_from([2, 64]))
def test_results_are_those_of_polars(scenario: Scenario, app: str, rows: int, room: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layout, "BLOCK_ROWS", rows)
        patch.setattr(event_driven, "_EVENTS", 8)
        patch.setattr(partial_results, "_FIRST_ROWS", room)
        agree(tagged(scenario), app, interpreted=True)


@pytest.mark.slow
@settings(max_examples=2000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(scenarios(), APPS, st.integers(1, 9))
def test_thousands_of_results_are_those_of_polars(scenario: Scenario, app: str, rows: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layout, "BLOCK_ROWS", rows)
        agree(tagged(scenario), app, interpreted=True)


@pytest.mark.parametrize("app", ["count", "topk:k=2", "vwap", "stats"])
def test_compiled_and_interpreted_results_are_the_same(tmp_path: Path, app: str) -> None:
    tuples: list[TraceTuple] = [(place * 50, b"%d" % (place * place % 13), None) for place in range(400)]
    options = ReplayOptions(
        "pkg", 4, sources=2, app=app, aggregate_every="3ms", crash=("40%",), join=("50%",), service="20us"
    )
    trace, found = trace_of(tuples, tmp_path), []
    for small in (0, 1 << 18):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(app_states, "_SMALL", small)
            patch.setattr(app_states, "_FIRST_ROWS", 2)
            found.append(results(replay(trace, options)))
    assert found[0] == found[1]


def test_floats_are_not_cut_off_where_a_state_begins_with_an_int(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A column of ints cannot hold them, so that such states are interpreted."""
    app = tmp_path / "half.py"
    app.write_text(
        "from typing import NamedTuple\n"
        "class State(NamedTuple):\n    total: int\n"
        "def start(params):\n    return State(0)\n"
        "def update(state, key, value, weight):\n    return State(state.total + 0.5)\n"
        "def merge(a, b):\n    return State(a.total + b.total)\n"
        "def finish(state):\n    return state.total\n"
    )
    monkeypatch.setattr(app_states, "_SMALL", 0)
    trace = trace_of([(place, b"a", None) for place in range(3)], tmp_path)
    assert [row[2] for row in results(replay(trace, ReplayOptions("sg", 2, app=str(app))))] == [1.5]


def test_rounding_does_not_depend_on_the_order(tmp_path: Path) -> None:
    """Prices that nearly cancel: a plain sum is right to seven digits, this one to sixteen."""
    trace = trace_of([(place, b"a", None) for place in range(300)], tmp_path)
    path = next((Path(str(trace.path)) / "tuples").iterdir())
    values = [10.0**9 * (1 if place % 2 else -1) + place / 7 for place in range(300)]
    table = pq.read_table(path).drop_columns("value").append_column("value", pa.array(values, pa.float64()))
    pq.write_table(table, path)
    trace = open_trace(trace.path)
    for grouping in ("kg", "sg", "pkg"):
        found = results(replay(trace, ReplayOptions(grouping, 7, app="stats")))
        assert found[0][2]["sum"] == pytest.approx(math.fsum(values), rel=1e-15, abs=0)


@pytest.fixture
def median(tmp_path: Path) -> str:
    path = tmp_path / "median.py"
    path.write_text(MEDIAN)
    return str(path)


def test_an_application_of_the_users_own(tmp_path: Path, median: str) -> None:
    trace = trace_of([(place, b"%d" % (place % 3), None) for place in range(30)], tmp_path)
    found = results(replay(trace, ReplayOptions("kg", 2, app=median)))
    assert found == [(0, key, sorted(value_of(place) for place in range(key, 30, 3))[5]) for key in range(3)]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"grouping": "pkg"}, "pkg splits keys over workers"),
        ({"grouping": "sg"}, "sg splits keys over workers"),
        ({"grouping": "d_choices"}, "d_choices splits keys over workers"),
        ({"grouping": "kg", "join": ("1",)}, "keys move when workers join, leave or crash"),
    ],
)
def test_what_cannot_merge_is_refused(tmp_path: Path, median: str, options: dict[str, Any], told: str) -> None:
    trace = trace_of([(0, b"a", None), (1, b"a", None)], tmp_path)
    with pytest.raises(UsageError) as refused:
        replay(trace, ReplayOptions(workers=2, app=median, **options))
    assert "cannot merge" in str(refused.value)
    assert told in str(refused.value)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("def start(params): return 0", "has no update"),
        ("start = update = finish = 1", "has no merge"),
        (f"{COUNT}; COLUMNS = ('price',)", "COLUMNS is ('price',)"),
        (f"{COUNT}; COLUMNS = (['value'],)", "COLUMNS is (['value'],)"),
        ("start = update = finish = merge = 1", "start is not a function"),
        (f"{COUNT}; keeps = {{'#a'}}", "keeps is not a function"),
        (f"{COUNT}; keeps = lambda key: 1 / 0", "ZeroDivisionError"),
        (f"{COUNT}; largest = 3", "largest is not a function"),
        (f"{COUNT}; largest = lambda params: 1 / 0", "ZeroDivisionError"),
        (f"{COUNT}; largest = lambda params: -1", "largest() gave -1"),
        (f"{COUNT}; largest = lambda params: '3'", "largest() gave '3'"),
        (f"{COUNT}; Params = dict", "Params is not a subclass of AppParams"),
        (f"{COUNT}; finish = lambda state: type('None', (tuple,), {{'_fields': ()}})()", "finish() gave ()"),
        ("start = lambda p: 0; update = lambda s, k, v, w: exit(); finish = merge = max", "SystemExit"),
        ("raise ValueError('no')", "does not import: ValueError: no"),
        ("def", "does not import: SyntaxError"),
        ("start = lambda p: 0; update = lambda s, k, v, w: s / 0; finish = merge = max", "ZeroDivisionError"),
        ("start = lambda p: 0; update = lambda s, k, v, w: s; merge = max; finish = str", "finish() gave '0'"),
        ("start = lambda p: 0; update = lambda s: s; merge = finish = max", "TypeError"),
    ],
)
def test_files_that_are_no_applications_say_what_is_wrong(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "mine.py"
    path.write_text(text)
    with pytest.raises(StreamgroupError) as refused:
        replay(trace_of([(0, b"a", None)], tmp_path), ReplayOptions("kg", 1, app=str(path)))
    assert told in str(refused.value)


@pytest.mark.parametrize(
    ("app", "told"),
    [
        ("counts", "there is no application 'counts'"),
        ("topk:k=0", "k: 0 is below 1"),
        ("topk:n=3", "there is no parameter 'n'"),
        ("topk:k=1,2", "several values"),
        ("", "names no application"),
        ("no_such.py", "No such file"),
        ("protocol", "there is no application"),
    ],
)
def test_texts_that_name_no_application_are_refused(tmp_path: Path, app: str, told: str) -> None:
    trace = open_trace(write_trace(tmp_path / "x.trace", [(0, b"a", None)]))
    with pytest.raises(UsageError) as refused:
        replay(trace, ReplayOptions("kg", 1, app=app))
    assert told in str(refused.value)


def test_a_column_that_the_trace_has_not_is_named(tmp_path: Path) -> None:
    trace = open_trace(write_trace(tmp_path / "x.trace", [(0, b"a", None)]))
    with pytest.raises(UsageError, match="reads the column value"):
        replay(trace, ReplayOptions("kg", 1, app="vwap"))


def test_aggregators_and_an_application_do_not_know_of_each_other(tmp_path: Path) -> None:
    trace = trace_of([(place, b"%d" % (place % 5), None) for place in range(200)], tmp_path)
    both = replay(trace, ReplayOptions("pkg", 3, app="vwap", aggregators=2, aggregate_every="7"))
    alone = replay(trace, ReplayOptions("pkg", 3, app="vwap", aggregate_every="7"))
    merged = replay(trace, ReplayOptions("pkg", 3, aggregators=2, aggregate_every="7"))
    assert results(both) == results(alone)
    assert summary(both) == summary(merged)
    assert summary(alone)["partials"] is None


def test_an_error_of_a_run_is_the_applications(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text("start = lambda p: 0\ndef update(s, k, v, w): return [][k]\nfinish = merge = max\n")
    with pytest.raises(RunError, match=r"IndexError: list index out of range \(line 2\)$"):
        replay(trace_of([(0, b"a", None)], tmp_path), ReplayOptions("kg", 1, app=str(path)))


# The result of a key is the one that its number of tuples has here.
FINISH = """
from typing import NamedTuple
class A(NamedTuple):
    a: int
class Both(NamedTuple):
    a: int
    b: int
def start(params): return 0
def update(state, key, value, weight): return state + 1
def merge(a, b): return a + b
def finish(state): return ({results})[state]
"""


@pytest.mark.parametrize(
    ("by_count", "told"),
    [
        ("0, Both(2, 3), A(1)", "finish() gave (a) and (a, b)"),
        ("0, A(1), 1.5", "finish() gave a number and (a)"),
        ("0, 0.5, (1 << 53) + 1", f"finish() gave {(1 << 53) + 1} beside floats"),
        ("0, 1, 1 << 64", f"finish() gave {1 << 64}, which a column does not hold exactly"),
    ],
)
def test_results_of_one_run_have_the_same_fields(tmp_path: Path, by_count: str, told: str) -> None:
    path = tmp_path / "mine.py"
    path.write_text(FINISH.format(results=by_count))
    trace = trace_of([(0, b"a", None), (1, b"b", None), (2, b"c", None), (3, b"c", None)], tmp_path)
    with pytest.raises(RunError) as refused:
        replay(trace, ReplayOptions("kg", 1, app=str(path)))
    assert told in str(refused.value)
    # And where the key with two tuples is in a window of its own.
    with pytest.raises(RunError, match=r"finish\(\) gave"):
        replay(trace, ReplayOptions("kg", 1, app=str(path), aggregate_every="2"))


def test_the_least_integer_of_64_bits_is_a_result(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(FINISH.format(results="0, -(1 << 63)"))
    found = replay(trace_of([(0, b"a", None)], tmp_path), ReplayOptions("kg", 1, app=str(path)))
    assert [row[-1] for row in results(found)] == [-(1 << 63)]


def test_what_an_application_prints_is_no_result(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.py"
    path.write_text(f"{COUNT}\n_finish = finish\ndef finish(state):\n    print('one')\n    return _finish(state)\n")
    replay(trace_of([(0, b"a", None)], tmp_path), ReplayOptions("kg", 1, app=str(path)))
    assert capsys.readouterr() == ("", "one\n")
