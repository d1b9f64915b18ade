"""What the pictures share: running the program, reading what it wrote, colours."""

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import altair as alt
import polars as pl

BLUE, ORANGE, RED, GREY, GREEN = "#2f6db3", "#f0a04b", "#c8102e", "#8c8c8c", "#3c8d5a"
WIDTH = 640
ON_TOP = alt.Legend(orient="top")


def streamgroup(line: str, directory: Path) -> str:
    """Run a command of the program, as it stands in the documentation, and give what it prints."""
    print(f"streamgroup {line}", file=sys.stderr)
    words = [sys.executable, "-m", "streamgroup", "--quiet", *shlex.split(line)]
    return subprocess.run(words, cwd=directory, check=True, stdout=subprocess.PIPE, text=True).stdout


def metrics(line: str, directory: Path) -> dict[str, Any]:
    """Run a replay and give its metrics."""
    (found,) = json.loads(streamgroup(f"replay {line} --json", directory))
    return dict(found)


def windows(run: Path) -> pl.DataFrame:
    """Read the windows of a run."""
    return pl.read_parquet(run / "windows.parquet")


def assignments(run: Path) -> pl.DataFrame:
    """Read the log of a run, with times in ms."""
    return pl.read_parquet(run / "assignments" / "*.parquet").select(
        "seq",
        "worker",
        arrival=pl.col("arrival_ns") / 1e6,
        start=pl.col("start_ns") / 1e6,
        finish=pl.col("finish_ns") / 1e6,
        latency=(pl.col("finish_ns") - pl.col("arrival_ns")) / 1e6,
    )


def colour(names: list[str], colours: list[str], *, title: str | None = None) -> alt.Color:
    """Give each grouping its colour, in this order."""
    return alt.Color("grouping:N", title=title, sort=names, legend=ON_TOP).scale(domain=names, range=colours)
