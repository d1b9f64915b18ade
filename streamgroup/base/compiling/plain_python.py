"""Rewrites compiled functions as plain Python, for when compiling takes longer than what there is to do.

`plain(function)` gives a copy of a function, and of all that it calls, rewritten (see `plain_python_rewriter`); `view`
the arrays and NamedTuples that such a function takes: memoryviews of the very arrays, so that what it writes is written
there.
"""

import ast
import inspect
import linecache
import math
import struct
import threading
import types
from bisect import bisect_left
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamgroup.base.compiling.ast_lock import compile_tree, parse
from streamgroup.base.compiling.plain_python_kinds import ANY, WORD, Fields, Kind, NotPlainError, kind_of
from streamgroup.base.compiling.plain_python_rewriter import Rewriter

__all__ = ["hook_names", "plain", "plain_of", "view"]

# Rows of an array that are viewed at once, and of which a view is kept at most: 300 bytes each.
_FEW_ROWS = 64
_MOST_ROWS = 1 << 16
_LOCK = threading.RLock()
_BUILTINS = {"abs", "bool", "float", "int", "len", "max", "min", "range", "round"}
_MATHS = (math.ceil, math.floor, math.sqrt)
_NUMBERS = (bool, int, float, type(None))
# Methods that classes of compiled code may have, and of these the ones that do nothing where a class has none.
hook_names: dict[str, bool] = {}


def _int32(number: int) -> int:
    return ((int(number) + (1 << 31)) & 0xFFFF_FFFF) - (1 << 31)


def _int8(number: int) -> int:
    return ((int(number) + 128) & 0xFF) - 128


_DOUBLE, _LONG = struct.Struct("=d").pack, struct.Struct("=q").unpack


def _bits(number: float) -> int:
    """Return the bits of a float as a signed number."""
    found: int = _LONG(_DOUBLE(number))[0]
    return found


def _fill(array: Any, value: Any) -> None:
    if isinstance(array, (list, _Rows)):
        for place in range(len(array)):
            _fill(array[place], value)
    else:
        np.asarray(array)[:] = value


def _flat(rows: Any) -> Any:
    """Return a two-dimensional array as one of one dimension."""
    whole = rows[0].obj.base
    return memoryview(whole.reshape(-1))


class _Records:
    """The fields of an array of records, a view each."""

    def __init__(self, records: NDArray[Any]) -> None:
        self._size = len(records)
        vars(self).update((name, records[name].data) for name in records.dtype.names or ())

    def __len__(self) -> int:
        return self._size


class _Rows(dict[int, Any]):
    """Many rows of an array: views of those that were asked for. A run may use a few of 100,000."""

    def __init__(self, array: NDArray[Any]) -> None:
        super().__init__()
        self._array = array

    def __len__(self) -> int:
        return len(self._array)

    def __iter__(self) -> Iterator[Any]:
        return (self[place] for place in range(len(self)))

    def __missing__(self, place: int) -> Any:
        found = view(self._array[place])
        if super().__len__() < _MOST_ROWS:
            self[place] = found
        return found

    def part(self, begin: int | None, end: int | None) -> Any:
        return view(self._array[begin:end])


def _part(array: Any, begin: int | None, end: int | None) -> Any:
    return array.part(begin, end) if isinstance(array, _Rows) else array[begin:end]


def view(value: Any) -> Any:
    """Return what rewritten code takes for a value of compiled code."""
    if isinstance(value, np.ndarray):
        if value.dtype.names:
            return _Records(value)
        if value.ndim < 2:
            return value.data
        if len(value) > _FEW_ROWS:
            return _Rows(value)
        return [row.data for row in value] if value.ndim == 2 else [view(row) for row in value]
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, tuple) and hasattr(type(value), "_fields"):
        return tuple.__new__(_plain_class(type(value), kind_of(value)), map(view, value))
    return tuple(map(view, value)) if isinstance(value, tuple) else value


_HELPERS = {
    "_bits": _bits,
    "_bisect": bisect_left,
    "_ceil": lambda x: float(math.ceil(x)),
    "_fill": _fill,
    "_flat": _flat,
    "_floor": lambda x: float(math.floor(x)),
    "_int8": _int8,
    "_int32": _int32,
    "_part": _part,
    "_view": view,
}


def _nothing(*_: Any) -> None:
    return None


@cache
def _plain_class(of: type, kind: Kind) -> type:
    """Return a class of the same fields, which are of this kind, whose hooks are plain."""
    hooks: dict[str, Any] = {"__slots__": ()}
    for name, is_optional in hook_names.items():
        method = getattr(of, name, None)
        if inspect.isfunction(method):
            hooks[name] = plain_of(method, (kind,))
        elif is_optional:
            hooks[name] = _nothing
    return type(of.__name__, (of,), hooks)


@cache
def _tree(file: str) -> dict[tuple[str, int], ast.FunctionDef]:
    """Return the functions of a file, by name and first line."""
    source = "".join(linecache.getlines(file))
    found = {}
    for node in ast.walk(parse(source)):
        if isinstance(node, ast.FunctionDef):
            found[node.name, min([node.lineno, *(one.lineno for one in node.decorator_list)])] = node
    return found


class _Makers:
    """Functions that were made, and the names by which they call each other."""

    def __init__(self) -> None:
        self.made: dict[Any, tuple[Callable[..., Any], Kind]] = {}
        self.names: dict[Any, str] = {}
        self.whole: dict[str, ast.FunctionDef] = {}
        self.scope: dict[str, Any] = {**_HELPERS, "np": np}

    def make(self, function: Callable[..., Any], kinds: tuple[Kind, ...]) -> Kind:
        """Make a function for arguments of these kinds unless it is there; return the kind of what it returns."""
        code, key = function.__code__, (function, kinds)
        if key in self.made:
            return self.made[key][1]
        if key in self.names:
            # It calls itself, by way of others.
            return ANY
        own = f"{code.co_name}_{len(self.names)}"
        self.names[key] = own
        try:
            tree = _tree(code.co_filename).get((code.co_name, code.co_firstlineno))
            if tree is None or function.__closure__:
                raise NotPlainError(f"{code.co_qualname} has no source of its own")
            rewriter = Rewriter(partial(self._resolve, function), frozenset(hook_names), self.whole)
            rewritten = rewriter.function(tree, own, kinds)
            if len(rewritten.body) == 1 and isinstance(rewritten.body[0], ast.Return) and rewritten.body[0].value:
                self.whole[own] = rewritten
            module = ast.Module([rewritten], [])
            exec(compile_tree(module, code.co_filename), self.scope)
        except BaseException:
            del self.names[key]
            raise
        returns = ANY if rewriter.returns is None else rewriter.returns
        self.made[key] = self.scope[own], returns
        return returns

    def _resolve(
        self, function: Callable[..., Any], parts: tuple[str, ...], kinds: tuple[Kind, ...]
    ) -> tuple[ast.expr, Kind] | None:
        first, *rest = parts
        scope = function.__globals__
        if first not in scope:
            return (ast.Name(first, ast.Load()), ANY) if first in _BUILTINS and not rest else None
        value = scope[first]
        if rest:
            if not inspect.ismodule(value):
                return None
            value = getattr(value, rest[0])
        value = getattr(value, "py_func", value)
        if isinstance(value, np.generic):
            return ast.Constant(value.item()), WORD if value.dtype == np.uint64 else ANY
        if isinstance(value, _NUMBERS):
            return ast.Constant(value), ANY
        if isinstance(value, np.ndarray):
            name = f"array_{id(value)}"
            self.scope[name] = view(value)
            return ast.Name(name, ast.Load()), kind_of(value)
        if value in _MATHS:
            self.scope[value.__name__] = value
            return ast.Name(value.__name__, ast.Load()), ANY
        if isinstance(value, type) and issubclass(value, tuple) and hasattr(value, "_fields"):
            name = f"{value.__name__}_{id(value)}"
            self.scope[name] = value
            return ast.Name(name, ast.Load()), Fields(value._fields, kinds)
        if isinstance(value, types.FunctionType):
            kind = self.make(value, kinds)
            return ast.Name(self.names[value, kinds], ast.Load()), kind
        return None


_MAKERS = _Makers()


def plain(function: Any, *arguments: Any) -> Callable[..., Any]:
    """Return a function (or numba's dispatcher of one) as plain Python; NotPlainError for what is not rewritten.

    It takes views of arguments that are words, and hold words, where these `arguments` do.
    """
    return plain_of(function, tuple(map(kind_of, arguments)))


def plain_of(function: Any, kinds: tuple[Kind, ...]) -> Callable[..., Any]:
    """Return a function as plain Python, as `plain` does, for arguments of these kinds."""
    function = getattr(function, "py_func", function)
    with _LOCK:
        _MAKERS.make(function, kinds)
        return _MAKERS.made[function, kinds][0]
