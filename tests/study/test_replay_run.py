"""One run as a directory: whole or not at all, the same bytes each time, and honest warnings."""

import dataclasses
import functools
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from streamgroup.base.errors import DataError, UsageError
from streamgroup.base.output_formats import render
from streamgroup.base.progress import Silent
from streamgroup.groupings import kg
from streamgroup.metrics.metric_names import METRICS
from streamgroup.replay.accounting import recorder
from streamgroup.replay.accounting.outcome import Outcome
from streamgroup.replay.accounting.replica_sets import TouchedPairs, touched
from streamgroup.replay.replay_trace import replay
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.study import replay_run as study
from streamgroup.study.replay_run import make_run, run_to_directory
from streamgroup.study.run_option_columns import OPTION_COLUMNS, readable
from streamgroup.study.run_warnings import warnings_of
from streamgroup.synth.generate_trace import synthesise
from streamgroup.traces.trace import open_trace
from tests.study.small_hand_written_traces import write_trace

TABLES = ["keys", "lag", "latency", "loads", "summary", "windows", "workers"]
KEYS = [f"k{int(1 / ((i * 0.6180339887) % 1 + 0.01))}" for i in range(400)]


@pytest.fixture(autouse=True)
def _interpreted(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop as plain Python: the same results, and nothing to compile for a few hundred tuples."""
    if "compiled" not in request.fixturenames:
        monkeypatch.setattr(study, "replay", functools.partial(replay, interpreted=True))


@pytest.fixture
def compiled() -> None:
    """Ask for the compiled loop."""


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_trace(tmp_path_factory.mktemp("trace") / "small.trace", [i * 1500 for i in range(400)], KEYS)


def options(grouping: str = "pkg", workers: int = 3, **more: Any) -> ReplayOptions:
    return ReplayOptions(grouping=grouping, workers=workers, **more)


def content(directory: Path) -> dict[str, bytes]:
    files = (path for path in sorted(directory.rglob("*")) if path.is_file())
    return {str(path.relative_to(directory)): path.read_bytes() for path in files}


def test_a_run_directory_holds_all_tables_and_the_log(trace: Path, tmp_path: Path, compiled: None) -> None:
    out = tmp_path / "runs" / "a"
    result = run_to_directory(trace, options(), out, log=True)
    assert sorted(content(out)) == sorted(
        ["assignments/part-00000.parquet", "run.json", *(f"{name}.parquet" for name in TABLES)]
    )
    for name in TABLES:
        frame = pl.read_parquet(out / f"{name}.parquet")
        assert frame.equals(pl.DataFrame(result.tables[name]))
        assert frame["schema_version"].unique().to_list() == [1]
    log = pl.read_parquet(out / "assignments")
    assert log["seq"].to_list() == list(range(400))
    loads = log["worker"].value_counts().sort("worker")["count"].to_list()
    assert loads == result.tables["workers"]["tuples"].to_pylist()
    assert result.output == out


def test_a_row_names_its_run_and_then_every_metric(trace: Path) -> None:
    row = run_to_directory(trace, options("greedy_d:d=3", seed=4)).row
    assert list(row) == [*OPTION_COLUMNS, *METRICS, "schema_version"]
    assert list(row)[:6] == ["trace", "grouping", "workers", "sources", "seed", "hash_seed"]
    assert (row["trace"], row["grouping"], row["workers"], row["seed"]) == ("small", "greedy_d:d=3", 3, 4)
    assert json.loads(render([row], "json")) == [row]


def test_the_record_of_a_run(trace: Path, tmp_path: Path) -> None:
    run_to_directory(trace, options(window="7"), tmp_path / "a")
    record = json.loads((tmp_path / "a" / "run.json").read_text())
    assert record["options"]["window"] == "7"
    assert set(record["options"]) == set(OPTION_COLUMNS) - {"trace"}
    assert record["trace"]["tuples"] == 400
    assert len(record["trace"]["fingerprint"]) == 64
    assert set(record["versions"]) == {"streamgroup", "python", "numpy", "numba", "pyarrow", "polars"}
    assert record["grouping"] == {"text": "pkg", "parameters": {"hash": "scaled", "d": 2}}


def test_two_runs_give_the_same_bytes(trace: Path, tmp_path: Path) -> None:
    """Everything but timings, host and time of day."""
    found = []
    for name in ("a", "b"):
        run_to_directory(trace, options("sg_random", seed=0), tmp_path / name, log=True)
        files = content(tmp_path / name)
        record = json.loads(files.pop("run.json"))
        for key in ("timings", "host", "finished_at"):
            del record[key]
        found.append((files, record))
    assert found[0] == found[1]
    other = run_to_directory(trace, options("sg_random", seed=1), tmp_path / "c", log=True)
    assert content(tmp_path / "c")["assignments/part-00000.parquet"] != found[0][0]["assignments/part-00000.parquet"]
    assert other.row["seed"] == 1


def test_an_output_that_exists_is_refused_before_the_replay(
    trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_to_directory(trace, options(), tmp_path / "a")
    before = content(tmp_path / "a")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("x")

    def never(*_: Any, **__: Any) -> None:
        raise AssertionError("replayed")

    with monkeypatch.context() as patch:
        patch.setattr(study, "replay", never)
        with pytest.raises(UsageError, match="exists already"):
            run_to_directory(trace, options("kg"), tmp_path / "a")
        with pytest.raises(UsageError, match="not ours"):
            run_to_directory(trace, options("kg"), tmp_path / "mine", overwrite=True)
    assert content(tmp_path / "a") == before
    run_to_directory(trace, options("kg"), tmp_path / "a", overwrite=True)
    assert pl.read_parquet(tmp_path / "a" / "summary.parquet")["grouping"].to_list() == ["kg"]


def test_a_run_that_fails_leaves_nothing(trace: Path, tmp_path: Path) -> None:
    for faulty in (options("nosuch"), options(window="x"), options(arrivals="sometimes")):
        with pytest.raises(UsageError):
            run_to_directory(trace, faulty, tmp_path / "a", log=True)
    assert list(tmp_path.iterdir()) == []


def test_an_empty_trace_says_so(tmp_path: Path) -> None:
    empty = write_trace(tmp_path / "empty", [], [])
    with pytest.raises(DataError, match="empty") as caught:
        run_to_directory(empty, options(), tmp_path / "a")
    assert caught.value.exit_code == 4
    assert not (tmp_path / "a").exists()


def test_a_log_needs_a_directory(trace: Path) -> None:
    with pytest.raises(UsageError, match="--log"):
        run_to_directory(trace, options(), None, log=True)


def test_no_warning_where_all_is_well(trace: Path, tmp_path: Path) -> None:
    many = write_trace(tmp_path / "many", [i * 1500 for i in range(400)], [f"k{i % 40}" for i in range(400)])
    assert run_to_directory(many, options(workers=4, arrivals="utilization=0.8")).warnings == []


@pytest.mark.parametrize(("arrivals", "said"), [("rate=1", "0.0333 %"), ("utilization=1.2", "120 %")])
def test_a_load_that_makes_latencies_meaningless_is_named(trace: Path, arrivals: str, said: str) -> None:
    found = run_to_directory(trace, options(arrivals=arrivals)).warnings
    assert any(said in line and "--arrivals utilization=0.8" in line for line in found)


def test_few_keys_for_the_workers_are_named(trace: Path) -> None:
    found = run_to_directory(trace, options("kg", workers=30, arrivals="utilization=0.8"))
    assert any("distinct keys for 30 workers" in line for line in found.warnings)
    assert found.row["idle_workers"] > 0


def test_whole_seconds_with_ties_are_named(tmp_path: Path) -> None:
    times = [i // 100 * 1_000_000 for i in range(400)]
    coarse = write_trace(tmp_path / "coarse", times, KEYS)
    assert any("--spread-ties" in line for line in run_to_directory(coarse, options()).warnings)
    spread = run_to_directory(coarse, options(spread_ties=True)).warnings
    assert not any("--spread-ties" in line for line in spread)


def test_one_tuple_and_one_worker(tmp_path: Path) -> None:
    one = write_trace(tmp_path / "one", [1_700_000_000_000_001], ["k"])
    for workers in (1, 5):
        row = run_to_directory(one, options("kg", workers=workers)).row
        assert row["latency_max_ms"] == 1.0
        assert row["offered_load"] is None
        assert row["idle_workers"] == workers - 1


def test_a_grouping_file_whose_name_is_not_utf8(trace: Path, tmp_path: Path) -> None:
    odd = tmp_path / "caf\udce9.py"
    odd.write_bytes(Path(kg.__file__).read_bytes())
    row = run_to_directory(trace, options(str(odd)), tmp_path / "a").row
    assert row["grouping"].endswith("caf\\xe9.py")
    assert pl.read_parquet(tmp_path / "a" / "summary.parquet")["grouping"].to_list() == [row["grouping"]]
    assert json.loads((tmp_path / "a" / "run.json").read_text())["options"]["grouping"] == row["grouping"]


class Seen(Silent):
    def __init__(self) -> None:
        self.total: int | None = None
        self.done: list[int] = []

    def start(self, total: int | None, text: str) -> None:
        self.total = total

    def advance(self, done: int) -> None:
        self.done.append(done)


def test_progress_is_told_every_tuple(trace: Path) -> None:
    seen = Seen()
    run_to_directory(trace, options(), progress=seen)
    assert (seen.total, sum(seen.done)) == (400, 400)


def test_pairs_are_listed_only_where_somebody_compares(trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listed: list[int] = []

    def watched(pairs: Any, keys: int) -> TouchedPairs:
        listed.append(keys)
        return touched(pairs, keys)

    monkeypatch.setattr(recorder, "touched", watched)
    opened, changed = open_trace(trace), options("kg", leave=("50%",))
    assert make_run(opened, changed).touched is None
    assert listed == []
    compared = make_run(opened, changed, baseline=options("kg"))
    assert (compared.touched, len(listed)) == (None, 2)
    assert make_run(opened, options("kg"), keep_pairs=True).touched is not None
    assert len(listed) == 3


def test_options_of_several_texts_are_one_text_and_none_are_null(trace: Path, tmp_path: Path) -> None:
    run_to_directory(trace, options(), tmp_path / "a")
    row = pl.read_parquet(tmp_path / "a" / "summary.parquet")
    assert row["crash"].to_list() == row["slowdown_at"].to_list() == row["queue_capacity"].to_list() == [None]
    assert (row.schema["crash"], row.schema["queue_capacity"], row.schema["redeliver"]) == (
        pl.String,
        pl.Int64,
        pl.Boolean,
    )
    assert readable(("5s", "50%:random")) == "5s 50%:random"
    assert readable(()) is None


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[tuple[ReplayOptions, dict[str, Any]]]:
    """A replay in which whatever joins, leaves or crashes costs 7 more replicas; what it was asked for."""
    asked: list[tuple[ReplayOptions, dict[str, Any]]] = []

    def fake(trace: Any, options: ReplayOptions, **more: Any) -> Outcome:
        asked.append((options, more))
        plain = dataclasses.replace(options, join=(), leave=(), crash=(), redeliver=False, capacity=None)
        outcome = replay(trace, plain, interpreted=True, **more)
        held = outcome.worker.touched
        if held is None or not (options.join or options.leave or options.crash):
            return outcome
        # Seven keys are on one worker more, too.
        more_held = np.hstack([held.table(0, held.keys), np.arange(held.keys)[:, np.newaxis] < 7])
        bits = np.packbits(more_held, bitorder="little")
        touched = held._replace(bits=bits, workers=held.workers + 1)
        return dataclasses.replace(outcome, worker=dataclasses.replace(outcome.worker, touched=touched))

    monkeypatch.setattr(study, "replay", fake)
    return asked


def test_a_baseline_is_the_same_run_with_workers_that_stay(
    trace: Path, tmp_path: Path, told: list[tuple[ReplayOptions, dict[str, Any]]]
) -> None:
    changed = options("kg", seed=3, crash=("50%", "60%:0"), join=("10",), redeliver=True)
    seen = Seen()
    result = run_to_directory(trace, changed, tmp_path / "a", log=True, baseline=True, progress=seen)
    assert result.row["remapped_replicas"] == 7
    assert [asked for asked, _ in told] == [changed, options("kg", seed=3)]
    assert told[1][1] == {"chunk_cache": None, "keep_pairs": True}
    assert sum(seen.done) == 400
    assert json.loads((tmp_path / "a" / "run.json").read_text())["baseline"] is True
    assert pl.read_parquet(tmp_path / "a" / "summary.parquet")["crash"].to_list() == ["50% 60%:0"]
    assert run_to_directory(trace, changed, baseline=True).row == result.row
    alone = run_to_directory(trace, changed, tmp_path / "b")
    assert alone.row["remapped_replicas"] is None
    assert json.loads((tmp_path / "b" / "run.json").read_text())["baseline"] is False


def test_what_a_capacity_file_says_is_in_the_row_and_not_in_the_baseline(
    trace: Path, tmp_path: Path, told: list[tuple[ReplayOptions, dict[str, Any]]]
) -> None:
    file = tmp_path / "cluster.toml"
    file.write_text('slowdown = [1, 1, 2]\ncrash = "50%"\nredeliver = true\n')
    row = run_to_directory(trace, options("kg", capacity=str(file)), baseline=True).row
    assert row["remapped_replicas"] == 7
    assert (row["capacity"], row["slowdown"], row["crash"], row["redeliver"]) == (str(file), "1,1,2", "50%", True)
    expected = options("kg", capacity=str(file), slowdown="1,1,2", crash=("50%",), redeliver=True)
    assert vars(told[0][0]) == vars(expected)
    assert vars(told[1][0]) == vars(options("kg", slowdown="1,1,2"))


def test_a_baseline_of_a_run_without_changes_is_refused(trace: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--baseline"):
        run_to_directory(trace, options(), tmp_path / "a", baseline=True)
    assert list(tmp_path.iterdir()) == []


def warned(trace: Path, given: ReplayOptions, **found: Any) -> list[str]:
    """What is said of a run in which this was found."""
    opened = open_trace(trace)
    outcome = replay(opened, dataclasses.replace(given, arrivals="utilization=0.8", max_pending=1000), interpreted=True)
    return warnings_of(opened, given, dataclasses.replace(outcome, keys=1000, **found))


def test_nothing_is_lost_silently(trace: Path) -> None:
    steady = options(arrivals="utilization=0.8")
    assert warned(trace, steady) == []
    (dropped,) = warned(trace, steady, dropped=17)
    assert dropped.startswith("17 of 400 tuples were dropped")
    (lost,) = warned(trace, steady, lost=5)
    assert lost.startswith("5 of 400 tuples were lost")
    assert "--redeliver" in lost
    assert any("no tuple finished" in line for line in warned(trace, steady, dropped=399, lost=1))


def test_percentiles_of_few_tuples_are_marked(trace: Path) -> None:
    steady = options(arrivals="utilization=0.8")
    (few,) = warned(trace, steady, measured=99)
    assert few.startswith("p99 of 99 tuples")
    assert warned(trace, steady, measured=100) == []
    assert any("p99 of 3 tuples" in line for line in warned(trace, steady, dropped=397))


def test_a_closed_loop_says_what_latency_counts_from_and_whether_it_can_fill_the_workers(trace: Path) -> None:
    (line,) = warned(trace, options(workers=4, arrivals="saturate"), offered_load=None)
    assert "latency counts from emission" in line
    enough = options(workers=4, sources=2, arrivals="saturate", max_pending=2)
    assert len(warned(trace, enough, offered_load=None)) == 1
    short = options(workers=5, sources=2, arrivals="saturate", max_pending=2)
    assert any("at most 4 of 5 workers" in line for line in warned(trace, short, offered_load=None))


def test_the_record_names_the_code_and_how_a_trace_was_generated(
    trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = tmp_path / "zipf.trace"
    synthesise("zipf", {"tuples": 300, "keys": 20, "exponent": 1.5, "seed": 7}, made)
    record = run_to_directory(made, options()).record
    generator = record["trace"]["generator"]
    assert (generator["name"], generator["seed"]) == ("zipf", 7)
    assert (generator["parameters"]["exponent"], generator["parameters"]["tuples"]) == (1.5, 300)
    other = run_to_directory(trace, options("kg")).record
    assert other["trace"]["generator"] is None
    assert all(re.fullmatch("[0-9a-f]{16}", digest) for digest in (*record["code"].values(), *other["code"].values()))
    assert other["code"]["program"] == record["code"]["program"]
    assert other["code"]["grouping"] != record["code"]["grouping"]
    mine = tmp_path / "mine.py"
    mine.write_text((Path(kg.__file__)).read_text())
    outside = run_to_directory(trace, options(str(mine))).record
    assert outside["code"]["grouping"] == outside["grouping"]["file_digest"]
    mine.write_text(mine.read_text() + "# edited\n")
    assert run_to_directory(trace, options(str(mine))).record["code"]["grouping"] != outside["code"]["grouping"]
