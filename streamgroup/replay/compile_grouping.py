"""Compiling the loop for a grouping, with a cache on disk that can neither be stale nor mixed up.

numba learns the hooks of any NamedTuple through one `overload_method` a hook. What would go wrong otherwise, and is
designed out here (each has a test):

1. numba's cache looks only at the file of the cached function, so an edited helper or grouping would silently run old
   code: the cache directory of a function is named by a digest of the sources that it is made from (`Code`), and of an
   outside grouping's file.
2. Groupings that share one compiled function share one cache index and can run each other's code: what a grouping is
   compiled into is a copy with a `__name__` and `__qualname__` of its own, and one process compiles it at a time.
3. A read-only array is another type: the trace hands out read-only arrays only, and so does everything else.
4. An outside grouping is imported under a name made from its digest (`import_user_code.import_file`).
5. Only registered hooks compile, and only with the hook's own argument names: `check_shape` says so beforehand.
6. The interpreted loop gives the same results (`interpreted=True`).
"""

import inspect
import types as pytypes
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import llvmlite.binding as llvm
import numba
import numpy as np
from numba.core import types
from numba.core.errors import NumbaTypeError
from numba.extending import overload, overload_method

from streamgroup.base.compiling import code_cache, plain_python
from streamgroup.base.compiling.code_cache import code_directory, sources_digest
from streamgroup.base.errors import UsageError
from streamgroup.kernels.compiling.compiled_on_disk import compiled_on_disk
from streamgroup.kernels.compiling.kernel_decorators import AS_KERNEL, register_jitable
from streamgroup.replay.scenario.import_user_code import OUTSIDE

__all__ = [
    "COMMON",
    "HOOKS",
    "NO_INT",
    "Code",
    "Interpreted",
    "cache_directory",
    "check_shape",
    "code_of",
    "compiled",
    "imported_digest",
    "names_on_disk",
    "version_directory",
]

# The hooks of groupings (see `groupings.protocol`), and the methods of other parts, with argument names.
HOOKS: dict[str, tuple[str, ...]] = {
    "choose": ("source", "key", "now"),
    "observe": ("source", "key", "worker", "now"),
    "executed": ("worker", "key", "arrival", "start", "finish"),
    "tick": ("now",),
}
PARTS: dict[str, tuple[str, ...]] = {
    "service": ("worker", "key", "cost", "seq", "start"),
    "slowed": ("worker", "key", "cost", "seq", "start", "factor"),
    "look": ("key", "seq", "now", "view"),
    "touch": ("key", "worker"),
    "is_touched": ("key", "worker"),
    "is_full": ("more",),
    "forget_window": (),
    # Of a grouping's detector of hot keys (see `groupings.detectors`).
    "detect": ("source", "key", "now"),
    "hottest": ("source", "estimates"),
}
NO_INT = "choose() must return an int, not"
# The rooms that the code of an outside grouping may come from.
_ROOMS = ("cluster", "groupings", "kernels", "replay")
# Comparisons that select one of two values stay without a branch: which one wins is a coin that no processor can
# predict, and LLVM would turn them back into branches (which halves the speed of the event-driven simulation). Once per
# process.
llvm.set_option("", "-x86-cmov-converter=0")

# Inlined, or else every call would hand over each array of the state in a dozen numbers.
_INLINED: Any = {"forceinline": True, **AS_KERNEL}
# Hooks that do nothing when a class does not have them.
_OPTIONAL = {"observe", "tick", "look"}


def _bare(function: Callable[..., Any]) -> Callable[..., Any]:
    """Copy a method without its annotations: numba compares them as a part of the argument names."""
    return pytypes.FunctionType(
        function.__code__,
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )


def _an_int(value: Any) -> Any:
    """Return a worker as it is; refused is what compiled code would make a worker of, as 1.5 and True."""
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return value
    raise TypeError(f"{NO_INT} {type(value).__name__}")


@overload(_an_int, strict=False, jit_options=_INLINED)
def _compiled_int(value: Any) -> Callable[..., Any]:
    if isinstance(value, types.Integer):
        return lambda value: value
    raise NumbaTypeError(f"{NO_INT} {value}")


def _choose_an_int(method: Callable[..., Any]) -> Callable[..., Any]:
    inner = register_jitable(forceinline=True)(method)

    def choose(self: Any, source: Any, key: Any, now: Any) -> Any:
        return _an_int(inner(self, source, key, now))

    return _bare(choose)


def _teach(hook: str, names: tuple[str, ...]) -> None:
    """Let numba find a method of any NamedTuple by the name of a hook."""

    def find(*arguments: Any) -> Callable[..., Any] | None:
        kind = arguments[0].instance_class
        method = getattr(kind, hook, None)
        if inspect.isfunction(method):
            outside = hook == "choose" and kind.__module__.startswith(OUTSIDE)
            return _choose_an_int(_bare(method)) if outside else _bare(method)
        if hook not in _OPTIONAL:
            return None
        nothing: Callable[..., Any] = eval(f"lambda {', '.join(('self', *names))}: None")
        return nothing

    parameters = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in ("self", *names)]
    find.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    plain_python.hook_names[hook] = hook in _OPTIONAL
    overload_method(types.BaseNamedTuple, hook, jit_options=_INLINED)(find)  # type: ignore[call-arg]


for _hook, _names in (*HOOKS.items(), *PARTS.items()):
    _teach(_hook, _names)


class Interpreted:
    """A grouping's state for the interpreted loop: hooks that it does not have do nothing."""

    def __init__(self, state: Any) -> None:
        self._state = state
        for hook in HOOKS:
            setattr(self, hook, getattr(state, hook, self._nothing))
        chosen = state.choose
        self.choose = lambda source, key, now: _an_int(chosen(source, key, now))

    @staticmethod
    def _nothing(*_: Any) -> None:
        return None


def check_shape(state: Any, where: str) -> None:
    """Refuse a state of the wrong shape in one line, before numba does so in two hundred."""
    kind = type(state)
    if not (isinstance(state, tuple) and hasattr(kind, "_fields")):
        raise UsageError(f"{where}: start() must return a NamedTuple, not {kind.__name__}")
    if not inspect.isfunction(getattr(kind, "choose", None)):
        raise UsageError(f"{where}: {kind.__name__} has no method choose(self, source, key, now)")
    for name in (*HOOKS, *PARTS):
        if name in kind._fields:
            raise UsageError(f"{where}: {kind.__name__}.{name} is the name of a hook and cannot be a field")
    for hook, names in HOOKS.items():
        method = getattr(kind, hook, None)
        if method is None:
            continue
        found = tuple(inspect.signature(method).parameters)
        if found != ("self", *names):
            wanted = ", ".join(("self", *names))
            raise UsageError(f"{where}: {kind.__name__}.{hook} must take ({wanted}), not ({', '.join(found)})")
    if "room" in kind._fields and not callable(getattr(kind, "grown", None)):
        raise UsageError(f"{where}: {kind.__name__} has a field room and no method grown(self)")
    known = {*HOOKS, "workers_changed", "grown"}
    for name, member in vars(kind).items():
        if inspect.isfunction(member) and not name.startswith("_") and name not in known:
            raise UsageError(
                f"{where}: {kind.__name__}.{name} is not a hook and would not compile",
                "make it a function of the module with @numba.njit that takes arrays",
            )


class Code(NamedTuple):
    """What a function is compiled with: a `name`, and the modules of the classes whose hooks become a part of it.

    `outside_digest` is the digest of the file of a grouping that lives outside the package.
    """

    name: str
    modules: tuple[str, ...]
    outside_digest: str = ""


# What is compiled once for all groupings.
COMMON = Code("any", ("streamgroup.cluster.service_time", "streamgroup.replay.accounting.key_worker_pairs"))


def code_of(name: str, state: Any, outside_digest: str = "") -> Code:
    """Return what a grouping's functions are compiled with; `state` is its state."""
    return Code(name, tuple(sorted({*_homes(state), "streamgroup.cluster.service_time"})), outside_digest)


def _homes(state: Any) -> Iterator[str]:
    """Name the modules of the classes of a state and of the states in it."""
    yield type(state).__module__
    for part in state:
        if isinstance(part, tuple) and hasattr(part, "_fields"):
            yield from _homes(part)


def imported_digest(modules: tuple[str, ...]) -> str:
    """Return the digest of the sources of modules, and of all that they import from the package."""
    return code_cache.imported_digest((__name__, *modules), numba.__version__)


def cache_directory(function: Callable[..., Any], code: Code = COMMON) -> Path:
    """Make and return the directory of a function's code on disk."""
    if code.outside_digest:
        return version_directory(code.outside_digest)
    return code_directory(imported_digest((function.__module__, *code.modules)))


def version_directory(name: str) -> Path:
    """Make and return the directory of a name for this version of all that a run is compiled from."""
    return code_directory(f"{sources_digest(_ROOMS, numba.__version__)}-{name}")


def names_on_disk() -> set[str]:
    """Name the files of compiled functions that there are, of this version of the code and of others."""
    return {path.name for path in cache_directory(names_on_disk).parent.rglob("*.nbi")}


@cache
def compiled(function: Callable[..., Any], code: Code) -> Callable[..., Any]:
    """Return a copy of a function under its own name for some code, compiled at its first call.

    Whenever a call needs another specialisation, from whatever thread, it is compiled (or found) under the lock of its
    name.
    """
    function = getattr(function, "py_func", function)
    own = f"{function.__name__}_" + "".join(char if char.isalnum() else "_" for char in code.name)
    renamed = function.__code__.replace(co_name=own, co_qualname=own)
    copy = pytypes.FunctionType(renamed, function.__globals__, own)
    copy.__qualname__ = own
    copy.__module__ = function.__module__
    directory = cache_directory(function, code)
    # Without reference counts (`_nrt`): nothing is allocated in the loop, and counting costs half of the time.
    return compiled_on_disk(copy, directory, own, outside=bool(code.outside_digest), _nrt=False)  # type: ignore[no-any-return]
