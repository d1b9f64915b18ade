"""The states of an application, one a row: interpreted as Python objects, or compiled as columns of numbers."""

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
from numba import typeof
from numba.core import types as numba_types
from numpy.typing import NDArray

from streamgroup.base.errors import RunError
from streamgroup.replay.scenario.app_selection import AppSelection, blamed
from streamgroup.replay.stages.compile_app_loops import jitted, kernels

__all__ = ["States", "joined", "make_states", "mixed_results"]

I64 = NDArray[np.int64]
Columns = dict[str, NDArray[Any]]
_FIRST_ROWS = 1 << 10
_typeof: Any = typeof
# With fewer tuples, compiling takes longer than interpreting.
_SMALL = 1 << 18
# Applications whose compiled functions are kept for other runs.
_KEPT = 16


class States(Protocol):
    """The states of the partial results of a batch, by row; a new row holds the state before any tuple."""

    def update(self, slot: I64, key: NDArray[Any], value: NDArray[np.float64], weight: NDArray[np.float64]) -> None:
        """Update the row of each tuple, -1 for none, in their order."""

    def merged(self, rows: I64, group: I64) -> Columns:
        """Merge the rows of each group (0, 1, ... ascending) in their order; return the results of the groups."""

    def forget(self, count: int) -> None:
        """Forget the first rows; the others move to the front."""


def make_states(app: AppSelection, tuples: int, *, interpreted: bool | None) -> States:
    """Make the states for a run of so many tuples: compiled if that pays and they are made of numbers."""
    with blamed(app.text, app.module):
        first = app.module.start(app.params)
    small = tuples < _SMALL if interpreted is None else interpreted
    if small or not _is_numbers(first):
        return _Objects(app)
    compiled = _Compiled(app, first)
    return compiled if compiled.is_exact else _Objects(app)


def _is_numbers(state: Any) -> bool:
    named = isinstance(state, tuple) and hasattr(type(state), "_fields")
    return named and all(type(part) in (int, float) for part in state)


class _Objects:
    """States as Python objects."""

    def __init__(self, app: AppSelection) -> None:
        self._app, self._states = app, list[Any]()

    def update(self, slot: I64, key: NDArray[Any], value: NDArray[np.float64], weight: NDArray[np.float64]) -> None:
        module, states = self._app.module, self._states
        with blamed(self._app.text, self._app.module):
            # Each its own, as it may be a list.
            missing = int(slot.max(initial=-1)) + 1 - len(states)
            states += [module.start(self._app.params) for _ in range(missing)]
            for row, *given in zip(slot.tolist(), key.tolist(), value.tolist(), weight.tolist(), strict=True):
                if row >= 0:
                    states[row] = module.update(states[row], *given)

    def merged(self, rows: I64, group: I64) -> Columns:
        module, found, last = self._app.module, list[Any](), -1
        with blamed(self._app.text, self._app.module):
            for row, number in zip(rows.tolist(), group.tolist(), strict=True):
                state = self._states[row]
                if number == last:
                    found[-1] = module.merge(found[-1], state)
                else:
                    found.append(state)
                last = number
            return _columns([module.finish(state) for state in found], self._app)

    def forget(self, count: int) -> None:
        del self._states[:count]


def _columns(results: list[Any], app: AppSelection) -> Columns:
    shapes = {getattr(type(result), "_fields", ()) for result in results}
    if len(shapes) > 1:
        raise mixed_results(app, *sorted(shapes)[:2])
    fields = shapes.pop() if shapes else ()
    if fields:
        return {name: _numbers([result[place] for result in results], app) for place, name in enumerate(fields)}
    return {"": _numbers(results, app)}


def _numbers(values: list[Any], app: AppSelection) -> NDArray[Any]:
    kinds = {type(value) for value in values}
    if not kinds <= {int, float, bool, np.int64, np.float64}:
        wrong = next(value for value in values if type(value) not in (int, float, bool, np.int64, np.float64))
        raise RunError(f"--app {app.text}: finish() gave {wrong!r}", "a result is a number, or a NamedTuple of numbers")
    floats = kinds & {float, np.float64}
    whole = [int(value) for value in values if isinstance(value, int | np.int64)]
    _check_exact(app, whole, beside_floats=bool(floats))
    return np.array(values, dtype=np.float64 if floats else np.int64)


def _check_exact(app: AppSelection, values: Iterable[int], *, beside_floats: bool) -> None:
    """Refuse an integer that a column of 64 bits would round."""
    least, most = (-(1 << 53), 1 << 53) if beside_floats else (-(1 << 63), (1 << 63) - 1)
    large = next((value for value in values if not least <= value <= most), None)
    if large is not None:
        beside = " beside floats" if beside_floats else ""
        raise RunError(
            f"--app {app.text}: finish() gave {large}{beside}, which a column does not hold exactly",
            "return integers of 64 bits, or floats alone",
        )


def joined(app: AppSelection, batches: list[NDArray[Any]]) -> NDArray[Any]:
    """Return the column of all batches, of floats if that of any is."""
    if not batches:
        return np.zeros(0, dtype=np.int64)
    column = np.concatenate(batches)
    if column.dtype == np.float64:
        for batch in batches:
            if batch.dtype == np.int64:
                _check_exact(app, batch.tolist(), beside_floats=True)
    return column


def mixed_results(app: AppSelection, some: tuple[str, ...], others: tuple[str, ...]) -> RunError:
    """Report that results have different fields; a number has none."""
    names = [f"({', '.join(fields)})" if fields else "a number" for fields in (some, others)]
    return RunError(f"--app {app.text}: finish() gave {names[0]} and {names[1]}", "return the same for all keys")


class _Compiled:
    """States that are NamedTuples of numbers, as a column for each field.

    `is_exact` says that the columns hold every state there will be: a column of ints would cut floats off.
    """

    def __init__(self, app: AppSelection, first: Any) -> None:
        self._app, self._first = app, first
        self._columns = tuple(np.full(_FIRST_ROWS, part) for part in first)
        self._used = 0
        with blamed(app.text, app.module):
            functions, kind = _functions(app.module, _typeof(first), mergeable=app.mergeable)
            self.is_exact = kind is not None
            if kind is None:
                return
            self._kinds = [kind] if isinstance(kind, numba_types.Number | numba_types.Boolean) else list(kind)
            self._fields = getattr(kind, "fields", None)
            self._kernels = kernels(app, first, functions, 0 if self._fields is None else len(self._fields))

    def update(self, slot: I64, key: NDArray[Any], value: NDArray[np.float64], weight: NDArray[np.float64]) -> None:
        self._used = max(self._used, int(slot.max(initial=-1)) + 1)
        while self._used > len(self._columns[0]):
            self._columns = tuple(
                np.concatenate([column, np.full_like(column, part)])
                for column, part in zip(self._columns, self._first, strict=True)
            )
        with blamed(self._app.text, self._app.module):
            self._kernels["fold"](self._columns, slot, key, value, weight)

    def merged(self, rows: I64, group: I64) -> Columns:
        first = np.ones(len(group), dtype=bool)
        first[1:] = group[1:] != group[:-1]
        count = int(first.sum())
        out = tuple(
            np.zeros(count, np.float64 if isinstance(kind, numba_types.Float) else np.int64) for kind in self._kinds
        )
        with blamed(self._app.text, self._app.module):
            if count < len(rows):
                self._kernels["join"](self._columns, rows, group)
            self._kernels["end"](self._columns, rows[first], out)
        return dict(zip(self._fields or [""], out, strict=True))

    def forget(self, count: int) -> None:
        left = self._used - count
        for column, part in zip(self._columns, self._first, strict=True):
            column[:left] = column[count : self._used]
            column[left : self._used] = part
        self._used = left


@lru_cache(maxsize=_KEPT)
def _functions(module: Any, state: Any, *, mergeable: bool) -> tuple[dict[str, Any], Any]:
    """Compile an application's functions for a type of state; return them, and the type of what `finish` returns.

    That is None where a column for the state would not hold what another function returns.
    """
    names = ("update", "merge", "finish") if mergeable else ("update", "finish")
    seen: dict[int, Any] = {}
    functions = {name: jitted(getattr(module, name), seen) for name in names}
    # Types of Python's own would hide an int that comes beside floats.
    one = _result_type(functions["update"], (state, numba_types.int64, *[numba_types.float64] * 2))
    several = _result_type(functions["merge"], (state, state)) if mergeable else state
    if not all(_fits(kind, state) for kind in (one, several)):
        return functions, None
    return functions, _result_type(functions["finish"], (state,))


def _result_type(function: Any, signature: tuple[Any, ...]) -> Any:
    """Return the type that numba finds for what a function returns."""
    function.compile(signature)
    return function.overloads[signature].signature.return_type


def _fits(kind: Any, state: Any) -> bool:
    """Return whether columns for one type of state hold another: what is an int there is no float here."""
    if not isinstance(kind, numba_types.BaseTuple) or len(kind) != len(state):
        return False
    parts: Any = kind
    pairs = zip(parts, state, strict=True)
    return not any(isinstance(part, numba_types.Float) and isinstance(own, numba_types.Integer) for part, own in pairs)
