"""A run as far as statements ask for it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from streamgroup.base.errors import UsageError
from streamgroup.replay.scenario.grouping_selection import Selection, select
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.replay.scenario.plan import make_plan
from streamgroup.study.bounds.key_frequencies import KeyStream
from streamgroup.study.explain.where_tuples_went import warmup_of
from streamgroup.study.read_run import read_tables, recorded_options
from streamgroup.traces.statistics.key_counts import count_keys

__all__ = ["MeasuredRun", "measured_part", "open_measured"]


@dataclass(frozen=True, eq=False)
class MeasuredRun:
    """A run: its row, its tables, its options, and the grouping. A metric that the run does not have is None."""

    row: dict[str, Any]
    tables: dict[str, pa.Table]
    options: ReplayOptions
    selection: Selection

    @property
    def whole(self) -> bool:
        """Return whether each tuple was accepted once, by workers that stayed: else loads are not those of the keys."""
        changes = any(self.row.get(name) for name in ("join", "leave", "crash"))
        return not changes and not self.row.get("dropped") and not self.row.get("redelivered")

    def metric(self, name: str) -> Any:
        """Return a metric of the run as a whole; None where that is not the stream's, see `whole`."""
        return self.row.get(name) if self.whole else None

    def column(self, table: str, name: str) -> list[Any] | None:
        """Return a column of a table; None where it has nulls."""
        values = self.tables[table][name].to_pylist()
        return None if None in values or not values else values


def open_measured(path: Path, stream: KeyStream) -> MeasuredRun:
    """Read a run of the stream; UsageError for no run, one of another stream, or one whose grouping is gone.

    DataError for one that is damaged.
    """
    tables, record = read_tables(path)
    _check_same(path, record, stream)
    options = recorded_options(path, record)
    return MeasuredRun(tables["summary"].to_pylist()[0], tables, options, select(options.grouping))


def _check_same(path: Path, record: dict[str, Any], stream: KeyStream) -> None:
    if stream.trace is not None:
        same = record["trace"]["fingerprint"] == stream.trace.fingerprint()
    else:
        assert stream.law is not None
        made = record["trace"].get("generator") or {}
        parameters = made.get("parameters") or {}
        asked = stream.law.model_dump(include={"exponent", "keys", "tuples"})
        same = made.get("name") == "zipf" and asked == {name: parameters.get(name) for name in asked}
    if not same:
        raise UsageError(
            f"--run {path}: it is a run of another stream, {record['trace'].get('name')}", "name the trace of the run"
        )


def measured_part(stream: KeyStream, run: MeasuredRun) -> KeyStream:
    """Return the part of the stream that the run measured, which a warm-up is not; else the stream itself."""
    if run.row.get("warmup") in ("0", None):
        return stream
    if stream.trace is None:
        return stream.measured(sum(run.tables["workers"]["tuples"].to_pylist()), None)
    trace = stream.trace
    warmup = warmup_of(trace, make_plan(trace, run.options))
    return stream.measured(trace.tuples - warmup, count_keys(trace, warmup, trace.tuples))
