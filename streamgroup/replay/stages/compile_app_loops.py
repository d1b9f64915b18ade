"""Compiles the loops over the states of an application, with its functions in them, and keeps the code on disk.

States are a NamedTuple of numbers, a column for each field. The loops are written out for the number of fields, into a
file in the cache of compiled code that is named by a digest of all that they are made from: numba keeps code beside it.
"""

import hashlib
import importlib.util
import os
import types
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba

from streamgroup.base.compiling.code_cache import code_directory, guarded
from streamgroup.kernels.compiling.kernel_decorators import njit
from streamgroup.replay.compile_grouping import imported_digest
from streamgroup.replay.scenario.app_selection import AppSelection

__all__ = ["jitted", "kernels"]

_TEXT = """
def fold(columns, slot, key, value, weight):
    for i in range(slot.shape[0]):
        row = slot[i]
        if row >= 0:
            state = update(State({load_row}), int(key[i]), {value}, {weight})
            {store_row}


def join(columns, rows, group):
    last = -1
    first = -1
    for i in range(rows.shape[0]):
        row = rows[i]
        if group[i] == last:
            state = merge(State({load_first}), State({load_row}))
            {store_first}
        else:
            first = row
        last = group[i]


def end(columns, rows, out):
    for i in range(rows.shape[0]):
        row = rows[i]
        result = finish(State({load_row}))
        {store_out}
"""


def jitted(function: Any, seen: dict[int, Any]) -> Any:
    """Compile a function with all functions of Python that it calls by their names, each once."""
    if id(function) not in seen:
        names = {
            name: function.__globals__[name] for name in function.__code__.co_names if name in function.__globals__
        }
        found = {name: jitted(one, seen) for name, one in names.items() if isinstance(one, types.FunctionType)}
        copy = types.FunctionType(function.__code__, {**function.__globals__, **found}, function.__name__)
        seen[id(function)] = njit(copy)
    return seen[id(function)]


def kernels(app: AppSelection, state: Any, functions: dict[str, Any], outputs: int) -> dict[str, Callable[..., None]]:
    """Return the loops by name: for states like `state`, with results of so many parts (0: a number)."""
    fields = range(len(state))

    def parts(row: str) -> tuple[str, str]:
        load = ", ".join(f"columns[{field}][{row}]" for field in fields)
        return load, "; ".join(f"columns[{field}][{row}] = state[{field}]" for field in fields)

    (load_row, store_row), (load_first, store_first) = parts("row"), parts("first")
    text = _TEXT.format(
        load_row=load_row, store_row=store_row, load_first=load_first, store_first=store_first,
        store_out="; ".join(f"out[{place}][i] = result[{place}]" for place in range(outputs)) or "out[0][i] = result",
        **{name: f"{name}[i]" if name in app.columns else "0.0" for name in ("value", "weight")},
    )  # fmt: skip
    module = _module(text, app.outside_digest or imported_digest((app.module.__name__,)))
    if not hasattr(module, "kernels"):
        vars(module).update(functions, State=type(state))
        names = ("fold", "join", "end") if "merge" in functions else ("fold", "end")
        directory = Path(str(module.__file__)).parent
        vars(module)["kernels"] = {
            name: guarded(njit(getattr(module, name), nogil=True, cache=True), directory, name) for name in names
        }
    found: dict[str, Callable[..., None]] = module.kernels
    return found


@cache
def _module(text: str, code: str) -> Any:
    """Import the loops from their file, which is written if it is not there."""
    digest = hashlib.sha256(f"{code} {numba.__version__} {text}".encode()).hexdigest()[:16]
    path = code_directory(digest, "applications") / "loops.py"
    if not path.exists():
        own = path.with_suffix(f".{os.getpid()}")
        own.write_text(text)
        own.replace(path)
    spec = importlib.util.spec_from_file_location(f"streamgroup_app_{digest}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
