"""What a chart has on its x axis in place of the number of workers: an option, or a parameter of trace or grouping."""

from collections.abc import Sequence
from typing import Any

import polars as pl

from streamgroup.base.errors import StreamgroupError, UsageError
from streamgroup.base.spelling_hint import suggest
from streamgroup.groupings._share_threshold import share_of
from streamgroup.metrics.metric_names import METRICS
from streamgroup.replay.scenario.grouping_selection import find_module, parameters
from streamgroup.replay.scenario.grouping_text import split_text
from streamgroup.study.run_option_columns import OPTION_COLUMNS
from streamgroup.study.summary.load_runs import CODE_COLUMNS, STATUS_COLUMNS

__all__ = ["WORKERS", "with_x"]

WORKERS = "workers"
_NOT_OF_TRACE = {*OPTION_COLUMNS, *METRICS, *CODE_COLUMNS, *STATUS_COLUMNS, "schema_version"}


def with_x(runs: pl.DataFrame, x: str) -> tuple[pl.DataFrame, list[str]]:
    """Return runs with a column `x` of numbers, and the groupings left out, as they have no `x`.

    The names of groupings and traces no longer contain it.

    `x` is a column of the runs (an option, or a parameter of generated traces) or a parameter of groupings, whose
    default counts where it is not given. Traces that differ in `x` and their seed alone are one. UsageError where
    nothing has `x`, or it is no number.
    """
    of_trace = [name for name in runs.columns if name not in _NOT_OF_TRACE and not name.startswith("_")]
    if x in runs.columns and x not in METRICS and not runs[x].is_null().all():
        values = [_number(value, x) for value in runs[x]]
        made = runs.with_columns(pl.Series(x, values, pl.Float64))
        if x in of_trace:
            others = [name for name in of_trace if name not in (x, "trace_seed")]
            made = made.with_columns(trace=pl.Series([_others(row, others) for row in runs.iter_rows(named=True)]))
        return made, []
    found = [_of_grouping(text, workers, x) for text, workers in runs.select("grouping", "workers").iter_rows()]
    if all(value is None for _, value in found):
        known = [name for name in (*OPTION_COLUMNS, *of_trace) if name in runs.columns]
        raise UsageError(f"--x: neither the runs nor their groupings have {x!r}", suggest(x, known))
    made = runs.with_columns(
        pl.Series("grouping", [text for text, _ in found]),
        pl.Series(x, [value for _, value in found], pl.Float64),
    )
    without = made.filter(pl.col(x).is_null())["grouping"].unique().sort().to_list()
    return made.filter(pl.col(x).is_not_null()), without


def _others(row: dict[str, Any], names: Sequence[str]) -> str:
    said = [f"{name} {row[name]}" for name in names if row[name] is not None]
    return ", ".join(said) or "generated traces"


def _number(value: Any, x: str) -> float | None:
    try:
        return None if value is None else float(value)
    except ValueError:
        raise UsageError(f"--x: {x} is {value!r} in a run, and no number", "name what is a number") from None


def _of_grouping(text: str, workers: int, x: str) -> tuple[str, float | None]:
    """Return a grouping without its parameter `x`, and that; as it is and None where it has none that is a number.

    A share such as 1/5n is one, for so many workers.
    """
    name, given = split_text(text)
    values = dict(given)
    rest = ",".join(f"{key}={','.join(pieces)}" for key, pieces in given if key != x)
    try:
        if x in values:
            return f"{name}:{rest}" if rest else name, _value(",".join(values[x]), workers)
        module, _ = find_module(name)
        field = parameters(module, {key: list(pieces) for key, pieces in given}).model_fields.get(x)
        return text, None if field is None or field.default is None else _value(field.default, workers)
    except (StreamgroupError, TypeError, ValueError):
        return text, None


def _value(of: Any, workers: int) -> float:
    return float(share_of(of, workers)) if isinstance(of, str) and "n" in of else float(of)
