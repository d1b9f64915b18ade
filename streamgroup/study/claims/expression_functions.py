"""The functions that expressions of claims call: mean, growing, falling, smallest, peak and others."""

import itertools
import math
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any

from streamgroup.base.errors import UsageError
from streamgroup.study.claims.values_of_runs import Series, combined, mapped, series_of
from streamgroup.study.claims.zipf_and_greedy_theory import evolving_replicas, top_share, worst_greedy_ratio

__all__ = ["FUNCTIONS"]


def _values(*given: Any) -> list[Any]:
    """Return the values of series, lists and numbers."""
    found: list[Any] = []
    for one in given:
        found += one.values.values() if isinstance(one, Series) else one if isinstance(one, list) else [one]
    return found


def _mean(*given: Any) -> float:
    values = _values(*given)
    return math.fsum(values) / len(values)


def _steps(first: float, last: float, step: float) -> list[float]:
    """List first, first + step, ..., last."""
    count = int((Decimal(str(last)) - Decimal(str(first))) / Decimal(str(step))) + 1
    return [float(Decimal(str(first)) + Decimal(str(step)) * place) for place in range(count)]


def _growing(series: Series, along: str, slack: float = 0.0) -> bool:
    """Return whether values never fall by more than the share `slack` along a column, and the last is the larger."""
    return all(
        all(later >= earlier - slack * abs(earlier) for earlier, later in itertools.pairwise(line))
        and line[-1] > line[0]
        for line in _lines(series, along)
    )


def _falling(series: Series, along: str, slack: float = 0.0) -> bool:
    """Return whether values never grow by more than the share `slack` along a column, and the last is the smaller."""
    return _growing(mapped(lambda one: -one, series), along, slack)


def _level(series: Series, along: str, within: float) -> bool:
    """Return whether the largest value along a column is above the least one by the share `within` at most."""
    return all(max(line) <= min(line) * (1 + within) for line in _lines(series, along))


def _lines(series: Series, along: str) -> list[list[Any]]:
    return [[value for _, value in line] for _, line in series.along(along)]


def _smallest(column: str, met: Series) -> Any:
    """Return the least entry of a column for which a condition holds, for each value of the others.

    Infinity where it never does.
    """
    found = {key: min((entry for entry, holds in line if holds), default=math.inf) for key, line in met.along(column)}
    return series_of((name for name in met.columns if name != column), found)


def _peak(series: Series, along: str) -> Any:
    """Return the entry of a column that has the largest value, for each value of the others."""
    found = {key: max(line, key=lambda pair: pair[1])[0] for key, line in series.along(along)}
    return series_of((name for name in series.columns if name != along), found)


def _lines_of(**series: Any) -> Any:
    """Put series with the same columns together, distinguished by a column `line`."""
    found: dict[Any, Any] = {}
    columns: tuple[str, ...] = ()
    for name, one in series.items():
        columns = one.columns
        found |= {(*key, name.replace("_", " ")): value for key, value in one.values.items()}
    return series_of((*columns, "line"), found)


def _reduced(function: Callable[[Iterable[Any]], Any]) -> Callable[..., Any]:
    def reduce(*given: Any, along: str | None = None) -> Any:
        if along is None:
            return function(_values(*given))
        (series,) = given
        lines = {key: function([value for _, value in line]) for key, line in series.along(along)}
        return series_of((name for name in series.columns if name != along), lines)

    return reduce


def _at(series: Any, **entries: Any) -> Any:
    """Choose from a series by entries of its columns."""
    for column, entry in entries.items():
        lines = {key: dict(line) for key, line in series.along(column)}
        if any(entry not in line for line in lines.values()):
            raise UsageError(f"no value has the {column} {entry}")
        chosen = {key: line[entry] for key, line in lines.items()}
        series = series_of((name for name in series.columns if name != column), chosen)
    return series


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": lambda one: mapped(abs, one),
    "all": lambda *given: all(_values(*given)),
    "any": lambda *given: any(_values(*given)),
    "at": _at,
    "evolving_replicas": evolving_replicas,
    "exp": lambda one: mapped(math.exp, one),
    "falling": _falling,
    "growing": _growing,
    "larger": lambda one, other: combined(max, one, other),
    "level": _level,
    "lines": _lines_of,
    "log2": lambda one: mapped(math.log2, one),
    "max": _reduced(max),
    "mean": _reduced(_mean),
    "min": _reduced(min),
    "peak": _peak,
    "smallest": _smallest,
    "sqrt": lambda one: mapped(math.sqrt, one),
    "steps": _steps,
    "sum": _reduced(math.fsum),
    "top_share": top_share,
    "worst_greedy_ratio": worst_greedy_ratio,
}
