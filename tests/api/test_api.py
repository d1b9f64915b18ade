"""The functions of `import streamgroup`: options, results, errors; what they give is what the commands print."""

import dataclasses
import inspect
import json
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import streamgroup as sg
from streamgroup.api import make_options, option_types
from streamgroup.base.progress import Silent
from streamgroup.cli.app import app
from streamgroup.cli.commands import advise, explain, ingest, replay, sweep
from streamgroup.metrics.metric_names import METRICS
from streamgroup.replay.scenario.options import ReplayOptions

pytestmark = pytest.mark.many_groupings

# Flags of commands that are arguments of the functions, or that say how a command prints.
ARGUMENTS = {
    "each", "trace", "inputs", "grouping", "workers", "output", "log", "overwrite", "baseline", "jobs",
    "max_p99", "max_replication", "budget", "top_workers", "top_keys", "dry_run", "form", "json", "fail",
}  # fmt: skip


@pytest.fixture(scope="session")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("traces") / "zipf.trace"
    sg.synth("zipf", path, tuples=5000, keys=200, rate=5000)
    return path


def of_command(*args: object) -> Any:
    done = CliRunner().invoke(app, [*map(str, args), "--json"])
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout)


def test_import_is_quick_and_loads_no_library() -> None:
    code = (
        "import sys; before = set(sys.modules); import time; begun = time.process_time(); import streamgroup as sg;"
        "print(time.process_time() - begun);"
        "print(*sorted({name.split('.')[0] for name in set(sys.modules) - before} - sys.stdlib_module_names))"
    )
    runs = []
    for _ in range(3):
        seconds, names = subprocess.check_output([sys.executable, "-c", code], text=True).splitlines()
        assert names == "streamgroup"
        runs.append(float(seconds))
    assert min(runs) < 0.1


def test_functions_stay_when_packages_of_their_names_are_imported() -> None:
    code = (
        "import streamgroup as sg; from streamgroup.replay.replay_trace import replay;"
        "from streamgroup.synth.generate_trace import *;"
        "from streamgroup.ingest.options import make_options; from streamgroup.ingest import from_dataframe;"
        "print(sg.replay.__module__, sg.synth.__module__, sg.ingest.__module__)"
    )
    printed = subprocess.check_output([sys.executable, "-c", code], text=True)
    assert printed.split() == ["streamgroup.api.runs", "streamgroup.api.traces", "streamgroup.api.traces"]


def test_everything_public_is_documented_and_typed() -> None:
    assert (Path(sg.__file__).parent / "py.typed").is_file()
    for name in set(sg.__all__) - {"__version__"}:
        thing = getattr(sg, name)
        assert inspect.getdoc(thing), name
        if inspect.isfunction(thing):
            untyped = [one for one in inspect.signature(thing).parameters.values() if one.annotation is one.empty]
            assert not untyped, name


@pytest.mark.parametrize(
    ("flags", "options"),
    [
        (replay.Options, option_types.ReplayKeywords),
        (sweep.Options, option_types.SweepKeywords),
        (advise.Options, option_types.AdviseKeywords),
        (ingest.Options, option_types.IngestKeywords),
        (explain.Options, option_types.ExplainKeywords),
    ],
)
def test_options_are_the_flags(flags: Any, options: Any) -> None:
    named = {field.name for field in dataclasses.fields(flags)} - ARGUMENTS
    assert named == set(options.__annotations__) - ARGUMENTS


def test_options_of_a_replay_are_all_that_there_are() -> None:
    assert {*get_type_hints(option_types.ReplayKeywords), "grouping", "workers"} == {
        field.name for field in dataclasses.fields(ReplayOptions)
    }


def test_a_run_is_what_the_command_prints_and_writes(trace: Path, tmp_path: Path) -> None:
    run = sg.replay(trace, "pkg", workers=7, sources=3, arrivals="utilization=0.8", output=tmp_path / "run")
    (row,) = of_command("replay", trace, "-g", "pkg", "-n", 7, "--sources", 3, "--arrivals", "utilization=0.8")
    assert run.row == row
    assert list(run.metrics) == list(METRICS)
    assert run.metrics == {name: row[name] for name in METRICS}
    assert run.options["sources"] == 3
    assert (run.grouping, run.output) == ("pkg", tmp_path / "run")
    assert run.tables.workers["tuples"].sum() == 5000
    again = sg.open_run(tmp_path / "run")
    assert (again.metrics, again.options) == (run.metrics, run.options)
    assert again.record["trace"] == run.record["trace"]
    for name in ("summary", "windows", "workers", "loads", "latency", "keys"):
        frame = getattr(run.tables, name)
        assert isinstance(frame, pl.DataFrame)
        assert frame.equals(pl.read_parquet(tmp_path / "run" / f"{name}.parquet"))
        assert getattr(again.tables, name).equals(frame)


def test_a_run_without_output_writes_nothing(trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert sg.replay(str(trace), "kg", 4).output is None
    assert sg.sweep(trace, "kg", 4).output is None
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"service": timedelta(milliseconds=1.5)}, {"service": "1500us"}),
        ({"service": "1ms", "network_delay": timedelta(0)}, {"service": "1ms", "network_delay": "0us"}),
        ({"slowdown": [1, 2.5]}, {"slowdown": "1,2.5"}),
        ({"speedup": 0.1, "window": 1000}, {"speedup": "0.1", "window": "1000"}),
        ({"warmup": timedelta(seconds=2)}, {"warmup": "2000000us"}),
        ({"crash": "50%:3", "join": ["10s", 500]}, {"crash": ("50%:3",), "join": ("10s", "500")}),
        ({"capacity": Path("a") / "b.toml"}, {"capacity": "a/b.toml"}),
        ({"seed": np.int64(3)}, {"seed": 3, "hash_seed": 3}),
        ({"hash_seed": None, "service": None}, {}),
    ],
)
def test_python_values_become_texts(given: dict[str, Any], wanted: dict[str, Any]) -> None:
    assert make_options.made_options("kg", 4, given) == ReplayOptions("kg", 4, **wanted)


@pytest.mark.parametrize(
    ("call", "message", "hint"),
    [
        (lambda trace: sg.replay(trace, "pkgg", 4), "there is no grouping 'pkgg'", "did you mean 'pkg'?"),
        (lambda trace: sg.replay(trace, "pkg", 4, slowdwon="half:2"), "has no option 'slowdwon'", "'slowdown'"),
        (lambda trace: sg.replay(trace, "pkg", "few"), "workers: 'few' is not a whole number", None),
        (lambda trace: sg.replay(trace, "pkg", 4, redeliver="perhaps"), "redeliver: 'perhaps' is not True or", None),
        (lambda trace: sg.replay(trace, "pkg", 4, arrivals=[1, None]), "arrivals", None),
        (lambda trace: sg.sweep(trace, "pkg", 4, sources_=3), "sweep() has no option 'sources_'", "'sources'"),
        (lambda trace: sg.sweep(trace, "pkg"), "a sweep needs -n", None),
        (lambda trace: sg.sweep(trace, "pkg", 4, master="local[1]", jobs=2), "--jobs is for threads", None),
        (lambda trace: sg.sweep(trace, "pkg", 4, spark_conf={"spark.a": "b"}), "there is no --master", None),
        (lambda trace: sg.ingest("csv", "a.csv", "a.trace", sep=","), "ingest() has no option 'sep'", None),
        (lambda trace: sg.ingest("csv", "a.csv", "a.trace", engine="local", master="local"), "--engine is local", None),
        (lambda trace: sg.synth("zipf", "a.trace", engine="local", remote="sc://x"), "--engine is local", None),
        (lambda trace: sg.synth("zipf", "a.trace", tuple=3), "zipf has no parameter 'tuple'", "'tuples'"),
        (sg.open_run, "is no run", "replay -o"),
        (lambda trace: sg.summarize(trace / "nosuch"), "does not exist", None),
        (lambda trace: sg.describe(trace / "nosuch"), "does not exist", None),
    ],
)
def test_errors_say_what_to_do(
    call: Callable[[Path], Any], message: str, hint: str | None, trace: Path, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    with pytest.raises(sg.UsageError) as error:
        call(trace)
    assert message in error.value.message
    assert hint is None or hint in str(error.value.hint)
    assert isinstance(error.value, sg.StreamgroupError)
    assert not list(tmp_path.iterdir())


class Seen(Silent):
    def __init__(self) -> None:
        self.total: int | None = None
        self.done = 0
        self.notes: list[str] = []

    def start(self, total: int | None, text: str) -> None:
        self.total = total

    def advance(self, done: int) -> None:
        self.done += done

    def note(self, text: str) -> None:
        self.notes.append(text)


def test_progress_counts_tuples(trace: Path) -> None:
    seen = Seen()
    sg.replay(trace, "kg", 4, progress=seen)
    assert (seen.total, seen.done) == (5000, 5000)
    seen = Seen()
    sg.sweep(trace, ["kg", "sg"], 4, seeds=2, progress=seen)
    assert (seen.total, seen.done) == (15000, 15000)
    assert len(seen.notes) == 1
    assert "nothing is drawn for sg" in seen.notes[0]


def test_a_sweep_is_what_the_command_makes(trace: Path, tmp_path: Path) -> None:
    options = {"arrivals": ["trace", "utilization=0.8"], "sources": [1, 2]}
    made = sg.sweep([trace], ["kg", "pkg"], workers=np.array([4, 8]), output=tmp_path / "a", **options)
    command = ("-g", "kg", "-g", "pkg", "-n", "4,8", "--sources", "1,2", "--arrivals", "trace,utilization=0.8")
    rows = of_command("sweep", trace, *command, "-o", tmp_path / "b")
    assert made.rows == rows
    assert (made.ran, made.reused, made.failed) == (16, 0, 0)
    assert made.summary.equals(pl.read_parquet(tmp_path / "a" / "summary.parquet"))
    again = sg.sweep(trace, ["kg", "pkg"], "4,8", output=tmp_path / "a", **options)
    assert (again.ran, again.reused, again.rows) == (0, 16, rows)
    by_name = sg.summarize(tmp_path / "a", by="grouping,workers", metrics="imbalance")
    assert by_name.equals(
        sg.summarize(sg.load_runs([tmp_path / "b"]), by=["grouping", "workers"], metrics=["imbalance"])
    )
    assert by_name["runs"].to_list() == [4, 4, 4, 4]
    assert sg.check_gate(by_name, "imbalance>1") == []
    assert len(sg.check_gate(by_name, "imbalance>=0")) == 4
    compared = sg.compare(tmp_path / "a", [tmp_path / "b"], metrics="imbalance,replicas")
    assert compared.table.height == 32
    assert compared.table["change"].unique().to_list() == [0.0]
    assert (compared.only_old, compared.only_new, compared.broken("replicas>+0")) == ([], [], [])


def test_a_sweep_of_a_file_takes_options_over_it(trace: Path, tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(
        f'trace = "{trace}"\ngroupings = ["kg"]\nworkers = [4, 8]\nseeds = 2\nsources = 1\n'
    )
    made = sg.sweep(tmp_path / "s.toml", workers=3, seed=[7])
    assert [(row["workers"], row["seed"], row["sources"]) for row in made.rows] == [(3, 7, 1)]


def test_a_cell_that_fails_is_a_row(trace: Path) -> None:
    made = sg.sweep(trace, ["kg", "kafka"], workers=4, key_type="long")
    assert made.failed == 1
    assert made.summary.filter(pl.col("status") == "failed")["error"][0]


def test_ingest_takes_lists_paths_and_times(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("at,a,b\n1,x,y\n2,x,z\n3,NA,z\n4,x,y\n")
    made = sg.ingest(
        "csv", tmp_path / "in.csv", tmp_path / "out.trace", time="at", key=["a", "b"], null_values=["NA", "-"],
        until=datetime(1970, 1, 1, 0, 0, 4, tzinfo=UTC), max_rejects=0, engine="local",
    )  # fmt: skip
    assert (made.manifest.tuples, made.manifest.rows_read) == (3, 5)
    assert sg.describe(made.trace).keys == 3
    assert sg.describe(made.trace, top_keys=1).top_keys[0].count == 1


def test_an_unknown_option_is_an_error_of_the_function_that_was_called(trace: Path) -> None:
    with pytest.raises(sg.UsageError, match=r"^advise\(\) has no option 'servise'"):
        sg.advise(trace, 4, servise="1ms")  # type: ignore[call-arg]
    with pytest.raises(sg.UsageError, match=r"^explain\(\) has no option 'crash'"):
        sg.explain(trace, "kg", 4, crash="50%")  # type: ignore[call-arg]


def test_advice_is_what_the_command_prints(trace: Path) -> None:
    advice = sg.advise(trace, 4, budget=0.01, max_p99=50, service="1ms")
    flags = ("-n", 4, "--budget", 0.01, "--max-p99", 50, "--service", "1ms")
    assert of_command("advise", trace, *flags) == advice.to_json()
    assert advice.recommended == advice.to_json()["recommended"]["grouping"]
    done = CliRunner().invoke(app, ["advise", str(trace), *map(str, flags)])
    assert done.stdout == str(advice)
    assert repr(advice).startswith("<Advice: ")


def test_nothing_is_printed(trace: Path, capfd: pytest.CaptureFixture[str]) -> None:
    sg.replay(trace, "pkg", 4)
    sg.sweep(trace, "pkg", 4)
    assert capfd.readouterr() == ("", "")


def test_an_explanation_is_what_the_command_prints(trace: Path, tmp_path: Path) -> None:
    found = sg.explain(trace, "flink_keyby", 6, window=500, top_workers=2)
    flags = ("explain", trace, "-g", "flink_keyby", "-n", 6, "--window", 500, "--top-workers", 2)
    assert of_command(*flags) == found.to_json()
    assert CliRunner().invoke(app, [*map(str, flags)]).stdout == str(found)
    assert repr(found) == f"<Explanation: {found.verdict} under flink_keyby on 6 workers>"
    sg.replay(trace, "kg", 5, output=tmp_path / "run")
    assert of_command("explain", tmp_path / "run") == sg.explain(tmp_path / "run").to_json()
    with pytest.raises(sg.UsageError, match="a run has its own"):
        sg.explain(tmp_path / "run", "kg")
    with pytest.raises(sg.UsageError, match="needs a grouping"):
        sg.explain(trace, workers=4)
    with pytest.raises(sg.UsageError, match="has no option 'windw'"):
        sg.explain(trace, "kg", 4, windw=3)  # type: ignore[call-arg]
