"""Many runs in one table: read, chosen, compared, averaged, held to a gate."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from streamgroup.base.errors import DataError, UsageError
from streamgroup.metrics.metric_names import METRICS
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.study.replay_run import run_to_directory
from streamgroup.study.run_option_columns import OPTION_COLUMNS
from streamgroup.study.summary.column_conditions import parse_conditions
from streamgroup.study.summary.summarize import check_gate, load_runs, summarize
from streamgroup.study.sweep.cell import make_cell
from streamgroup.traces.trace import open_trace
from tests.study.small_hand_written_traces import write_trace

KINDS = {int: pl.Int64(), float: pl.Float64(), str: pl.String()}
# Tables as they were made when there were fewer options.
NAMING: dict[str, Any] = {
    "trace": "t",
    "grouping": "sg",
    "workers": 16,
    "seed": 0,
    "service": None,
    "spread_ties": False,
}


def write_run(path: Path, fingerprint: str = "f" * 64, code: tuple[str, str] | None = None, **values: Any) -> Path:
    """Write a run; `code` are the digests of the program and of the grouping."""
    path.mkdir(parents=True)
    row = {**NAMING, **dict.fromkeys(METRICS), "replicas": 100, "schema_version": 1, **values}
    kinds = {name: KINDS[kind] for name, kind in METRICS.items()}
    schema = {"service": pl.String(), **kinds}
    pl.DataFrame([row], schema_overrides=schema).write_parquet(path / "summary.parquet")
    record: dict[str, Any] = {"schema_version": 1, "trace": {"fingerprint": fingerprint}}
    if code is not None:
        record |= {"versions": {"streamgroup": "0.1.0"}, "code": {"program": code[0], "grouping": code[1]}}
    (path / "run.json").write_text(json.dumps(record))
    return path


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Two groupings on 16 and 64 workers with two seeds; pkg on 64 has no baseline with seed 1."""
    place = tmp_path / "runs"
    for workers in (16, 64):
        for seed in (0, 1):
            named = {"workers": workers, "seed": seed}
            tag = f"{workers}-{seed}"
            if (workers, seed) != (64, 1):
                write_run(place / f"sg-{tag}", replicas=1000 + seed, imbalance=0.0, latency_mean_ms=2.0, **named)
            write_run(
                place / f"pkg-{tag}",
                grouping="pkg",
                replicas=500,
                imbalance=0.02 * (seed + 1),
                latency_mean_ms=3.0,
                **named,
            )
    return place


def test_runs_are_read_alone_and_from_a_directory_of_several(runs: Path) -> None:
    whole = load_runs([runs])
    assert whole.height == 7
    assert load_runs([runs / "pkg-16-0"]).height == 1
    assert load_runs([runs, runs / "pkg-16-0", runs]).equals(whole)


def test_cells_of_a_sweep_are_read_and_unfinished_ones_left(tmp_path: Path) -> None:
    for cell in ("c1", "c2", ".c3.partial-1-2"):
        write_run(tmp_path / "sweep" / "cells" / cell)
    assert load_runs([tmp_path / "sweep"]).height == 2


def test_what_is_no_run_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "empty").mkdir()
    for path, said in (("nosuch", "does not exist"), ("file", "not a directory"), ("empty", "holds none")):
        with pytest.raises(UsageError, match=said) as raised:
            load_runs([tmp_path / path])
        assert raised.value.hint == "name directories that replay -o or sweep -o made"
    with pytest.raises(UsageError, match="no run"):
        load_runs([])


def test_a_damaged_run_says_so(tmp_path: Path) -> None:
    run = write_run(tmp_path / "a")
    (run / "summary.parquet").write_bytes(b"PAR1 not really")
    with pytest.raises(DataError, match="cannot be read"):
        load_runs([run])
    (run / "summary.parquet").unlink()
    with pytest.raises(DataError, match="does not exist"):
        load_runs([run])
    (run / "run.json").write_text('{"schema_version": 99, "trace": {"fingerprint": ""}}')
    with pytest.raises(DataError, match="version 99"):
        load_runs([run])
    (run / "run.json").write_text("[]")
    with pytest.raises(DataError, match="not the record"):
        load_runs([run])


def test_two_traces_of_one_name_are_told_apart(tmp_path: Path) -> None:
    write_run(tmp_path / "a", fingerprint="a" * 64)
    write_run(tmp_path / "b", fingerprint="b" * 64, grouping="pkg")
    frame = load_runs([tmp_path])
    assert frame["trace"].to_list() == ["t@aaaaaaaa", "t@bbbbbbbb"]
    assert summarize(frame, relative_to="sg")["replicas_vs_sg"].to_list() == [1.0, None]


def test_without_grouping_by_every_run_is_a_row_with_every_metric(runs: Path) -> None:
    found = summarize(load_runs([runs]))
    assert found.columns == [*OPTION_COLUMNS, *METRICS]
    assert found.height == 7


@pytest.mark.parametrize(
    ("where", "height"),
    [
        ("workers>=64,grouping=pkg", 2),
        ("workers!=64", 4),
        ("imbalance>0.03", 2),
        ("imbalance<=0", 3),
        ("service=null", 7),
        ("service!=null", 0),
        ("spread_ties=true", 0),
        ("trace=t, seed==1", 3),
    ],
)
def test_where(runs: Path, where: str, height: int) -> None:
    assert summarize(load_runs([runs]), where=where).height == height


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("wrkers>1", "no column 'wrkers'"),
        ("workers", "not a condition"),
        ("workers>", "not a condition"),
        ("workers>many", "not a number"),
        ("imbalance<nan", "not a number"),
        ("grouping>pkg", "only numbers"),
        ("spread_ties=maybe", "neither true nor false"),
        ("grouping=pkg,wrkers>1", "no column 'wrkers'"),
        ("__import__('os')=1", "not a condition"),
        ("workers>null", "only numbers"),
    ],
)
def test_a_bad_condition_says_what_is_wrong(runs: Path, where: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        summarize(load_runs([runs]), where=where)


def test_a_hint_names_the_nearest_column(runs: Path) -> None:
    with pytest.raises(UsageError) as caught:
        summarize(load_runs([runs]), where="worker>1")
    assert caught.value.hint == "did you mean 'workers'?"


def test_a_grouping_is_named_with_or_without_its_parameters() -> None:
    frame = pl.DataFrame({"grouping": ["fish:alpha=0.2,epoch=10", "fish", "fishy", "pkg"], "workers": [1, 2, 3, 4]})
    for where, workers in (
        ("grouping=fish", [1, 2]),
        ("grouping!=fish", [3, 4]),
        ("grouping=fish:alpha=0.2,epoch=10", [1]),
        ("grouping=fish:alpha=0.2,epoch=10,workers<2", [1]),
        ("grouping=fish:alpha=0.2", []),
    ):
        assert summarize(frame, where=where)["workers"].to_list() == workers, where
    assert len(parse_conditions("grouping=fish:alpha=0.2,epoch=10,workers<2", frame.schema, "--where")) == 2


def test_ratios_stand_only_where_all_else_is_equal(runs: Path) -> None:
    frame = load_runs([runs])
    found = summarize(frame, metrics=["replicas", "imbalance"], relative_to="sg").sort("grouping", "workers", "seed")
    assert found.columns == [*OPTION_COLUMNS, "replicas", "replicas_vs_sg", "imbalance", "imbalance_vs_sg"]
    assert found["replicas_vs_sg"].to_list() == [500 / 1000, 500 / 1001, 500 / 1000, 500 / 1000, 1.0, 1.0, 1.0]
    assert found["imbalance_vs_sg"].null_count() == 7
    chosen = summarize(frame, metrics=["replicas"], relative_to="sg", where="grouping=pkg,replicas_vs_sg<0.5")
    assert chosen["seed"].to_list() == [1]


def test_a_partner_that_draws_is_of_the_same_seed(tmp_path: Path) -> None:
    for arrivals, seed, name, replicas in (
        ("trace", 0, "sg", 100), ("trace", 7, "pkg", 50), ("poisson=9", 0, "sg", 200), ("poisson=9", 7, "pkg", 20),
        ("poisson=9", 0, "pkg", 10),
    ):  # fmt: skip
        path = tmp_path / f"{arrivals}-{seed}-{name}"
        write_run(path, grouping=name, replicas=replicas, arrivals=arrivals, seed=seed, hash_seed=seed)
    found = summarize(load_runs([tmp_path]), metrics=["replicas"], relative_to="sg", where="grouping=pkg")
    rows = found.sort("arrivals", "seed").select("arrivals", "seed", "replicas_vs_sg").rows()
    assert rows == [("poisson=9", 0, 0.05), ("poisson=9", 7, None), ("trace", 7, 0.5)]


def test_a_baseline_that_is_not_there_or_is_several(runs: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no run of 'kg'"):
        summarize(load_runs([runs]), relative_to="kg")
    write_run(tmp_path / "more" / "a", grouping="fish:alpha=0.1")
    write_run(tmp_path / "more" / "b", grouping="fish:alpha=0.2")
    frame = load_runs([tmp_path / "more"])
    with pytest.raises(UsageError, match="several"):
        summarize(frame, relative_to="fish")
    assert summarize(frame, relative_to="fish:alpha=0.1")["replicas_vs_fish:alpha=0.1"].to_list() == [1.0, 1.0]


def test_by_counts_and_averages_in_order(runs: Path) -> None:
    found = summarize(load_runs([runs]), by=["grouping", "workers"], metrics=["imbalance", "replicas"])
    half = 12.706204736 * 0.01  # Student's t for one degree of freedom, s / sqrt(2)
    spread = ["imbalance", "imbalance_min", "imbalance_max", "imbalance_ci95"]
    assert found.columns[:7] == ["grouping", "workers", "runs", *spread]
    assert found.with_columns(pl.selectors.float().round(6)).rows() == [
        ("pkg", 16, 2, 0.03, 0.02, 0.04, round(half, 6), 500.0, 500, 500, None),
        ("pkg", 64, 2, 0.03, 0.02, 0.04, round(half, 6), 500.0, 500, 500, None),
        ("sg", 16, 2, 0.0, 0.0, 0.0, None, 1000.5, 1000, 1001, round(50 * half, 6)),
        ("sg", 64, 1, 0.0, 0.0, 0.0, None, 1000.0, 1000, 1000, None),
    ]


def test_names_that_do_not_exist(runs: Path) -> None:
    with pytest.raises(UsageError, match="no metric 'imbalanc'"):
        summarize(load_runs([runs]), metrics=["imbalanc"])
    with pytest.raises(UsageError, match="no option column 'imbalance'"):
        summarize(load_runs([runs]), by=["imbalance"])


def test_a_gate_holds_or_names_the_runs(runs: Path) -> None:
    frame = load_runs([runs])
    assert check_gate(frame, "imbalance>0.05") == []
    found = check_gate(frame, "imbalance>0.03")
    assert len(found) == 2
    assert all("pkg" in line and "seed 1" in line and "imbalance is 0.04" in line for line in found)
    assert len(check_gate(frame, "imbalance>0.03,replicas>1000")) == 3


def test_a_gate_on_what_is_null_does_not_hold(runs: Path) -> None:
    found = check_gate(load_runs([runs]), "queue_max>10")
    assert len(found) == 7
    assert all("is null" in line for line in found)


def test_a_gate_without_runs_does_not_hold(runs: Path) -> None:
    frame = summarize(load_runs([runs]), where="workers>1000")
    assert "no run" in check_gate(frame, "imbalance>0.5")[0]


def test_a_gate_on_a_ratio_and_on_averages(runs: Path) -> None:
    frame = load_runs([runs])
    assert check_gate(summarize(frame, relative_to="sg", where="grouping=sg"), "replicas_vs_sg>1") == []
    averaged = summarize(frame, by=["grouping"], metrics=["imbalance"])
    assert check_gate(averaged, "imbalance>0.02") == ["grouping pkg: imbalance is 0.03, limit 0.02"]
    with pytest.raises(UsageError, match="--fail-on"):
        check_gate(frame, "imbalanc>0.02")


def test_a_moved_directory_is_still_a_run(runs: Path, tmp_path: Path) -> None:
    shutil.move(runs / "sg-16-0", tmp_path / "elsewhere [x]")
    assert load_runs([tmp_path / "elsewhere [x]"]).height == 1


def test_summarize_starts_without_the_replay() -> None:
    heavy = "numba", "pyspark", "pyarrow"
    code = f"import sys, streamgroup.study.summary.summarize; print([m for m in {heavy} if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_older_runs_have_the_defaults_of_newer_options(tmp_path: Path) -> None:
    """Side by side with runs that name them, in conditions, groups and comparisons."""
    write_run(tmp_path / "old", replicas=100)
    newer = {"max_pending": 1000, "warmup": "0", "crash": None, "redeliver": False}
    write_run(tmp_path / "new", grouping="pkg", replicas=150, **newer)
    write_run(tmp_path / "crash", grouping="pkg", replicas=180, **{**newer, "crash": "50% 60%:0"})
    frame = load_runs([tmp_path])
    assert frame["max_pending"].to_list() == [1000] * 3
    assert summarize(frame, where="crash=null,warmup=0").height == 2
    assert summarize(frame, where="crash=50% 60%:0")["replicas"].to_list() == [180]
    assert summarize(frame, where="crash!=null")["replicas"].to_list() == [180]
    ratios = summarize(frame, metrics=["replicas"], relative_to="sg").sort("replicas")["replicas_vs_sg"]
    assert ratios.to_list() == [1.0, 1.5, None]
    found = summarize(frame, by=["crash"], metrics=["replicas"])
    assert found.select("crash", "runs", "replicas").rows() == [(None, 2, 125.0), ("50% 60%:0", 1, 180.0)]
    old = load_runs([tmp_path / "old"])
    assert summarize(old, where="max_pending=1000,queue_capacity=null,redeliver=false").height == 1


def test_runs_before_the_hot_threshold_measured_by_their_own(tmp_path: Path) -> None:
    """They are no runs under today's default, so nothing is compared with them there."""
    write_run(tmp_path / "old")
    for threshold in ("own", "1/5n"):
        write_run(tmp_path / threshold.replace("/", "-"), grouping="pkg", hot_threshold=threshold, replicas=150)
    frame = load_runs([tmp_path])
    found = summarize(frame, metrics=["replicas"], relative_to="sg")
    assert sorted(found.select("grouping", "hot_threshold", "replicas_vs_sg").rows()) == [
        ("pkg", "1/5n", None), ("pkg", "own", 1.5), ("sg", "own", 1.0)
    ]  # fmt: skip


def test_commas_before_numbers_belong_to_a_value(tmp_path: Path) -> None:
    write_run(tmp_path / "a", slowdown="1,1,2", slowdown_at="50%=1,.9 60%=2")
    write_run(tmp_path / "b", slowdown="1,1,3")
    frame = load_runs([tmp_path])
    assert summarize(frame, where="slowdown=1,1,2,workers=16").height == 1
    assert summarize(frame, where="slowdown!=1,1,2")["slowdown"].to_list() == ["1,1,3"]
    assert summarize(frame, where="slowdown_at=50%=1,.9 60%=2").height == 1


def test_runs_of_equal_options_have_their_directory(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_run(tmp_path / name)
    frame = load_runs([tmp_path])
    assert frame["run"].to_list() == [str(tmp_path / "a"), str(tmp_path / "b")]
    assert "run" not in load_runs([tmp_path / "a"]).columns
    write_run(tmp_path / "c" / "d", seed=4)
    assert "run" not in load_runs([tmp_path / "b", tmp_path / "c"]).columns


def test_runs_of_different_code_are_never_averaged(tmp_path: Path) -> None:
    old, new, other = ("1" * 16, "2" * 16), ("1" * 16, "3" * 16), ("4" * 16, "2" * 16)
    for seed, code in enumerate([old, old, new, new]):
        write_run(tmp_path / "own" / f"pkg{seed}", grouping="pkg", seed=seed, code=code, imbalance=float(seed))
        write_run(tmp_path / "own" / f"sg{seed}", seed=seed, code=("1" * 16, "9" * 16), imbalance=1.0)
    frame = load_runs([tmp_path / "own"])
    # The code of pkg was changed, that of sg was not.
    assert "program" not in frame.columns
    assert {(row["grouping"], row["code"]) for row in frame.iter_rows(named=True)} == {
        ("pkg", "2" * 8), ("pkg", "3" * 8), ("sg", None),
    }  # fmt: skip
    table = summarize(frame, by=["grouping"], metrics=["imbalance"])
    assert table.select("grouping", "code", "runs", "imbalance").rows() == [
        ("pkg", "2" * 8, 2, 0.5), ("pkg", "3" * 8, 2, 2.5), ("sg", None, 4, 1.0),
    ]  # fmt: skip
    assert "code" not in summarize(frame, by=["grouping"], where="seed<2").columns
    assert summarize(frame, by=["code"], metrics=["imbalance"])["runs"].to_list() == [4, 2, 2]
    # A baseline has code of its own; that of another version is none.
    ratios = summarize(frame, relative_to="sg", metrics=["imbalance"])
    assert ratios.filter(grouping="pkg")["imbalance_vs_sg"].to_list() == [0.0, 1.0, 2.0, 3.0]
    for name, code in (("a", old), ("b", other)):
        write_run(tmp_path / "program" / name, grouping="pkg", code=code, imbalance=0.1)
        write_run(tmp_path / "program" / f"sg-{name}", code=code, imbalance=0.1 if name == "a" else 0.2)
    frame = load_runs([tmp_path / "program"])
    assert set(frame["program"].to_list()) == {"0.1.0 11111111", "0.1.0 44444444"}
    assert "code" not in frame.columns
    assert summarize(frame, by=["workers"], metrics=["imbalance"])["runs"].to_list() == [2, 2]
    ratios = summarize(frame, relative_to="sg", metrics=["imbalance"]).filter(grouping="pkg")
    assert ratios["imbalance_vs_sg"].to_list() == [1.0, 0.5]
    told = check_gate(frame, "imbalance>0.15")
    (path,) = tmp_path.glob("program/sg-b")
    assert told == [
        f"trace t, grouping sg, workers 16, seed 0, run {path}, program 0.1.0 44444444: imbalance is 0.2, limit 0.15"
    ]


@pytest.mark.parametrize(
    ("condition", "verdict"),
    [
        ("imbalance>=0.5", "imbalance is 0.5, limit 0.5"),
        ("imbalance>0.49999999", "imbalance is 0.5, limit 0.49999999"),
        ("replicas<200", "replicas is 100, at least 200 is asked for"),
        ("replicas!=99", "replicas is 100, and replicas!=99 is ruled out"),
    ],
)
def test_a_broken_gate_is_a_sentence(tmp_path: Path, condition: str, verdict: str) -> None:
    frame = load_runs([write_run(tmp_path / "a", imbalance=0.5)])
    assert check_gate(frame, condition) == [f"trace t, grouping sg, workers 16, seed 0: {verdict}"]


def test_files_of_one_name_and_other_content_are_not_averaged(tmp_path: Path) -> None:
    """Costs by key or salted keys that changed between two runs are other conditions under the same options."""
    trace = write_trace(tmp_path / "t.trace", list(range(0, 60_000, 1000)), ["a", "b", "c"] * 20)
    costs, names = tmp_path / "costs.csv", tmp_path / "names"
    cells = set()
    for number, cost in enumerate((100, 900)):
        costs.write_text(f"key,cost\na,{cost}\nb,1\nc,1\n")
        names.write_text("ab"[number] + "\n")
        run_to_directory(trace, ReplayOptions("kg", 2, key_cost=str(costs)), tmp_path / f"costs{number}")
        salted = f"salted:keys={names}"
        run_to_directory(trace, ReplayOptions(salted, 2, service="1ms"), tmp_path / f"salted{number}")
        merged = ReplayOptions("kg", 2, service="1ms", aggregators=2, aggregator_grouping=salted)
        run_to_directory(trace, merged, tmp_path / f"merged{number}")
        cells.add(make_cell(open_trace(trace), merged).id)
    assert len(cells) == 2
    for kind in ("costs", "salted", "merged"):
        both = load_runs([tmp_path / f"{kind}0", tmp_path / f"{kind}1"])
        assert both["code"].n_unique() == 2
        assert summarize(both, by=["workers"])["runs"].to_list() == [1, 1]
    run_to_directory(trace, ReplayOptions("kg", 2, key_cost=str(costs)), tmp_path / "again")
    alike = load_runs([tmp_path / "costs1", tmp_path / "again"])
    assert "code" not in alike.columns
