"""The data of a report: runs, their tables, failed cells, and profiles of the traces that still exist."""

import dataclasses
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from streamgroup.base.errors import DataError, StreamgroupError, UsageError
from streamgroup.report.formatting import shown
from streamgroup.report.trace_profile import TraceProfile, profile_trace
from streamgroup.report.x_axis import WORKERS, with_x
from streamgroup.study.read_table import read_table
from streamgroup.study.run_option_columns import DEFAULTS, OPTION_COLUMNS
from streamgroup.study.summary.column_conditions import matches, parse_conditions
from streamgroup.study.summary.load_runs import STATUS_COLUMNS
from streamgroup.study.summary.summarize import load_runs, run_directories
from streamgroup.traces.trace import open_trace

__all__ = ["MOST_CONDITIONS", "MOST_GROUPINGS", "Failure", "ReportData", "gather", "named_profile"]

# What charts have room for; tables have all.
MOST_CONDITIONS = 8
MOST_GROUPINGS = 16
# What runs may differ in and still be averaged, or stand side by side in one chart.
_ASIDE = ("grouping", "workers", "seed", "hash_seed", "top_keys")
# Characters that a panel has room for.
_LONG = 44
_UNITS = {"sources": "{} sources", "workers": "{} workers", "arrivals": "{}"}


@dataclass(frozen=True)
class Failure:
    """A cell of a sweep without a run: what it is, in words, and why."""

    cell: str
    error: str


@dataclass(frozen=True, eq=False)
class ReportData:
    """What charts and tables are made of. All texts in it are fit to be shown (see `text`).

    - `runs`: one row a run, as `load_runs` gives it, with `run` (a short name of its own) and `condition`: what the
      run was made under, in words, but for grouping, workers and seeds. Runs of one condition are comparable;
    - `directories`: where each run lies;
    - `failed`: cells of sweeps without a run;
    - `traces`: the traces that are where the runs say and are what they were;
    - `notes`: what the reader has to know of what is missing;
    - `letters`: what the letters in names of conditions stand for, where these would be long;
    - `x`: what curves are over, a column of the runs; `whole`: nothing is left out for lack of room.
    """

    runs: pl.DataFrame
    directories: dict[str, Path]
    failed: tuple[Failure, ...] = ()
    traces: tuple[TraceProfile, ...] = ()
    notes: tuple[str, ...] = ()
    letters: Mapping[str, str] = field(default_factory=dict)
    x: str = WORKERS
    whole: bool = False
    _tables: dict[tuple[str, str], pl.DataFrame] = field(default_factory=dict, repr=False)

    def table(self, name: str, runs: Sequence[str] | None = None) -> pl.DataFrame:
        """Read a table of the named runs (None: of all), each row with its `run`; DataError when one is damaged."""
        chosen = self.runs["run"].to_list() if runs is None else list(runs)
        read = [self._table(name, run) for run in chosen]
        return pl.concat(read, how="diagonal_relaxed") if read else pl.DataFrame({"run": []}, {"run": pl.String})

    def _table(self, name: str, run: str) -> pl.DataFrame:
        if (name, run) not in self._tables:
            frame = read_table(self.directories[run], name)
            self._tables[name, run] = _readable(frame).select(pl.lit(run).alias("run"), pl.exclude("schema_version"))
        return self._tables[name, run]

    @cached_property
    def groupings(self) -> tuple[str, ...]:
        """Name the groupings that charts show: all, or of too many the best of each family by p99 latency, in turn."""
        ranked = (
            self.runs.group_by("grouping")
            .agg(pl.col("latency_p99_ms").mean())
            .with_columns(pl.col("grouping").cast(pl.String).str.split(":").list.first().alias("family"))
            .sort("latency_p99_ms", "grouping", nulls_last=True)
            .with_columns(pl.int_range(pl.len()).over("family").alias("turn"))
            .sort("turn", maintain_order=True)
        )
        return tuple(ranked["grouping"].head(ranked.height if self.whole else MOST_GROUPINGS).sort().to_list())

    @cached_property
    def conditions(self) -> tuple[str, ...]:
        """Name the conditions that charts show: the first of all."""
        found = self.runs["condition"].unique().sort().to_list()
        return tuple(found if self.whole else found[:MOST_CONDITIONS])

    @property
    def left_out(self) -> str:
        """Say what charts have no room for, "" where they show everything."""
        counts = [("traces", min(len(self.traces), MOST_CONDITIONS), len(self.traces))]
        if not self.runs.is_empty():
            counts.append(("groupings", len(self.groupings), self.runs["grouping"].n_unique()))
            counts.append(("conditions", len(self.conditions), self.runs["condition"].n_unique()))
        return ", ".join(f"{shown} of {count} {name}" for name, shown, count in counts if shown < count)

    @cached_property
    def charted(self) -> pl.DataFrame:
        """Return the runs that charts show."""
        return self.runs.filter(
            pl.col("condition").is_in(list(self.conditions)), pl.col("grouping").is_in(list(self.groupings))
        )

    @cached_property
    def focus(self) -> pl.DataFrame:
        """Return the charted runs of one number of workers a condition: where most groupings are, or the most."""
        counted = self.charted.group_by("condition", "workers").agg(pl.col("grouping").n_unique())
        best = counted.sort("grouping", "workers", descending=True).unique(
            "condition", keep="first", maintain_order=True
        )
        return self.charted.join(best.select("condition", "workers"), ["condition", "workers"], "semi")

    @cached_property
    def first_seeds(self) -> pl.DataFrame:
        """Return one run of `focus` for each condition and grouping: that of the lowest seeds."""
        ordered = self.focus.sort("seed", "hash_seed", "run")
        first = ordered.unique(["condition", "grouping"], keep="first", maintain_order=True)
        return self.focus.join(first.select("run"), "run", "semi")


def gather(paths: Iterable[str | Path], *, where: str | None = None, x: str = WORKERS) -> ReportData:
    """Read runs, or what sweeps hold, and look at their traces.

    `where` keeps the runs that meet all its conditions, as `summarize` has them. Where every cell of a sweep failed
    there are no runs. Curves are over `x`, see `with_x`. UsageError for a path that is no run and holds none, for a bad
    condition and when no run is left; DataError for a damaged run.
    """
    given = [Path(path) for path in paths]
    directories = run_directories(given)
    frame = load_runs(given, failed=True)
    lost: tuple[Failure, ...] = ()
    if "status" in frame.columns:
        lost = _failures(frame.filter(pl.col("status") != "ok"))
        frame = frame.filter(pl.col("status") == "ok").drop(STATUS_COLUMNS)
    records = [_record(path) for path in directories]
    if where is not None and directories:
        met = frame.select(
            pl.all_horizontal(matches(one) for one in parse_conditions(where, frame.schema, "--where")).fill_null(False)
        ).to_series()
        frame = frame.filter(met)
        directories = [path for path, keep in zip(directories, met, strict=True) if keep]
        records = [record for record, keep in zip(records, met, strict=True) if keep]
        if frame.is_empty():
            raise UsageError(f"--where {where}: no run is left", "loosen the condition")
    names = _names(directories)
    profiles, notes = _traces(frame["trace"].to_list(), records)
    if x != WORKERS:
        frame, without = with_x(frame.with_columns(_place=pl.int_range(pl.len())), x)
        places = frame["_place"].to_list()
        frame, names = frame.drop("_place"), [names[place] for place in places]
        directories = [directories[place] for place in places]
        notes = (*notes, *(f"{name} has no {x} and is not shown." for name in without))
    runs = _readable(frame).with_columns(pl.Series("run", names), _grouping_and_code(frame))
    conditions, letters = _conditions(runs, x)
    runs = runs.with_columns(conditions).select("run", "condition", pl.exclude("run", "condition", "code"))
    return ReportData(runs, dict(zip(names, directories, strict=True)), lost, profiles, notes, letters, x)


def _record(run: Path) -> dict[str, Any]:
    record = json.loads((run / "run.json").read_bytes())
    return dict(record["trace"])


def _failures(rows: pl.DataFrame) -> tuple[Failure, ...]:
    """Describe the cells that failed, each once."""
    found: dict[Failure, None] = {}
    for row in rows.iter_rows(named=True):
        cell = f"{row['grouping']} on {row['workers']} workers, {row['trace']}, seed {row['seed']}"
        found[Failure(shown(cell, 120), shown(str(row["error"]), 300))] = None
    return tuple(found)


def _readable(frame: pl.DataFrame) -> pl.DataFrame:
    texts = [name for name, kind in frame.schema.items() if kind == pl.String]
    return frame.with_columns(
        pl.Series(name, [None if text is None else shown(text) for text in frame[name]], pl.String) for name in texts
    )


def _names(directories: Sequence[Path]) -> list[str]:
    """Name runs by their directories, and of those that are called the same all but the first by a number, too."""
    names: list[str] = []
    taken: set[str] = set()
    for path in directories:
        name = plain = shown(path.resolve().name)
        count = 1
        while name in taken:
            count += 1
            name = f"{plain} ({count})"
        taken.add(name)
        names.append(name)
    return names


def _natural(text: str) -> list[str | float]:
    """Return the key by which texts are sorted with the numbers in them by value."""
    parts = re.split(r"([0-9]{1,15}(?:\.[0-9]{1,15})?)", text)
    return [float(part) if place % 2 else part for place, part in enumerate(parts)]


def _grouping_and_code(frame: pl.DataFrame) -> pl.Series:
    """Return the column `grouping`, with the digest of the code where that differs: never are those averaged.

    Sorted, a grouping comes before its variants with parameters.
    """
    names = [shown(name) for name in frame["grouping"]]
    if "code" in frame.columns:
        names = [f"{name} @{code}" if code else name for name, code in zip(names, frame["code"], strict=True)]
    order = sorted(set(names), key=lambda name: (name.partition(":")[0], ":" in name, _natural(name)))
    return pl.Series("grouping", names, pl.Enum(order))


def _conditions(runs: pl.DataFrame, x: str) -> tuple[pl.Series, dict[str, str]]:
    """Describe the conditions of each run: the trace, and every option in which runs differ; the plainest come first.

    Long ones get a letter: second is what each letter stands for.
    """
    aside = {*_ASIDE, x} if x == WORKERS else {*_ASIDE, x} - {WORKERS}
    options = [name for name in (*OPTION_COLUMNS, "program") if name not in aside and name in runs.columns]
    varying = [name for name in options if name != "trace" and runs[name].n_unique() > 1]
    places: dict[tuple[str, str], int] = {}
    made: list[tuple[str, str]] = []
    for row in runs.iter_rows(named=True):
        one = row["trace"], ", ".join(_in_words(name, row[name]) for name in varying)
        places.setdefault(one, sum(row[name] != DEFAULTS.get(name) for name in varying))
        made.append(one)
    order = sorted(places, key=lambda one: (_natural(one[0]), places[one], _natural(one[1])))
    texts = list(dict.fromkeys(text for _, text in order))
    letters: dict[str, str] = {}
    if any(len(", ".join(one)) > _LONG for one in order) and len(texts) > 1:
        letters = {text: _letter(place) for place, text in enumerate(texts)}
    named = {one: ", ".join(part for part in (one[0], letters.get(one[1], one[1])) if part) for one in order}
    kinds = pl.Enum(list(dict.fromkeys(named.values())))
    return pl.Series("condition", [named[one] for one in made], kinds), {sign: text for text, sign in letters.items()}


def _letter(place: int) -> str:
    """Name a place A to Z, then A2 and so on."""
    return chr(ord("A") + place % 26) + (str(place // 26 + 1) if place >= 26 else "")


def _in_words(name: str, value: Any) -> str:
    if value is None:
        return f"no {name.replace('_', ' ')}"
    return _UNITS.get(name, f"{name.replace('_', ' ')} {{}}").format(value)


def _traces(
    names: Sequence[str], records: Sequence[dict[str, Any]]
) -> tuple[tuple[TraceProfile, ...], tuple[str, ...]]:
    """Look at each trace once; what is not there, or not the same any more, is noted instead."""
    found: list[TraceProfile] = []
    notes: list[str] = []
    seen: set[str] = set()
    for name, record in zip(names, records, strict=True):
        path, fingerprint = str(record.get("path")), str(record.get("fingerprint"))
        if fingerprint in seen:
            continue
        seen.add(fingerprint)
        try:
            trace = open_trace(path)
            if trace.fingerprint() != fingerprint:
                raise DataError(f"{path} is another trace by now")
            found.append(named_profile(profile_trace(trace), shown(name)))
        except (StreamgroupError, OSError, ValueError) as error:
            why = shown(str(getattr(error, "message", error)), 200)
            notes.append(f"The trace {shown(name)} is not shown: {why}.")
    return tuple(found), tuple(notes)


def named_profile(found: TraceProfile, name: str) -> TraceProfile:
    """Return the profile with the name that the runs have for the trace, and its keys as they can be shown."""
    keys = tuple(dataclasses.replace(key, key=None if key.key is None else shown(key.key)) for key in found.top_keys)
    return dataclasses.replace(found, name=name, top_keys=keys)
