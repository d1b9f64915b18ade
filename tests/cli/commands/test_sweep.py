"""`sweep` from a shell: what it prints and leaves behind, resumed, killed, interrupted, in threads and on a cluster."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

pytestmark = pytest.mark.many_groupings

Invoke = Callable[..., Any]
GRID = ("-g", "kg", "-g", "greedy_d:d=2..4", "-n", "4,8", "--arrivals", "utilization=0.8")


def tables(sweep: Path) -> dict[str, bytes]:
    """All that must be the same however it was run: everything but the records, which have times."""
    files = (path for path in sorted(sweep.rglob("*")) if path.is_file() and path.name != "run.json")
    return {str(path.relative_to(sweep)): path.read_bytes() for path in files}


def test_a_sweep_and_the_same_once_more(trace: Path, tmp_path: Path, invoke: Invoke) -> None:
    done = invoke("sweep", trace, *GRID, "-o", tmp_path / "out", "--json")
    assert done.exit_code == 0, done.stderr
    rows = json.loads(done.stdout)
    assert [(row["grouping"], row["workers"]) for row in rows] == [
        (grouping, workers) for grouping in ("kg", "greedy_d", "greedy_d:d=3", "greedy_d:d=4") for workers in (4, 8)
    ]
    assert {row["status"] for row in rows} == {"ok"}
    assert pl.read_parquet(tmp_path / "out" / "summary.parquet").select("cell", "imbalance").rows() == [
        (row["cell"], row["imbalance"]) for row in rows
    ]
    before = tables(tmp_path / "out")
    again = invoke("sweep", trace, *GRID, "-g", "sg", "-o", tmp_path / "out", "--json")
    assert (again.exit_code, json.loads(again.stdout)[:8]) == (0, rows)
    assert "8 reused, 2 to run" in again.stderr
    assert {
        name: content for name, content in tables(tmp_path / "out").items() if name in before and "cells" in name
    } == {name: content for name, content in before.items() if "cells" in name}


def test_a_cell_is_the_run_that_replay_writes(trace: Path, tmp_path: Path, invoke: Invoke) -> None:
    for jobs in (1, 2):
        assert invoke("sweep", trace, *GRID, "-o", tmp_path / f"{jobs}", "--jobs", jobs).exit_code == 0
    assert tables(tmp_path / "1") == tables(tmp_path / "2")
    alone = ("replay", trace, "-g", "greedy_d:d=3", "-n", 8, "--arrivals", "utilization=0.8", "-o", tmp_path / "run")
    assert invoke(*alone).exit_code == 0
    rows = pl.read_parquet(tmp_path / "1" / "summary.parquet")
    (cell,) = rows.filter(pl.col("grouping") == "greedy_d:d=3", pl.col("workers") == 8)["cell"]
    assert tables(tmp_path / "1" / "cells" / cell) == tables(tmp_path / "run")


def test_a_cell_that_fails_is_a_row(trace: Path, tmp_path: Path, invoke: Invoke) -> None:
    drop = ("--queue-capacity", "10", "--when-full", "drop")
    done = invoke("sweep", trace, "-g", "posg", "-g", "kg", "-n", "4", *drop, "-o", tmp_path / "out", "--json")
    assert done.exit_code == 1
    assert "1 of 2 cells failed" in done.stderr
    failed, good = json.loads(done.stdout)
    assert (failed["status"], failed["grouping"], failed["imbalance"]) == ("failed", "posg", None)
    assert "--when-full" in failed["error"]
    assert (good["status"], good["error"]) == ("ok", None)
    shown = invoke("summarize", tmp_path / "out", "--json")
    assert [(row["grouping"], row["status"]) for row in json.loads(shown.stdout)] == [("kg", "ok"), ("posg", "failed")]
    page = invoke("report", tmp_path / "out", "-o", tmp_path / "page.html")
    assert page.exit_code == 0, page.stderr
    assert "posg on 4 workers" in (tmp_path / "page.html").read_text()
    listed = invoke("sweep", trace, "-g", "posg", "-g", "kg", "-n", "4", *drop, "-o", tmp_path / "out", "--dry-run")
    assert (listed.exit_code, "fails" in listed.stdout, "reused" in listed.stdout) == (1, True, True)
    # What is left to run can only fail, and is still a cell among others.
    again = invoke("sweep", trace, "-g", "posg", "-g", "kg", "-n", "4", *drop, "-o", tmp_path / "out", "--json")
    assert (again.exit_code, again.stdout) == (1, done.stdout)


def test_rules_of_engines_are_cells_like_any_other(trace: Path, tmp_path: Path, invoke: Invoke) -> None:
    grid = ("-g", "storm_pkg:version=1,2", "-g", "kafka:partitions=11,22", "-g", "flink_sql", "-n", "4,8")
    for jobs in (1, 2):
        done = invoke(
            "sweep", trace, *grid, "-o", tmp_path / f"{jobs}", "--jobs", jobs, "--key-type", "string", "--json"
        )
        assert done.exit_code == 0, done.stderr
        assert len({(row["grouping"], row["workers"]) for row in json.loads(done.stdout)}) == 10
    assert tables(tmp_path / "1") == tables(tmp_path / "2")
    typed = invoke(
        "sweep", trace, "-g", "kafka", "-g", "kg", "-n", "4", "--key-type", "long", "-o", tmp_path / "t", "--json"
    )
    failed, good = json.loads(typed.stdout)
    assert (typed.exit_code, failed["status"], good["status"]) == (1, "failed", "ok")
    assert "is no long" in failed["error"]
    assert good["key_type"] == "long"


def test_a_sweep_whose_cells_all_failed_is_told_as_such(trace: Path, tmp_path: Path, invoke: Invoke) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text(
        "from streamgroup.groupings.kg import Params\n\n\ndef start(params, context):\n    raise OSError('no luck')\n"
    )
    out = tmp_path / "out"
    for _ in range(2):
        done = invoke("sweep", trace, "-g", mine, "-n", "2,3", "-o", out)
        assert (done.exit_code, done.stdout.count("no luck")) == (1, 2)
    shown = invoke("summarize", out)
    assert (shown.exit_code, shown.stdout.count("failed  "), shown.stdout.count("no luck")) == (0, 2, 2)
    assert invoke("summarize", out, "--fail-on", "imbalance>0.1").exit_code == 5
    drawn = invoke("plot", "imbalance", out, "-o", tmp_path / "picture")
    assert (drawn.exit_code, "nothing to show" in drawn.stderr) == (2, True)
    # Beside a run, and alone.
    assert invoke("replay", trace, "-g", "kg", "-n", 2, "-o", tmp_path / "run").exit_code == 0
    for places, title in (((out, tmp_path / "run"), "kg on zipf"), ((out,), "No run: every cell failed")):
        page = invoke("report", *places, "-o", tmp_path / "page.html", "--overwrite")
        assert page.exit_code == 0, page.stderr
        text = (tmp_path / "page.html").read_text()
        assert (f"<h1>{title}</h1>" in text, "<h3>2 failed</h3>" in text, text.count("no luck (line 5)</li>")) == (
            True,
            True,
            2,
        )


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (("-g", "nosuch", "-n", "4"), "nosuch"),
        (("-g", "kg", "-n", "4..1"), "-n"),
        (("-g", "kg"), "-n"),
        (("-n", "4"), "-g"),
        (("-g", "kg", "-n", "4", "--window", "soon"), "--window"),
        (("-g", "kg", "-n", "4", "--capacity", "none.toml"), "none.toml"),
        (("-g", "kg", "-n", "4", "--jobs", "0"), "--jobs"),
        (("-g", "kg", "-n", "4", "--master", "nowhere"), "master"),
        (("-g", "kg", "-n", "4", "--master", "local[2]", "--jobs", "2"), "--jobs is for threads"),
        (("-g", "kg", "-n", "4", "--spark-conf", "spark.ui.enabled=false"), "add --master"),
        (("-g", "kg", "-n", "4", "--arrivals", "soon"), "'soon'"),
        (("-g", "kg", "-n", "4", "--baseline"), "--baseline"),
    ],
)
def test_what_is_refused_before_anything_is_written(
    trace: Path, tmp_path: Path, invoke: Invoke, arguments: tuple[str, ...], what: str
) -> None:
    done = invoke("sweep", trace, *arguments, "-o", tmp_path / "out")
    assert (done.exit_code, done.stdout) == (2, "")
    assert what in done.stderr
    assert not (tmp_path / "out").exists()


def test_what_is_there_and_no_sweep_is_left_alone(trace: Path, tmp_path: Path, invoke: Invoke) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.tex").write_text("years of work")
    done = invoke("sweep", trace, *GRID, "-o", tmp_path / "out")
    assert (done.exit_code, [path.name for path in (tmp_path / "out").iterdir()]) == (2, ["thesis.tex"])


def test_a_dry_run_writes_nothing(trace: Path, tmp_path: Path, invoke: Invoke) -> None:
    out = tmp_path / "out"
    done = invoke("sweep", trace, *GRID, "-o", out, "--dry-run", "--json")
    rows = json.loads(done.stdout)
    assert (done.exit_code, len(rows), out.exists()) == (0, 8, False)
    assert {row["status"] for row in rows} == {"to run"}
    assert all(row["time_s"] > 0 and row["memory_mb"] > 0 and row["tuples"] == 20_000 for row in rows)
    assert invoke("sweep", trace, *GRID[:2], "-n", "4", *GRID[-2:], "-o", out).exit_code == 0
    again = invoke("sweep", trace, *GRID, "-o", out, "--dry-run", "--json")
    assert [row["status"] for row in json.loads(again.stdout)] == ["reused"] + ["to run"] * 7


def test_a_file_that_a_parameter_names_is_looked_for_beside_the_sweep_file_and_resumed_from_while_it_is_the_same(
    trace: Path, tmp_path: Path, invoke: Invoke
) -> None:
    spec, hot = tmp_path / "spec.toml", tmp_path / "hot"
    spec.write_text(f'traces = ["{trace}"]\ngroupings = ["kg", "salted:keys=hot,salts=2"]\nworkers = 4\n')
    asked = ("sweep", spec, "-o", tmp_path / "out", "--json")

    def planned() -> list[tuple[str, str | None]]:
        rows = json.loads(invoke(*asked, "--dry-run").stdout)
        return [(row["status"], row["error"]) for row in rows]

    missing = ("fails", f"salted: keys={hot}: No such file or directory")
    assert planned() == [("to run", None), missing]
    hot.write_text("no key of the trace\n")
    assert planned() == [("to run", None), ("fails", f"salted: the trace has none of the keys in {hot}")]
    hot.write_text("k1\n")
    before = json.loads(invoke(*asked).stdout)
    assert planned() == [("reused", None)] * 2
    hot.write_text("k0\n")
    assert planned() == [("reused", None), ("to run", None)]
    after = json.loads(invoke(*asked).stdout)
    assert (before[0]["imbalance"], before[1]["imbalance"]) != (after[0]["imbalance"], after[1]["imbalance"])
    assert before[0] == after[0]
    hot.unlink()
    alone = invoke("replay", trace, "-g", f"salted:keys={hot}", "-n", "4", "--dry-run")
    assert (alone.exit_code, "No such file" in alone.stderr) == (2, True)


def test_a_warning_is_told_once_with_its_cells(trace: Path, tmp_path: Path, invoke: Invoke) -> None:
    grid = ("-g", "kg", "-g", "sg", "-n", "4,2", "--jobs", "2")
    told = invoke("sweep", trace, *grid, "-o", tmp_path / "out").stderr.splitlines()
    assert [line.partition(" is ")[0] for line in told[:-1]] == [
        f"warning: zipf, kg on {workers} workers and 1 more: offered load" for workers in (4, 2)
    ]
    assert told[-1] == f"wrote {tmp_path / 'out'}"


def test_a_seed_is_a_replicate_and_no_copy(trace: Path, tmp_path: Path, invoke: Invoke) -> None:
    """What nothing is drawn for runs once, is noted, has no interval, and is what all seeds are compared with."""
    asked = ("sweep", trace, "-g", "kafka", "-g", "kg", "-n", "8", "-o", tmp_path / "out", "--json")
    done = invoke(*asked, "--seeds", "3")
    rows = [(row["grouping"], row["seed"], row["hash_seed"]) for row in json.loads(done.stdout)]
    assert rows == [("kafka", 0, 0), ("kg", 0, 0), ("kg", 1, 1), ("kg", 2, 2)]
    assert "note: nothing is drawn for kafka: one run, not one for each seed\n" in done.stderr
    assert len({row["imbalance"] for row in json.loads(done.stdout)}) == 4
    by = ("summarize", tmp_path / "out", "--by", "grouping", "--json", "--relative-to", "kafka")
    kafka, kg = json.loads(invoke(*by).stdout)
    assert (kafka["runs"], kafka["imbalance_ci95"], kg["runs"]) == (1, None, 3)
    assert kg["imbalance_ci95"] > 0
    assert kg["imbalance_vs_kafka"] == pytest.approx(kg["imbalance"] / kafka["imbalance"])
    # Copies of older sweeps are no replicates either.
    for seed in (1, 2):
        copy = ("-o", tmp_path / "out" / "cells" / f"{seed}")
        assert invoke("replay", trace, "-g", "kafka", "-n", "8", "--seed", seed, *copy).exit_code == 0
    kafka, _ = json.loads(invoke(*by).stdout)
    assert (kafka["runs"], kafka["imbalance_ci95"]) == (3, None)
    again = invoke(*asked, "--seed", "2,9")
    assert "2 reused, 1 to run" in again.stderr
    assert [(row["grouping"], row["seed"]) for row in json.loads(again.stdout)] == [("kafka", 2), ("kg", 2), ("kg", 9)]
    fixed = invoke(*asked[:-3], "-o", tmp_path / "fixed", "--json", "--seeds", "2", "--hash-seed", "0")
    assert [row["seed"] for row in json.loads(fixed.stdout)] == [0, 0]
    assert "nothing is drawn for kafka, kg: " in fixed.stderr


def test_a_sweep_is_replaced_only_if_asked(trace: Path, tmp_path: Path, invoke: Invoke) -> None:
    out = tmp_path / "out"
    asked = ("sweep", trace, "-g", "kg", "-o", out, "--json")
    assert invoke(*asked, "-n", "2,3").exit_code == 0
    assert "1 reused, 0 to run" in invoke(*asked, "-n", "2").stderr
    assert len(list((out / "cells").iterdir())) == 2
    before = (out / "summary.parquet").read_bytes()
    assert invoke(*asked, "-n", "0", "--overwrite").exit_code == 2
    assert invoke(*asked, "-n", "2", "--overwrite", "--dry-run").exit_code == 0
    assert (out / "summary.parquet").read_bytes() == before
    done = invoke(*asked, "-n", "2", "--overwrite")
    assert "reused" not in done.stderr
    assert [row["workers"] for row in json.loads(done.stdout)] == [2]
    assert len(list((out / "cells").iterdir())) == 1
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "cells").mkdir()
    (mine / "summary.parquet").write_text("mine")
    refused = invoke("sweep", trace, "-g", "kg", "-n", "2", "-o", mine, "--overwrite")
    assert refused.exit_code == 2
    assert "no sweep.json" in refused.stderr
    assert (mine / "summary.parquet").read_text() == "mine"


def test_flags_win_over_the_file(trace: Path, tmp_path: Path, invoke: Invoke) -> None:
    spec = tmp_path / "spec.toml"
    spec.write_text(
        f'traces = ["{trace}"]\ngroupings = ["kg", "pkg"]\nworkers = [4, 8]\nseeds = 3\nwindow = "10%"\nsources = 2\n'
    )
    listed = ("-o", tmp_path / "out", "--dry-run", "--json")
    plain = json.loads(invoke("sweep", spec, *listed).stdout)
    assert (len(plain), {row["sources"] for row in plain}) == (12, {2})
    # What was asked for wins also where it is the default.
    flagged = json.loads(invoke("sweep", spec, *listed, "-g", "pkg", "--seed", "7", "--sources", "5").stdout)
    assert {(row["grouping"], row["seed"], row["sources"]) for row in flagged} == {("pkg", 7, 5)}
    assert len(flagged) == 2
    done = invoke("sweep", spec, spec, *listed)
    assert (done.exit_code, done.stdout) == (2, "")
    spec.write_text("worker = 3")
    done = invoke("sweep", spec, *listed)
    assert done.exit_code == 2
    assert "did you mean 'workers'" in done.stderr


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from streamgroup.synth.generate_trace import synthesise

    path = tmp_path_factory.mktemp("traces") / "long"
    synthesise("zipf", {"tuples": 3_000_000, "keys": 500, "rate": 5000}, path)
    return path


def _begun(trace: Path, out: Path) -> "subprocess.Popen[str]":
    """Start a sweep of some seconds, and wait until it has a cell."""
    command = [
        sys.executable,
        "-m",
        "streamgroup",
        "sweep",
        str(trace),
        "-g",
        "greedy_d:d=3",
        "-n",
        "2..40",
        "--jobs",
        "1",
    ]
    process = subprocess.Popen([*command, "-o", str(out)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 600
    while not list(out.glob("cells/[0-9a-f]*/run.json")):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until
        time.sleep(0.01)
    return process


@pytest.mark.parametrize("blow", [signal.SIGKILL, pytest.param(signal.SIGINT, marks=pytest.mark.slow)])
def test_a_sweep_that_was_stopped_goes_on(long: Path, tmp_path: Path, invoke: Invoke, blow: signal.Signals) -> None:
    out = tmp_path / "out"
    process = _begun(long, out)
    process.send_signal(blow)
    printed, told = process.communicate(timeout=300)
    assert process.returncode == (130 if blow == signal.SIGINT else -signal.SIGKILL)
    assert printed == ""
    assert "Traceback" not in told
    assert ("the same command resumes" in told) == (blow == signal.SIGINT)
    whole = [path for path in (out / "cells").iterdir() if not path.name.startswith(".")]
    assert 0 < len(whole) < 39
    assert all((path / "summary.parquet").is_file() and (path / "run.json").is_file() for path in whole)
    assert blow == signal.SIGKILL or not list((out / "cells").glob(".*"))
    assert not (out / "summary.parquet").exists()
    done = invoke("sweep", long, "-g", "greedy_d:d=3", "-n", "2..40", "-o", out)
    assert done.exit_code == 0
    assert f"{len(whole)} reused, {39 - len(whole)} to run" in done.stderr
    assert len(pl.read_parquet(out / "summary.parquet")) == 39
    assert not list((out / "cells").glob(".*"))
