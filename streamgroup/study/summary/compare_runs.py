"""Compares runs before and after a change: cells are matched by their options, and each metric has a change."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from streamgroup.base.errors import UsageError
from streamgroup.base.output_formats import for_people
from streamgroup.base.spelling_hint import suggest
from streamgroup.metrics.metric_names import METRICS, TEXTS
from streamgroup.study.read_run import read_record
from streamgroup.study.run_option_columns import OPTION_COLUMNS
from streamgroup.study.summary.load_runs import load_pair, run_directories
from streamgroup.study.summary.matching_runs import with_partner
from streamgroup.study.summary.predicted_and_measured import (
    Witness,
    assignments,
    error_condition,
    is_measured,
    listened,
    order_of_sources,
    witness,
)

__all__ = ["Comparison", "check_conditions", "check_metrics", "compare"]

Row = dict[str, Any]

_NAMING = ("trace", "grouping", "workers")
_CONDITION = re.compile(r"^\s*([a-z_0-9]+)\s*(>=|<=|>|<)\s*([+-])\s*([0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]+)?)\s*(%?)\s*$")


@dataclass(frozen=True)
class Comparison:
    """Two sides of runs, matched.

    `table` has a row for each metric of each pair: the options, `metric`, `old`, `new`, and `change`, the difference
    as a share of the old value: null where a value is missing or the old one is 0, unless both are equal.
    `only_old` and `only_new` name the cells without a partner. `notes` are sentences on how runs were matched, and
    `warnings` on what cannot be compared. `witness` is there where one run is of an engine and the other a replay.
    """

    table: pl.DataFrame
    only_old: list[str]
    only_new: list[str]
    notes: list[str]
    warnings: list[str] = field(default_factory=list)
    witness: Witness | None = None

    def broken(self, text: str) -> list[str]:
        """Return a sentence for each pair that breaks a gate, as in `latency_p99_ms>+5%`; none where it holds.

        Several conditions have commas between them; `>+3` without a percent sign is a difference. `makespan_error>3%`
        is about the error of a prediction, or of two replays about a change in either direction. What cannot be
        judged breaks the gate: a cell of the old side without a partner, a value that only one side has, and a metric
        of which no pair has a value. UsageError for a bad condition.
        """
        found = [f"{cell}: only in OLD, so {text} cannot be judged" for cell in self.only_old]
        for piece in text.split(","):
            on_error = error_condition(piece)
            name = _condition(piece)[0] if on_error is None else on_error[0]
            rows = self.table.filter(pl.col("metric") == name)
            if not self.table.is_empty() and rows.select(pl.col("old", "new").is_null().all()).row(0) == (True, True):
                found.append(f"{name} has no value in OLD and NEW, so {piece.strip()} cannot be judged")
                continue
            if on_error is not None:
                found += self.witness.broken(piece) if self.witness else self._changed(*on_error)
                continue
            _, sign, direction, number, percent = _condition(piece)
            limit, shown = float(direction + number), f"{direction}{number}{' %' if percent else ''}"
            for row in rows.iter_rows(named=True):
                verdict = _verdict(row, sign, limit, percent)
                found += [f"{_named(row, self.naming)}: {name} {verdict}, limit {shown}"] if verdict else []
        return found

    def _changed(self, name: str, _: bool, sign: str, limit: float) -> list[str]:
        found = []
        for row in self.table.filter(pl.col("metric") == name).iter_rows(named=True):
            verdicts = [_verdict(row, sign, 100 * limit, "%"), _verdict(row, sign.replace(">", "<"), -100 * limit, "%")]
            shown = f"limit {100 * limit:g} %"
            found += [f"{_named(row, self.naming)}: {name} {one}, {shown}" for one in verdicts if one][:1]
        return found

    @property
    def naming(self) -> list[str]:
        """Name the columns of the table that name a cell: trace, grouping, workers, and options that vary."""
        return _varying(self.table)


def check_conditions(text: str) -> None:
    """Raise the UsageError of a bad condition before there is anything to compare."""
    for piece in text.split(","):
        if error_condition(piece) is None:
            _condition(piece)


def _condition(piece: str) -> tuple[str, ...]:
    match = _CONDITION.match(piece)
    if match is None:
        raise UsageError(
            f"--fail-on: {piece.strip()!r} is not a condition on a change",
            "write METRIC>+5% or METRIC<-3, with the sign of the change",
        )
    name = match[1]
    if name not in METRICS:
        raise UsageError(f"--fail-on: there is no metric {name!r}", suggest(name, METRICS))
    if name in TEXTS:
        raise UsageError(f"--fail-on: {name} is a word, which has no change in size", "name another metric")
    return match.groups()


def check_metrics(metrics: Iterable[str]) -> None:
    """Raise a UsageError for an unknown metric, and for one that is a word."""
    for name in metrics:
        if name not in METRICS:
            raise UsageError(f"--metrics: there is no metric {name!r}", suggest(name, METRICS))
        if name in TEXTS:
            raise UsageError(f"--metrics: {name} is a word, which has no change in size", "name other metrics")


def compare(old: Iterable[str | Path], new: Iterable[str | Path], metrics: Sequence[str] = ()) -> Comparison:
    """Match the runs of two sides and compare their metrics (all, or those named).

    A cell is defined by its trace's content and all options; a seed that its results do not depend on does not
    count, nor does the code that made it. One run on each side are compared whatever their options.
    UsageError for a path that holds no run or an unknown metric, DataError for a damaged run.
    """
    check_metrics(metrics)
    sides = [run_directories(side) for side in (old, new)]
    before, after = load_pair(*sides)
    names = [name for name in OPTION_COLUMNS if name in before.columns]
    notes = []
    if before.height == after.height == 1:
        differ = [name for name in names if before[name][0] != after[name][0]]
        notes += [f"{name}: {_text(before[name][0])} in OLD, {_text(after[name][0])} in NEW" for name in differ]
        # The pair goes under the options of the new run.
        before = before.with_columns(after[name].alias(name) for name in differ)
    for side, frame in (("OLD", before), ("NEW", after)):
        if again := frame.height - frame.select(names).n_unique():
            notes.append(f"{again} runs of {side} have the options of others there; the first of them counts")
    before, after = (frame.unique(names, keep="first", maintain_order=True) for frame in (before, after))
    known = [name for name in METRICS if name not in TEXTS and name in before.columns and name in after.columns]
    chosen = [name for name in known if not metrics or name in metrics]
    here = pl.lit(True).alias("_here")
    paired = with_partner(
        after, before.with_columns(here), names, {"_here": "_here", **{name: f"_old_{name}" for name in chosen}}
    )
    is_paired = pl.col("_here").fill_null(False)
    lone = with_partner(before, after.with_columns(here), names, {"_here": "_here"}).filter(~is_paired)
    pairs, new_only = paired.filter(is_paired), paired.filter(~is_paired)
    shown = _varying(pl.concat([before.select(names), after.select(names)], how="vertical_relaxed"))
    seen = None
    if [len(side) for side in sides] == [1, 1]:
        more, seen = _two_runs(sides[0][0], sides[1][0], before.to_dicts()[0], after.to_dicts()[0])
        notes += more
    return Comparison(
        _long(pairs, names, chosen),
        [_named(row, shown) for row in lone.iter_rows(named=True)],
        [_named(row, shown) for row in new_only.iter_rows(named=True)],
        notes,
        _redefined(sides[0], sides[1], chosen),
        seen,
    )


def _two_runs(old: Path, new: Path, before: Row, after: Row) -> tuple[list[str], Witness | None]:
    """Compare what runs have besides metrics: assignments, and what one predicts of the other."""
    records = read_record(old), read_record(new)
    notes = []
    if records[0]["trace"]["fingerprint"] == records[1]["trace"]["fingerprint"]:
        text = assignments(old, new)
        notes = [] if text is None else [text]
    measured = [is_measured(record) for record in records]
    notes += [text for text in (say(one) for say in (listened, order_of_sources) for one in records) if text]
    if measured == [False, True]:
        return notes, witness(old, before, after, records[1])
    if measured == [True, False]:
        return notes, witness(new, after, before, records[0])
    return notes, None


def _redefined(old: Iterable[str | Path], new: Iterable[str | Path], metrics: Sequence[str]) -> list[str]:
    """Warn of metrics that mean another thing on the other side, which another version of the program made."""
    sides = []
    for side in (old, new):
        records = [read_record(Path(run)) for run in side]
        programs = {record.get("code", {}).get("program") for record in records}
        meanings = {name: {record.get("meanings", {}).get(name, 1) for record in records} for name in metrics}
        sides.append((programs, meanings))
    if sides[0][0] == sides[1][0]:
        return []
    changed = [name for name in metrics if sides[0][1][name] != sides[1][1][name]]
    if not changed:
        return []
    return [f"OLD and NEW are by versions of the program that define these metrics differently: {', '.join(changed)}"]


def _long(pairs: pl.DataFrame, names: Sequence[str], metrics: Sequence[str]) -> pl.DataFrame:
    """Return a row for each pair and metric, in their order."""
    old, new = pl.col("old"), pl.col("new")
    change = pl.when(old == new).then(0.0).when(old != 0).then((new - old) / old.abs())
    parts = [
        pairs.select(
            *names,
            pl.lit(name).alias("metric"),
            pl.col(f"_old_{name}").cast(pl.Float64).alias("old"),
            pl.col(name).cast(pl.Float64).alias("new"),
            pl.int_range(pl.len()).alias("_pair"),
        )
        for name in metrics
    ]
    if not parts:
        return pairs.select(names).clear()
    return pl.concat(parts).sort("_pair", maintain_order=True).drop("_pair").with_columns(change.alias("change"))


def _verdict(row: Row, sign: str, limit: float, percent: str) -> str | None:
    """Say how a value changed if that breaks a limit, or why this cannot be judged."""
    old, new = row["old"], row["new"]
    if old is None and new is None:
        return None
    if old is None or new is None:
        return f"is {_text(old)} in OLD and {_text(new)} in NEW, which cannot be judged"
    if percent:
        change = 100 * row["change"] if row["change"] is not None else (new - old) * float("inf")
    else:
        change = new - old
    is_broken = {">": change > limit, ">=": change >= limit, "<": change < limit, "<=": change <= limit}[sign]
    if not is_broken:
        return None
    shown = f"{change:+.3g} %" if percent else f"{change:+.5g}"
    return f"went from {_text(old)} to {_text(new)} ({shown})"


def _varying(frame: pl.DataFrame) -> list[str]:
    """Name the columns that name a cell: those of every table, and options that differ among the cells."""
    # The hash seed is the seed unless it was given.
    aside = {"hash_seed"} if (frame["seed"] == frame["hash_seed"]).all() else set()
    options = [name for name in OPTION_COLUMNS if name in frame.columns and name not in aside]
    return [name for name in options if name in _NAMING or frame[name].n_unique() > 1]


def _named(row: Row, names: Sequence[str]) -> str:
    more = [f"{name} {_text(row[name])}" for name in names if name not in _NAMING and row[name] is not None]
    return ", ".join([f"{row['trace']}, {row['grouping']} on {row['workers']} workers", *more])


def _text(value: Any) -> str:
    return "null" if value is None else for_people(value)
