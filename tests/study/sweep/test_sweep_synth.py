"""Sweeps of generated traces: made once, and their parameters as columns."""

import json
from pathlib import Path
from typing import Any

import pytest

import streamgroup as sg
from streamgroup.base.errors import UsageError
from streamgroup.study.generator_parameter_columns import generator_columns
from streamgroup.traces.manifest import read_manifest

ZIPF = "zipf:exponent=0.5..1.5..0.5,seed=1,2,tuples=2000,keys=50"


def swept(output: Path, *texts: str, **more: Any) -> sg.Sweep:
    return sg.sweep([], ["kg", "pkg"], 4, output=output, arrivals="utilization=0.8", synth=texts, **more)


def test_the_traces_of_all_combinations_are_made_and_are_those_of_synth(tmp_path: Path) -> None:
    found = swept(tmp_path / "s", ZIPF)
    assert (found.ran, found.failed) == (12, 0)
    assert [(row["exponent"], row["trace_seed"], row["grouping"]) for row in found.rows] == [
        (exponent, seed, grouping) for exponent in (0.5, 1.0, 1.5) for seed in (1, 2) for grouping in ("kg", "pkg")
    ]
    made = sorted((tmp_path / "s" / "traces").iterdir())
    assert len(made) == 6
    assert made[0].name == "zipf-exponent=0.5-seed=1-tuples=2000-keys=50.trace"
    alone = sg.synth("zipf", tmp_path / "alone.trace", exponent=0.5, seed=1, tuples=2000, keys=50)
    assert read_manifest(made[0]).fingerprint == alone.manifest.fingerprint


def test_traces_are_kept_and_reused(tmp_path: Path) -> None:
    swept(tmp_path / "s", ZIPF)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "s" / "traces").rglob("*")}
    again = swept(tmp_path / "s", ZIPF)
    assert (again.ran, again.reused) == (0, 12)
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "s" / "traces").rglob("*")} == before
    # One that is damaged, or is of other parameters than its name says, is made again.
    names = sorted((tmp_path / "s" / "traces").iterdir())
    fingerprints = [read_manifest(path).fingerprint for path in names]
    (names[0] / "trace.json").write_text("{")
    other = json.loads((names[1] / "trace.json").read_text())
    (names[1] / "trace.json").write_text(json.dumps({**other, "seed": 9}))
    swept(tmp_path / "s", ZIPF)
    assert [read_manifest(path).fingerprint for path in names] == fingerprints


def test_a_sweep_that_was_stopped_after_its_traces_is_resumed(tmp_path: Path) -> None:
    swept(tmp_path / "s", ZIPF)
    for path in (tmp_path / "s").iterdir():
        if path.is_file():
            path.unlink()
    (tmp_path / "s" / "cells").rename(tmp_path / "away")
    assert swept(tmp_path / "s", ZIPF).ran == 12


def test_runs_have_the_parameters_as_columns(tmp_path: Path) -> None:
    swept(tmp_path / "s", ZIPF, "uniform:tuples=2000,keys=50")
    frame = sg.load_runs(tmp_path / "s")
    assert frame.columns[:4] == ["trace", "generator", "exponent", "trace_seed"]
    assert frame["generator"].unique().sort().to_list() == ["uniform", "zipf"]
    table = sg.summarize(frame, by=["exponent", "grouping"], metrics=["imbalance"], where="generator=zipf")
    assert table["exponent"].to_list() == [0.5, 0.5, 1.0, 1.0, 1.5, 1.5]
    assert table["runs"].to_list() == [2] * 6
    one = sg.load_runs(sorted((tmp_path / "s" / "cells").iterdir())[:1])
    assert "exponent" not in one.columns


def test_patterns_are_traces(tmp_path: Path) -> None:
    swept(tmp_path / "s", ZIPF)
    spec = tmp_path / "sweep.toml"
    spec.write_text('traces = ["s/traces/*seed=1*.trace"]\ngroupings = "kg"\nworkers = 2\n')
    found = sg.sweep(spec, output=tmp_path / "t", arrivals="utilization=0.5")
    assert [row["exponent"] for row in found.rows] == [0.5, 1.0, 1.5]
    with pytest.raises(UsageError, match="no trace matches"):
        sg.sweep(str(tmp_path / "none*.trace"), "kg", 2, output=tmp_path / "u")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("zipff", "no generator 'zipff'"),
        ("zipf:exponnt=1", "no parameter 'exponnt'"),
        ("zipf:exponent=9", "exponent: 9 is above 3"),
        ("zipf:seed=0..5000", "at most 1000"),
        ("zipf:seed=0,tuples", "has several|is not a whole number|is no parameter"),
        (":seed=0", "names no generator"),
    ],
)
def test_what_cannot_be_made_is_said_before_anything_is(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        swept(tmp_path / "s", text)
    assert not (tmp_path / "s").exists()


def test_columns_have_one_type_and_no_name_of_another() -> None:
    def generator(**parameters: Any) -> dict[str, Any]:
        return {"name": "g", "parameters": parameters, "seed": 0}

    found = generator_columns([generator(exponent=1, workers=3, x="a"), generator(exponent=0.5, workers=4, x=1), None])
    assert found == {
        "generator": ["g", "g", None],
        "exponent": [1.0, 0.5, None],
        "trace_workers": [3, 4, None],
        "x": ["a", "1", None],
        "trace_seed": [0, 0, None],
    }
    assert generator_columns([generator(x=1)] * 2) == {}


def test_a_parameter_that_is_a_list_has_semicolons(tmp_path: Path) -> None:
    made = swept(tmp_path / "s", "posg:tuples=300,values=25;5;1,shares=1;2;7,exponent=0,1")
    assert {row["trace"] for row in made.rows} == {
        f"posg-tuples=300-values=25,5,1-shares=1,2,7-exponent={exponent}" for exponent in (0, 1)
    }
