"""The parameters of generated traces as columns beside the trace, where runs differ in them."""

from collections.abc import Mapping, Sequence
from typing import Any

from streamgroup.metrics.metric_names import METRICS
from streamgroup.study.run_option_columns import OPTION_COLUMNS

__all__ = ["generator_columns"]

_TAKEN = {*OPTION_COLUMNS, *METRICS, "cell", "status", "error", "run", "program", "code"}


def generator_columns(generators: Sequence[Mapping[str, Any] | None]) -> dict[str, list[Any]]:
    """Return columns by name, a value for each run, given the generator of each run's trace (None: not generated).

    A generator has `name`, `parameters` and `seed`, as in `run.json`. Only what differs has a column; a parameter with
    the name of another column is called `trace_` and its name, as the seed is.
    """
    rows = [
        {} if one is None else {"generator": one["name"], **(one.get("parameters") or {}), "seed": one.get("seed")}
        for one in generators
    ]
    names = dict.fromkeys(name for row in rows for name in row)
    found: dict[str, list[Any]] = {}
    for name in names:
        values = [row.get(name) for row in rows]
        if any(value != values[0] for value in values):
            found[f"trace_{name}" if name in _TAKEN else name] = _alike(values)
    return found


def _alike(values: list[Any]) -> list[Any]:
    """Give all values one type: numbers, truths, or texts."""
    kinds = {type(value) for value in values if value is not None}
    if kinds == {int, float}:
        return [None if value is None else float(value) for value in values]
    if len(kinds) == 1 and kinds <= {int, float, bool, str}:
        return values
    return [None if value is None else str(value) for value in values]
