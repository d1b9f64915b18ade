"""The search of the highest rate: a border within 1 %, in few trials, the same every time; and what it refuses."""

import dataclasses
import functools
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import streamgroup as sg
from streamgroup.base.errors import DataError, UsageError
from streamgroup.replay.replay_trace import replay
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.study import rate_search
from streamgroup.study import replay_run as study
from streamgroup.study.dry_run import dry_run
from streamgroup.study.explain.explain_loads import explain_run
from streamgroup.study.rate_search import MOST_TRIALS, RateSearch, search_rate
from streamgroup.study.read_run import recorded_options
from streamgroup.study.replay_run import run_to_directory
from streamgroup.traces.trace import Trace, open_trace
from tests.naive.rate_search import is_kept
from tests.study.small_hand_written_traces import write_trace

KEYS = [f"k{i * i % 23}" for i in range(400)]


@pytest.fixture(autouse=True)
def _interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (study, rate_search):
        monkeypatch.setattr(module, "replay", functools.partial(replay, interpreted=True))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_trace(tmp_path_factory.mktemp("trace") / "small.trace", [i * 1500 for i in range(400)], KEYS)


@pytest.fixture(scope="module")
def trace(place: Path) -> Trace:
    return open_trace(place)


def options(grouping: str = "kg", workers: int = 3, **more: Any) -> ReplayOptions:
    return ReplayOptions(**{"grouping": grouping, "workers": workers, "arrivals": "max", "service": "100ms", **more})


def check(found: RateSearch) -> None:
    assert 1 <= len(found.trials) <= MOST_TRIALS
    assert len({trial.rate_tps for trial in found.trials}) == len(found.trials)
    kept = [trial.rate_tps for trial in found.trials if trial.kept]
    over = [trial.rate_tps for trial in found.trials if not trial.kept]
    assert float(found.rate_tps) == max(kept)
    assert max(kept) < min(over) <= 1.01 * max(kept)


@pytest.mark.parametrize(
    ("workers", "service", "limit"), [(1, 30, None), (3, 100, None), (4, 400, None), (2, 100, 700), (3, 400, 5000)]
)
def test_a_border_as_the_twin_sees_it(trace: Trace, workers: int, service: int, limit: int | None) -> None:
    asked = options("sg", workers, sources=1, service=f"{service}ms", max_p99=None if limit is None else f"{limit}ms")
    found = search_rate(trace, asked)
    check(found)
    keys = [key.encode() for key in KEYS]
    # The p99 of a run is within 0.5 %: on the border of an exact one its verdict is anything.
    margins = (0,) if limit is None else (-limit * 5000, limit * 5000)
    for trial in found.trials:
        rate = Fraction(trial.arrivals.partition("=")[2])
        verdicts = {
            is_kept(keys, workers, service * 1_000_000, rate, None if limit is None else limit * 1_000_000 + margin)
            for margin in margins
        }
        assert trial.kept in verdicts


@pytest.mark.parametrize("arrivals", ["max", "poisson-max"])
@pytest.mark.parametrize("more", [{}, {"max_p99": "2s"}, {"queue_capacity": 5, "max_p99": "2s"}, {"warmup": "10%"}])
def test_the_same_border_every_time(trace: Trace, arrivals: str, more: dict[str, Any]) -> None:
    found = search_rate(trace, options(arrivals=arrivals, **more))
    check(found)
    assert search_rate(trace, options(arrivals=arrivals, **more)) == found


def test_a_rate_at_which_tuples_are_dropped_is_too_high(trace: Trace) -> None:
    found = search_rate(trace, options(queue_capacity=2, when_full="drop"))
    check(found)
    assert {trial.verdict for trial in found.trials} == {"kept", "drops"}


def test_the_run_is_the_one_at_the_rate_found(place: Path, tmp_path: Path) -> None:
    found = run_to_directory(place, options(max_p99="2s"), tmp_path / "max")
    record = json.loads((tmp_path / "max" / "run.json").read_text())
    arrivals = record["rate_search"]["arrivals"]
    again = run_to_directory(place, options(arrivals=arrivals), tmp_path / "rate")
    named = {"arrivals", "max_p99", "max_rate_tps"}
    assert {k: v for k, v in found.row.items() if k not in named} == {
        k: v for k, v in again.row.items() if k not in named
    }
    assert (found.row["arrivals"], again.row["max_rate_tps"]) == ("max", None)
    trials = pl.read_parquet(tmp_path / "max" / "trials.parquet")
    assert trials["trial"].to_list() == list(range(1, trials.height + 1))
    assert trials.filter(verdict="kept")["rate_tps"].max() == found.row["max_rate_tps"]
    assert [trial["rate_tps"] for trial in record["rate_search"]["trials"]] == trials["rate_tps"].to_list()
    assert not (tmp_path / "rate" / "trials.parquet").exists()
    # What is explained is that run, too.
    assert explain_run(tmp_path / "max").options.arrivals == arrivals
    kept = recorded_options(tmp_path / "max", record)
    assert (kept.arrivals, kept.max_p99) == (arrivals, None)


def test_a_short_trace_warns_that_its_rate_is_above_what_is_sustained(place: Path) -> None:
    assert any("so short" in text for text in run_to_directory(place, options(service="30ms")).warnings)


@pytest.mark.parametrize(
    ("more", "error", "words"),
    [
        ({"service": "0"}, UsageError, "mean cost over 0"),
        ({"arrivals": "max=5"}, UsageError, "takes no value"),
        ({"arrivals": "rate=5", "max_p99": "1s"}, UsageError, "--max-p99 is the limit of a search"),
        ({"arrivals": "saturate", "max_p99": "1s"}, UsageError, "--max-p99 is the limit of a search"),
        ({"max_p99": "0"}, UsageError, "--max-p99 0"),
        ({"max_p99": "soon"}, UsageError, "not a duration"),
        ({"speedup": "2"}, UsageError, "--speedup"),
        ({"spread_ties": True}, UsageError, "--spread-ties"),
        ({"max_p99": "99ms"}, DataError, "no rate is low enough"),
        ({"service": "2s"}, DataError, "no rate is low enough"),
        ({"service": "1ms"}, DataError, "too short"),
        ({"service": "1ms", "max_p99": "1h"}, DataError, "too short"),
    ],
)
def test_what_cannot_be_searched(trace: Trace, more: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        search_rate(trace, options(**more))


def test_one_run_is_no_search(trace: Trace, place: Path) -> None:
    with pytest.raises(UsageError, match="is a search"):
        replay(trace, options(), interpreted=True)
    with pytest.raises(UsageError, match="at one rate"):
        run_to_directory(place, options(leave=("50%",)), baseline=True)


def test_a_dry_run_says_what_would_be_searched(place: Path) -> None:
    found = dry_run(place, options(max_p99="20ms"))
    assert (found["rate_kept"], found["trials_at_most"]) == ("the p99 of latency is at most 20 ms", MOST_TRIALS)
    assert found["offered_load"] is found["arrival_rate_tps"] is None
    assert found["time_s"] > dry_run(place, dataclasses.replace(options(), arrivals="rate=5"))["time_s"]


def test_of_a_sweep_with_cells_that_fail(place: Path, tmp_path: Path) -> None:
    given: dict[str, Any] = {"grouping": "sg", "workers": [1, 2], "arrivals": "max,saturate", "service": "30ms"}
    whole = sg.sweep(place, **given, jobs=1, output=tmp_path / "sweep")
    rows = {(row["arrivals"], row["workers"]): row for row in whole.rows}
    assert {row["status"] for row in rows.values()} == {"ok"}
    assert rows["max", 1]["max_rate_tps"] < rows["max", 2]["max_rate_tps"]
    assert rows["saturate", 2]["max_rate_tps"] is None
    # Resumed, nothing runs again.
    assert (sg.sweep(place, **given, jobs=1, output=tmp_path / "sweep").reused, whole.reused) == (4, 0)
    with pytest.raises(UsageError, match="--max-p99 is the limit of a search"):
        sg.sweep(place, **{**given, "arrivals": "saturate"}, max_p99="1s", jobs=1, output=tmp_path / "none")
    # The limit is for those that search.
    both = sg.sweep(place, **given, max_p99="1s", jobs=1, output=tmp_path / "both").rows
    assert {(row["arrivals"], row["max_p99"], row["status"]) for row in both} == {
        ("max", "1s", "ok"),
        ("saturate", None, "ok"),
    }
    short = sg.sweep(place, **{**given, "service": ["1ms"]}, jobs=1, output=tmp_path / "short").rows
    assert {row["arrivals"]: row["status"] for row in short} == {"max": "failed", "saturate": "ok"}
    with pytest.raises(UsageError, match="mean cost over 0"):
        sg.sweep(place, **{**given, "arrivals": "max", "service": "0"}, jobs=1, output=tmp_path / "free")


def test_in_python(place: Path, tmp_path: Path) -> None:
    made = sg.replay(place, "sg", 2, arrivals="max", service="100ms", output=tmp_path / "run")
    for run in (made, sg.open_run(tmp_path / "run")):
        assert run.tables.trials is not None
        assert run.tables.trials.filter(verdict="kept")["rate_tps"].max() == run.metrics["max_rate_tps"]
    assert sg.replay(place, "sg", 2).tables.trials is None
