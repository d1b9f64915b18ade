"""The runs of a sweep as expressions read them: chosen by options, averaged over replicates."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median, pstdev
from typing import Any

import pyarrow.parquet as pq

from streamgroup.base.errors import RunError, UsageError
from streamgroup.base.spelling_hint import suggest
from streamgroup.metrics.metric_names import METRICS
from streamgroup.replay.scenario.grouping_selection import select
from streamgroup.replay.scenario.grouping_text import split_text
from streamgroup.study.bounds.evaluate_statements import bounds
from streamgroup.study.claims.values_of_runs import Key, series_of
from streamgroup.study.make_run_record import generator_of
from streamgroup.study.run_option_columns import OPTION_COLUMNS
from streamgroup.study.sweep.plan_sweep import PlannedSweep
from streamgroup.study.sweep.run_sweep import CELLS, SweepResult

__all__ = ["SweepReading", "read_sweep"]

# Options of a run that a sweep varies; its traces differ by parameters of their generator.
_OPTIONS = ("grouping", "workers", "sources", "arrivals", "capacity")
_SEED = "trace_seed"
# A parameter with the name of another column has it after `trace_`, as in the tables of sweeps.
_TAKEN = {*OPTION_COLUMNS, *METRICS}

# What becomes of a column of a run's table.
_REDUCTIONS: dict[str, Callable[[list[Any]], float]] = {
    "mean": fmean,
    "median": median,
    "max": max,
    "min": min,
    "sum": sum,
    "first": lambda values: values[0],
    "last": lambda values: values[-1],
    "std": pstdev,
    "range": lambda values: max(values) - min(values),
    "second": lambda values: sorted(values)[-2],
    "third": lambda values: sorted(values)[-3],
    "row_of_max": lambda values: values.index(max(values)),
    "later_mean": lambda values: fmean(values[len(values) // 2 :]),
    "later_range": lambda values: max(values[len(values) // 2 :]) - min(values[len(values) // 2 :]),
}


@dataclass(frozen=True, eq=False)
class SweepReading:
    """The rows of a sweep, with the parameters of traces and groupings as columns, and the directories of the runs."""

    name: str
    rows: Sequence[Mapping[str, Any]]
    directories: Sequence[Path]
    traces: Sequence[str]
    generator: tuple[str, ...]

    def read(self, name: str, given: Mapping[str, Any]) -> Any:
        """Return a metric of the runs with given options; `name` may also be

        - "table": a column of a table of each run, reduced to a number as `how` says; `rows` are the first and last;
        - "statement": of a statement of theory for each run, its `value` or what was `measured`;
        - "first_uneven_window": see there.

        An option may have several values, in a list. `scheme` is the name of a grouping, whatever its parameters, which
        are columns then. `replicates` says what becomes of runs that differ by their seeds alone, the mean by default.
        UsageError for an unknown name and where no run has the options, RunError for a failed one.
        """
        options = dict(given)
        over_replicates = _reduction(options.pop("replicates", "mean"))
        if name == "table":
            table, column, how = options.pop("table"), options.pop("column"), _reduction(options.pop("how"))
            first, last = options.pop("rows", (None, None))

            def value(place: int) -> Any:
                read = pq.read_table(self.directories[place] / f"{table}.parquet", partitioning=None)
                values = read[column].to_pylist()[first:last]
                return how([one for one in values if one is not None])

        elif name == "statement":
            statement, part = options.pop("table"), options.pop("column")

            def value(place: int) -> Any:
                return bounds(self.traces[place], run=self.directories[place])[statement].to_json()[part]

        elif name == "first_uneven_window":

            def value(place: int) -> Any:
                return _first_uneven_window(self.directories[place])

        else:
            if name not in METRICS:
                raise UsageError(f"there is no metric {name!r}", suggest(name, METRICS))

            def value(place: int) -> Any:
                return self.rows[place][name]

        return self._of(options, value, over_replicates)

    def _of(
        self, given: Mapping[str, Any], value: Callable[[int], Any], over_replicates: Callable[[list[Any]], float]
    ) -> Any:
        chosen = [place for place, row in enumerate(self.rows) if self._meets(row, given)]
        if not chosen:
            raise UsageError(f"no run of the sweep {self.name} has {dict(given)}")
        parameters = sorted({name for place in chosen for name in self.rows[place]["parameters"]})
        by_scheme = "scheme" in given
        columns = [*self.generator, *(_OPTIONS[1:] if by_scheme else _OPTIONS), *(parameters if by_scheme else ())]
        groups: dict[Key, list[float]] = {}
        for place in chosen:
            row = self.rows[place]
            if row["status"] != "ok":
                raise RunError(f"a run of the sweep {self.name} failed: {row['error']}")
            found = value(place)
            if found is None:
                raise RunError(f"a run of the sweep {self.name} has no such value")
            key = tuple(row["parameters"].get(name) if name in parameters else row.get(name) for name in columns)
            groups.setdefault(key, []).append(found)
        return series_of(columns, {key: over_replicates(values) for key, values in groups.items()})

    def _meets(self, row: Mapping[str, Any], given: Mapping[str, Any]) -> bool:
        for name, wanted in given.items():
            if name not in row and name not in row["parameters"]:
                if any(name in one or name in one["parameters"] for one in self.rows):
                    return False
                raise UsageError(f"runs of the sweep {self.name} have no {name!r}")
            value = row["parameters"].get(name, row.get(name))
            if value not in (wanted if isinstance(wanted, list) else [wanted]):
                return False
        return True


def _reduction(name: str) -> Callable[[list[Any]], float]:
    if name not in _REDUCTIONS:
        raise UsageError(f"there is no {name!r}", suggest(name, _REDUCTIONS))
    return _REDUCTIONS[name]


def _first_uneven_window(directory: Path) -> int:
    """Return the first window in which workers got different numbers of tuples, counted from 0."""
    table = pq.read_table(directory / "loads.parquet", partitioning=None).select(["window", "tuples"])
    counts: dict[int, set[int]] = {}
    for window, tuples in zip(table["window"].to_pylist(), table["tuples"].to_pylist(), strict=True):
        counts.setdefault(window, set()).add(tuples)
    return next((window for window, found in sorted(counts.items()) if len(found) > 1), len(counts))


def read_sweep(name: str, planned: PlannedSweep, result: SweepResult) -> SweepReading:
    """Take the rows of a sweep that has been run."""
    rows, directories, generator = [], [], {}
    traces = [cell.trace for cell in planned.cells]
    for cell, row in zip(planned.cells, result.rows, strict=True):
        made = generator_of(planned.traces[cell.trace].manifest)
        of_trace = {} if made is None else {"generator": made["name"], **(made["parameters"] or {})}
        # A parameter may be a list, which cannot be a part of a key.
        of_trace = {
            (f"trace_{key}" if key in _TAKEN else key): str(value) if isinstance(value, list | tuple) else value
            for key, value in of_trace.items()
        }
        generator.update(dict.fromkeys(of_trace))
        rows.append({**of_trace, **row, "parameters": _parameters(cell.options.grouping), "scheme": _scheme(cell)})
        directories.append(planned.output / CELLS / cell.id)
    return SweepReading(name, rows, directories, traces, tuple(key for key in generator if key != _SEED))


def _scheme(cell: Any) -> str:
    return select(cell.options.grouping).name


def _parameters(text: str) -> dict[str, Any]:
    """Return the parameters that a grouping's text gives, numbers as such."""
    params = select(text).params
    found = {}
    for key, _ in split_text(text)[1]:
        value = getattr(params, key, None)
        found[key] = value if isinstance(value, bool | int | float) else str(value)
    return found
