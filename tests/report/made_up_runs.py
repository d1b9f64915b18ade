"""Run directories made up from a seed, with every table, quickly and without a replay."""

import json
import random
from itertools import product
from pathlib import Path
from typing import Any

import polars as pl

from streamgroup.metrics.metric_names import METRICS

KINDS = {int: pl.Int64(), float: pl.Float64(), str: pl.String()}
HOSTILE = (
    "<script>alert(1)</script>",
    "</script><b>",
    "<!--",
    "\"'&amp;`",
    "\U0001f600",
    "nul\0nul",
    "\u202egnp.exe",
    "\u05e9\u05dc\u05d5\u05dd",
    "line\u2028end\r\n",
    "x" * 1_000_000,
)


def make_run(
    path: Path, *, keys: tuple[str | None, ...] = ("a", "b", None), windows: int = 20, **options: Any
) -> dict[str, Any]:
    """Write a run with made up figures and give its row."""
    path.mkdir(parents=True)
    row: dict[str, Any] = {
        "trace": "t", "grouping": "pkg", "workers": 4, "sources": 5, "seed": 0, "hash_seed": 0,
        "arrivals": "utilization=0.8", "service": None, "top_keys": 20, **options,
    }  # fmt: skip
    draw = random.Random(repr(sorted(row.items(), key=str)))
    workers = row["workers"]
    metrics = {
        name: draw.choice(["workers", "none"])
        if kind is str
        else draw.randrange(1, 100)
        if kind is int
        else draw.uniform(0.001, 50)
        for name, kind in METRICS.items()
    }
    metrics |= {"dropped": 0, "lost": 0, "remapped_replicas": None, "offered_load": 0.8, "idle_workers": 0}
    row |= {name: options.get(name, value) for name, value in metrics.items()}
    kinds = {name: KINDS[kind] for name, kind in METRICS.items()}
    _write(path, "summary", [row], {"service": pl.String(), **kinds})
    _write(
        path, "windows",
        [
            {
                "window": w, "start_s": 0.5 * w, "tuples": 100, "window_imbalance": draw.random(),
                "imbalance": draw.random(), "latency_p99_ms": draw.uniform(1, 99),
            }
            for w in range(windows)
        ],
    )  # fmt: skip
    _write(
        path, "loads",
        [{"window": w, "worker": at, "tuples": draw.randrange(1, 50)} for w in range(windows) for at in range(workers)],
    )  # fmt: skip
    heads = [(draw.randrange(1, 50), draw.randrange(1, 50)) for _ in range(workers)]
    _write(
        path, "workers",
        [
            {"worker": at, "tuples": head + tail, "true_head_tuples": head, "true_tail_tuples": tail}
            for at, (head, tail) in enumerate(heads)
        ],
    )  # fmt: skip
    _write(path, "latency", [{"at_least_ms": 1.1**at, "tuples": draw.randrange(1, 1000)} for at in range(60)])
    _write(
        path, "lag",
        [
            {"time_s": 0.5 * at, "worker": worker, "backlog_tuples": draw.randrange(90), "backlog_s": draw.random()}
            for at in range(1, 30) for worker in range(workers)
        ],
    )  # fmt: skip
    _write(path, "keys", [{"key": key, "count": 9, "share": 0.1, "hot": None, "workers": 2} for key in keys])
    trace = {"path": str(path / "gone.trace"), "name": row["trace"], "fingerprint": f"{row['trace']:f<64.64}"}
    (path / "run.json").write_text(json.dumps({"schema_version": 1, "trace": trace}))
    return row


def _write(path: Path, name: str, rows: list[dict[str, Any]], kinds: dict[str, Any] | None = None) -> None:
    frame = pl.DataFrame(rows, schema_overrides=kinds, infer_schema_length=None)
    version = pl.lit(1, pl.Int32).alias("schema_version")
    frame.with_columns(version).write_parquet(path / f"{name}.parquet")


def make_runs(place: Path, groupings: tuple[str, ...], **options: tuple[Any, ...]) -> list[dict[str, Any]]:
    """Write the cross product of groupings and options and give all rows."""
    rows = []
    for at, (grouping, *values) in enumerate(product(groupings, *options.values())):
        rows.append(make_run(place / f"r{at:03}", grouping=grouping, **dict(zip(options, values, strict=True))))
    return rows
