"""Means over runs with what stands beside them, failed cells, and the replicas that a change of workers brought."""

import json
import math
import statistics
import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgroup.base.errors import DataError
from streamgroup.metrics.metric_names import METRICS
from streamgroup.study.summary.averages import SPREAD, averaged, t_quantile
from streamgroup.study.summary.summarize import check_gate, load_runs, summarize
from tests.study.summary.test_summarize import write_run


@pytest.mark.parametrize(
    ("freedom", "value"),
    [
        (1, 12.706204736), (2, 4.302652730), (3, 3.182446305), (4, 2.776445105), (9, 2.262157163), (10, 2.228138852),
        (29, 2.045229642), (30, 2.042272456), (100, 1.983971519), (500, 1.964719837), (1000, 1.962339081),
    ],
)  # fmt: skip
def test_student(freedom: int, value: float) -> None:
    """Values of printed tables."""
    assert t_quantile(freedom) == pytest.approx(value, abs=1e-9)


def test_student_falls_to_the_normal_without_a_jump() -> None:
    values = [t_quantile(freedom) for freedom in (1, 2, 3, 499, 500, 501, 502, 10**9)]
    assert values == sorted(values, reverse=True)
    assert values[4] - values[5] < 1e-5
    assert values[-1] == pytest.approx(1.959963985, abs=1e-8)


ROWS = st.lists(
    st.tuples(st.sampled_from("abc"), st.none() | st.floats(-1e6, 1e6), st.none() | st.integers(-(10**9), 10**9)),
    min_size=1, max_size=30,
)  # fmt: skip


@settings(deadline=None)
@given(ROWS)
def test_against_naive(rows: list[tuple[str, float | None, int | None]]) -> None:
    schema = {"g": pl.String(), "x": pl.Float64(), "y": pl.Int64()}
    found = averaged(pl.DataFrame(rows, schema=schema, orient="row"), ["g"], ["x", "y"])
    assert found["g"].to_list() == sorted({row[0] for row in rows})
    for row in found.iter_rows(named=True):
        group = [one for one in rows if one[0] == row["g"]]
        assert row["runs"] == len(group)
        for place, name in ((1, "x"), (2, "y")):
            values: list[Any] = [one[place] for one in group if one[place] is not None]
            told = [row[name], *(row[name + suffix] for suffix in SPREAD)]
            if not values:
                assert told == [None] * 4
                continue
            assert told[1:3] == [min(values), max(values)]
            assert told[1] <= told[0] <= told[2]
            assert told[0] == pytest.approx(statistics.fmean(values), rel=1e-9, abs=1e-6)
            if len(set(values)) == 1:
                assert told[3] is None
            else:
                half = t_quantile(len(values) - 1) * statistics.stdev(values) / math.sqrt(len(values))
                assert told[3] == pytest.approx(half, rel=1e-6, abs=1e-6)


def test_no_name_beside_a_mean_is_a_metric() -> None:
    assert not {name + suffix for name in METRICS for suffix in SPREAD} & set(METRICS)


def test_ratios_are_averaged_pair_by_pair(tmp_path: Path) -> None:
    for seed, (mine, base) in enumerate(((10, 100), (90, 100), (30, 10))):
        drawn = {"arrivals": "poisson=9", "seed": seed}
        write_run(tmp_path / f"sg{seed}", replicas=base, **drawn)
        write_run(tmp_path / f"pkg{seed}", grouping="pkg", replicas=mine, **drawn)
    # Without a partner.
    write_run(tmp_path / "alone", grouping="pkg", replicas=10**6, arrivals="poisson=9", seed=3)
    found = summarize(load_runs([tmp_path]), by=["grouping"], metrics=["replicas"], relative_to="sg").to_dicts()[0]
    assert found["replicas_vs_sg"] == pytest.approx((0.1 + 0.9 + 3.0) / 3)
    assert (found["replicas_vs_sg_min"], found["replicas_vs_sg_max"], found["runs"]) == (0.1, 3.0, 4)


def write_sweep(path: Path, failures: list[dict[str, Any]], ok: int) -> Path:
    rows = []
    for number in range(ok):
        write_run(path / "cells" / f"c{number}", replicas=100 + number, imbalance=0.1, seed=number)
        rows.append({"cell": f"c{number}", "trace": "t", "grouping": "sg", "workers": 16, "seed": number})
    rows = [{**row, "status": "ok", "error": None} for row in rows]
    named = {"trace": "t", "grouping": "sg", "workers": 16, "seed": 9, "status": "failed", "error": "no room"}
    rows += [{"cell": f"f{place}", **named, **one} for place, one in enumerate(failures)]
    pl.DataFrame(rows, infer_schema_length=None).write_parquet(path / "summary.parquet")
    (path / "sweep.json").write_text("{}")
    return path


def test_a_failed_cell_is_a_row(tmp_path: Path) -> None:
    sweep = write_sweep(tmp_path / "s", [{"grouping": "pkg"}], ok=2)
    assert load_runs([sweep]).height == 2
    frame = load_runs([sweep, sweep / "."], failed=True)
    found = summarize(frame, metrics=["replicas"])
    assert found.select("grouping", "status", "error", "replicas").rows() == [
        ("sg", "ok", None, 100), ("sg", "ok", None, 101), ("pkg", "failed", "no room", None),
    ]  # fmt: skip
    assert summarize(frame, where="status=failed").height == 1
    grouped = summarize(frame, by=["grouping"], metrics=["replicas"])
    assert grouped.select("grouping", "runs", "failed", "error", "replicas").rows() == [
        ("pkg", 0, 1, "no room", None), ("sg", 2, 0, None, 100.5),
    ]  # fmt: skip


def test_a_gate_over_a_failed_cell_does_not_hold(tmp_path: Path) -> None:
    frame = load_runs([write_sweep(tmp_path / "s", [{}, {"seed": 8}], ok=2)], failed=True)
    told = check_gate(summarize(frame), "imbalance>0.5")
    assert len(told) == 2
    assert all("failed with 'no room'" in line for line in told)
    told = check_gate(summarize(frame, by=["grouping"]), "imbalance_max>0.5")
    assert told == ["grouping sg: 2 runs failed, one with 'no room', so imbalance_max>0.5 cannot be judged"]
    assert check_gate(summarize(frame, where="status=ok"), "imbalance>0.5") == []
    assert len(check_gate(summarize(frame, by=["workers"], where="status=ok"), "imbalance>0.05")) == 1


def test_sweeps_of_failures_alone_and_cells_that_were_run_since(tmp_path: Path) -> None:
    (tmp_path / "alone").mkdir()
    alone = write_sweep(tmp_path / "alone", [{}], ok=0)
    assert summarize(load_runs([alone], failed=True))["status"].to_list() == ["failed"]
    since = write_sweep(tmp_path / "since", [{}], ok=1)
    write_run(since / "cells" / "f0", seed=9)
    assert load_runs([since], failed=True)["status"].to_list() == ["ok", "ok"]
    assert load_runs([alone, since], failed=True)["status"].to_list() == ["ok", "ok", "failed"]
    (since / "summary.parquet").write_bytes(b"PAR1")
    with pytest.raises(DataError, match="not the summary of a sweep"):
        load_runs([since], failed=True)
    (since / "summary.parquet").unlink()
    assert load_runs([since], failed=True)["status"].to_list() == ["ok", "ok"]


def test_damage_is_named_among_many_and_order_is_kept(tmp_path: Path) -> None:
    for number in range(5):
        write_run(tmp_path / f"r{number}", replicas=number, **({"warmup": "1s"} if number % 2 else {}))
    assert load_runs([tmp_path])["replicas"].to_list() == list(range(5))
    pl.DataFrame({"trace": ["a", "b"]}).write_parquet(tmp_path / "r3" / "summary.parquet")
    with pytest.raises(DataError, match=r"r3.summary.parquet is not the summary of one run"):
        load_runs([tmp_path])


def test_two_rows_in_one_summary_and_none_in_another(tmp_path: Path) -> None:
    """As many rows as files are not one row a file."""
    for name in "ab":
        write_run(tmp_path / name)
    whole = pl.read_parquet(tmp_path / "a" / "summary.parquet")
    pl.concat([whole, whole]).write_parquet(tmp_path / "a" / "summary.parquet")
    whole.clear().write_parquet(tmp_path / "b" / "summary.parquet")
    with pytest.raises(DataError, match="not the summary of one run"):
        load_runs([tmp_path])


def test_a_thousand_runs_are_read_in_seconds(tmp_path: Path) -> None:
    one = write_run(tmp_path / "r0")
    summary, record = (one / "summary.parquet").read_bytes(), json.dumps(json.loads((one / "run.json").read_text()))
    for number in range(1, 1000):
        run = tmp_path / f"r{number}"
        run.mkdir()
        (run / "summary.parquet").write_bytes(summary)
        (run / "run.json").write_text(record)
    # The processor's time: others may be at work.
    begun = time.process_time()
    assert summarize(load_runs([tmp_path]), by=["workers"])["runs"].to_list() == [1000]
    assert time.process_time() - begun < 6
