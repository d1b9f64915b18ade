"""Advice for traces where the answer is known."""

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from streamgroup.base.errors import DataError, UsageError
from streamgroup.base.progress import Silent
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.study.advise.advice_text import as_json, compared, headline, remarks, why
from streamgroup.study.advise.advise import Advice, AdviceRequest, advise
from streamgroup.study.advise.recommendation import Targets
from streamgroup.study.replay_run import run_to_directory
from streamgroup.study.sweep import compile_in_background
from streamgroup.traces.trace import Trace
from tests.traces_by_hand import write_trace

pytestmark = pytest.mark.many_groupings


def ask(path: Path, workers: int, *, question: AdviceRequest | None = None, **options: Any) -> Advice:
    return advise(path, ReplayOptions("kg", workers, **options), question or AdviceRequest())


def told(advice: Advice) -> str:
    return "\n".join([headline(advice), *why(advice), *remarks(advice)])


def even_keys(path: Path, count: int, cost: float | None = None) -> Path:
    """Draw from 1000 keys: in turn, round robin would send each to one worker."""
    drawn = np.random.default_rng(1).integers(1000, size=count).tolist()
    return write_trace(path, [(i * 1000, b"k%d" % key, cost) for i, key in enumerate(drawn)])


def with_a_hot_key(path: Path, count: int = 20_000) -> Path:
    """Give a key three of five tuples, and the others to 500 keys in turn."""
    return write_trace(path, [(i * 1000, b"hot" if i % 5 < 3 else b"k%d" % (i % 503), None) for i in range(count)])


def test_even_keys_need_no_splitting(tmp_path: Path) -> None:
    found = ask(even_keys(tmp_path / "t", 20_000), 4)
    assert found.choice.recommended.grouping == "kg"
    assert (found.choice.rule, found.choice.met) == ("compromise", None)
    assert (found.hot_keys.hot, len(found.hot_keys.keys)) == (0, 1)
    assert "Hot keys: none" in told(found)
    assert "as under pkg" not in told(found)
    assert [one.grouping for one in found.least] == ["kg"]


def test_a_key_of_three_fifths_is_split_and_named(tmp_path: Path) -> None:
    path = with_a_hot_key(tmp_path / "t")
    found = ask(path, 32)
    assert found.choice.recommended.grouping.split(":")[0] not in ("kg", "pkg")
    assert found.choice.recommended.keeps_up
    assert not found.kg.keeps_up
    top = found.hot_keys.keys[0]
    assert (top.key, top.share) == ("hot", 0.6)
    assert top.fair_shares == pytest.approx(19.2)
    assert top.share_high >= top.share
    assert found.kg.peak_to_mean >= 19.2
    assert "It needs at least 20 workers; with two, as under pkg, one gets at least 9.60 times the mean." in told(found)
    assert found.to_json()["bounds"] == pytest.approx(
        {"kg_floor": 0.6 - 1 / 32, "kg_largest_n": 1 / 0.6, "pkg_floor": 0.3 - 1 / 32, "pkg_largest_n": 2 / 0.6,
         "pkg_bounded_n": 1 / 3, "least_choices": 20}
    )  # fmt: skip
    # At 25.6 workers' worth of work the key alone is 15.36 times what one can do.
    least = {one.grouping: one for one in found.least}
    assert least["kg"].workers is None
    assert "15.4 times" in str(least["kg"].reason)
    assert "'hot' 60 %" in told(found)
    best = least[found.choice.recommended.grouping]
    assert best.workers is not None
    assert 26 <= best.workers <= 32


def test_aggregators_are_as_replay_shows_and_count(tmp_path: Path) -> None:
    path = with_a_hot_key(tmp_path / "t")
    options: dict[str, Any] = {
        "arrivals": "rate=6400", "service": "1ms", "aggregators": 2, "aggregator_service": "900us",
        "aggregate_every": "400ms",
    }  # fmt: skip
    found = ask(path, 8, question=AdviceRequest(groupings=("sg",)), **options)
    for row in found.rows:
        shown = run_to_directory(path, ReplayOptions(row.grouping, 8, **options)).row
        assert row.result_delay_mean_ms == shown["result_delay_ms_mean"]
        assert row.result_delay_p99_ms == shown["result_delay_ms_p99"]
        # The metric's time goes on until the last result.
        assert row.aggregator_load_max is not None
        assert row.aggregator_load_max >= shown["aggregator_utilization_max"]
    rows = {row.grouping: row for row in found.rows}
    # 8 workers, each with most of 504 keys in every window, are more partial results than can be merged.
    assert not rows["sg"].keeps_up
    assert (rows["sg"].worker_load_max or 0) < 1
    assert found.best is not None
    assert found.best.compared_ms == min(row.compared_ms for row in found.rows if row.keeps_up)
    assert "p99 of the results' delay" in told(found)
    assert "keep the busiest aggregator" in told(found)
    assert {"result_p99_ms", "aggregator_busy"} <= compared(found)[0].keys()
    assert as_json(found)["options"]["aggregate_every"] == "400ms"
    assert "Merging: not simulated" not in told(found)
    assert "Merging: not simulated" in told(ask(path, 8, arrivals="rate=6400", service="1ms"))
    with pytest.raises(UsageError, match="how often"):
        ask(path, 8, aggregators=2)
    # It would be ignored.
    with pytest.raises(UsageError, match="--aggregate-every changes nothing"):
        ask(path, 8, aggregate_every="100ms")


def test_a_combiner_is_as_replay_shows_and_says_when_it_misses_the_target(tmp_path: Path) -> None:
    path = with_a_hot_key(tmp_path / "t")
    found = ask(path, 8, question=AdviceRequest(Targets(max_p99_ms=20)), arrivals="rate=6400", service="1ms")
    assert found.combined is not None
    size, row = found.combined
    shown = run_to_directory(path, ReplayOptions("kg", 8, arrivals="rate=6400", service="1ms", combine=str(size))).row
    assert row.keeps_up
    assert (row.latency_p99_ms, row.replicas) == (shown["latency_p99_ms"], shown["replicas"])
    text = next(line for line in remarks(found) if line.startswith("Instead: kg with a combiner"))
    assert f"(--combine {size})" in text
    assert ("misses the target" in text) == (row.latency_p99_high_ms > 20)
    for limit in (row.latency_p99_high_ms - 0.01, row.latency_p99_high_ms):
        question = replace(found.question, targets=Targets(max_p99_ms=limit))
        text = next(line for line in remarks(replace(found, question=question)) if line.startswith("Instead"))
        assert ("misses the target" in text) == (limit < row.latency_p99_high_ms)


def test_the_least_workers_are_enough_and_one_less_is_not(tmp_path: Path) -> None:
    path = with_a_hot_key(tmp_path / "t")
    found = ask(path, 16, question=AdviceRequest(Targets(max_p99_ms=20)), arrivals="rate=8000", service="1ms")
    best = next(one for one in found.least if one.grouping == found.choice.recommended.grouping)
    assert best.workers is not None
    assert best.row is not None
    assert found.offered.sustainable == 8
    worst = {}
    for workers in (best.workers, best.workers - 1):
        options = ReplayOptions(best.grouping, workers, arrivals="rate=8000", service="1ms", window="20%")
        row = run_to_directory(path, options).row
        keeps_up = row["peak_to_mean"] * 8 / workers <= 1
        worst[workers] = row["latency_p99_ms"] if keeps_up else float("inf")
    assert worst[best.workers] <= best.row.latency_p99_high_ms <= 20
    # The p99 of all is at most that of the worst fifth, so this one is no sharp bound.
    assert worst[best.workers - 1] > worst[best.workers]


def test_what_is_recommended_is_what_replay_shows(tmp_path: Path) -> None:
    path = with_a_hot_key(tmp_path / "t")
    row = ask(path, 8).choice.recommended
    shown = run_to_directory(path, ReplayOptions(row.grouping, 8, arrivals="utilization=0.8")).row
    for name in ("latency_p99_ms", "latency_max_ms", "peak_to_mean", "replicas", "replication_factor"):
        assert getattr(row, name) == shown[name], name


def test_neither_threads_nor_asking_again_change_the_answer(tmp_path: Path) -> None:
    path = with_a_hot_key(tmp_path / "t", 2_500)
    for budget in (0.01, 1):
        answers = [
            json.dumps(as_json(ask(path, 16, question=AdviceRequest(budget=budget, jobs=jobs)))) for jobs in (1, 3, 1)
        ]
        assert len(set(answers)) == 1


def test_a_small_budget_is_a_sample_and_says_so(tmp_path: Path) -> None:
    # A tuple each 1 ms, and 1 of 5 workers' worth of work a second at 200 ms.
    path = with_a_hot_key(tmp_path / "t", 40_000)
    found = ask(path, 16, question=AdviceRequest(budget=0.02))
    assert not found.first_sample.whole
    assert found.sample.tuples >= found.first_sample.tuples
    assert len(found.rows) < len(found.roughly)
    assert {found.choice.recommended, found.kg} <= set(found.rows)
    text = told(found)
    assert "5 segments of" in text
    assert "% of the trace" in text
    # 12,800 tuples a second, as of the whole trace.
    assert found.offered.rate == "rate=12800"


@pytest.mark.parametrize(("service", "load", "enough"), [("10ms", 2.5, 10), ("4ms", 1.0, 4), ("1ms", 0.25, 1)])
def test_overload_is_told_with_the_workers_that_are_needed(
    tmp_path: Path, service: str, load: float, enough: int
) -> None:
    found = ask(even_keys(tmp_path / "t", 5000), 4, service=service)
    assert found.offered.load == pytest.approx(load, rel=1e-3)
    assert found.offered.sustainable == pytest.approx(enough, abs=1)
    assert not found.offered.assumed
    if load > 1:
        assert (found.choice.rule, found.best) == ("throughput", None)
        assert f"{found.offered.sustainable} are needed at least" in headline(found)
        assert not any("ms" in name for row in compared(found) for name in row)
        assert all(one.workers is None or one.workers >= enough for one in found.least)


@pytest.mark.parametrize(("limit", "met"), [(1.0, True), (3.0, True)])
def test_state_is_limited(tmp_path: Path, limit: float, met: bool) -> None:
    found = ask(
        with_a_hot_key(tmp_path / "t"), 4, question=AdviceRequest(Targets(None, limit)), arrivals="utilization=0.3"
    )
    assert found.choice.met is met
    assert found.choice.recommended.replication_factor <= limit
    for one in found.least:
        assert one.row is None or one.row.replication_factor <= limit


def test_what_cannot_be_met_is_said(tmp_path: Path) -> None:
    found = ask(with_a_hot_key(tmp_path / "t"), 8, question=AdviceRequest(Targets(max_p99_ms=0.5)))
    assert (found.choice.rule, found.choice.met) == ("nearest", False)
    assert headline(found).startswith("No grouping meets the target with 8 workers.")
    # No tuple takes less than a millisecond.
    assert {one.workers for one in found.least} == {None}
    assert "none up to 4,096" in told(found)


@pytest.mark.parametrize(
    "tuples",
    [
        [(5, b"a", None)],
        [(5, None, None)] * 3,
        [(5, b"k%d" % i, None) for i in range(40)],
        [(i, b"a", None) for i in range(40)],
        [(i, b"a", 0.0) for i in range(40)],
    ],
    ids=["one tuple", "null keys at one instant", "one instant", "one key", "free of charge"],
)
@pytest.mark.parametrize("workers", [1, 3])
def test_small_traces_have_an_answer(tmp_path: Path, tuples: Any, workers: int) -> None:
    found = ask(write_trace(tmp_path / "t", tuples), workers)
    text = told(found)
    assert "nan" not in text.lower().split()
    json.dumps(as_json(found), allow_nan=False)
    if workers == 1:
        assert found.choice.recommended.grouping == "kg"
        assert found.choice.runner_up is None
        assert "1 worker." in headline(found)


def test_costs_of_the_trace_are_known(tmp_path: Path) -> None:
    path = even_keys(tmp_path / "t", 2000, cost=2000.0)
    found = ask(path, 4)
    assert not found.offered.assumed
    assert found.offered.load == pytest.approx(0.5, rel=1e-2)
    names = {row.grouping.split(":")[0] for row in found.roughly}
    assert {"posg", "consistent_grouping"} <= names


def test_a_grouping_can_be_added_and_one_that_there_is_not_is_refused(tmp_path: Path) -> None:
    path = even_keys(tmp_path / "t", 2000)
    found = ask(path, 4, question=AdviceRequest(groupings=("greedy_d:d=3", "kg")))
    assert [row.grouping for row in found.rows].count("kg") == 1
    assert "greedy_d:d=3" in {row.grouping for row in found.rows}
    with pytest.raises(UsageError):
        ask(path, 4, question=AdviceRequest(groupings=("nobody",)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"join": ("50%",)}, "join"),
        ({"leave": ("50%",)}, "leave"),
        ({"crash": ("50%",)}, "crash"),
        ({"slowdown_at": ("50%=2",)}, "slowdown_at"),
        ({"arrivals": "saturate"}, "saturate"),
        ({"queue_capacity": 5, "when_full": "drop"}, "drop"),
        ({"arrivals": "sometimes"}, "arrivals"),
        ({"sources": 0}, "--sources"),
    ],
)
def test_options_without_an_answer_are_refused(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    path = even_keys(tmp_path / "t", 100)
    with pytest.raises(UsageError, match=message):
        ask(path, 4, **options)
    if "arrivals" not in options and "sources" not in options:
        file = tmp_path / "capacity.toml"
        listed = {name: list(value) if isinstance(value, tuple) else value for name, value in options.items()}
        file.write_text("".join(f"{name} = {json.dumps(value)}\n" for name, value in listed.items()))
        with pytest.raises(UsageError, match=message):
            ask(path, 4, capacity=str(file))


@pytest.mark.parametrize(
    "question",
    [
        AdviceRequest(budget=0),
        AdviceRequest(budget=float("nan")),
        AdviceRequest(Targets(0.0)),
        AdviceRequest(Targets(None, 0.9)),
    ],
)
def test_questions_that_make_no_sense_are_refused(tmp_path: Path, question: AdviceRequest) -> None:
    with pytest.raises(UsageError):
        ask(even_keys(tmp_path / "t", 100), 4, question=question)


def test_an_empty_trace_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="empty"):
        ask(write_trace(tmp_path / "t", []), 4)


def test_slow_workers_are_the_same_however_they_are_written(tmp_path: Path) -> None:
    path = even_keys(tmp_path / "t", 4000)
    listed, half = ask(path, 4, slowdown="1,1,2,2"), ask(path, 4, slowdown="2,2,1,1")
    assert listed.choice.recommended.keeps_up
    assert listed.offered.load == half.offered.load == pytest.approx(0.8)
    assert "posg" in {row.grouping.split(":")[0] for row in listed.roughly}


def test_progress_is_told(tmp_path: Path) -> None:
    steps: list[tuple[int | None, str]] = []
    tuples: list[int] = []

    class Seen(Silent):
        def start(self, total: int | None, text: str) -> None:
            steps.append((total, text))

        def advance(self, done: int) -> None:
            tuples.append(done)

    advise(even_keys(tmp_path / "t", 1000), ReplayOptions("kg", 4), AdviceRequest(), Seen())
    assert steps == [(11_000, "first pass"), (None, "workers")]
    assert tuples[:11] == [1000] * 11


def test_others_compile_meanwhile_what_it_replays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STREAMGROUP_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(compile_in_background, "_MANY", 0)
    started = []

    def start(trace: Trace, runs: Sequence[ReplayOptions]) -> "subprocess.Popen[str]":
        started.append([(run.grouping, run.combine) for run in runs])
        return subprocess.Popen([sys.executable, "-c", ""], text=True)

    monkeypatch.setattr(compile_in_background, "_start", start)
    found = ask(even_keys(tmp_path / "t", 300), 4, question=AdviceRequest(jobs=2))
    # Once for all passes; combiners come last. Groupings that differ in numbers alone have the same code.
    (runs,) = started
    assert {name.partition(":")[0] for name, _ in runs} == {row.grouping.partition(":")[0] for row in found.roughly}
    assert [name for name, combine in runs if combine is not None] == [runs[-1][0]] == ["kg"]
