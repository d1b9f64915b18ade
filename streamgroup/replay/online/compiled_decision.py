"""One decision from Python, fast: compiled code that finds the grouping's state at an address.

To hand a NamedTuple of arrays to compiled code takes Python several microseconds, more than the decision. So the state
is handed over once: compiled code writes it, as the numbers and pointers that it is there, into a buffer, from which
later calls read it back. They take whole numbers only, and go to the compiled function without its dispatcher.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numba
import numpy as np
from numba.core import pythonapi, types
from numba.extending import intrinsic, models, register_model, unbox
from numpy.typing import NDArray

from streamgroup.kernels.compiling.kernel_decorators import njit
from streamgroup.replay.compile_grouping import Code, compiled
from streamgroup.replay.simulation.choose import choose_one
from streamgroup.replay.simulation.optional_array_elements import get

__all__ = ["FULL", "NONE", "Bound", "Entry"]

# Which have no types, or others than what they make has.
_intrinsic: Any = intrinsic
_extending: Any = (unbox, register_model)
_numba: Any = numba

# In place of a worker: there is none of that id; the state has no room for another tuple.
NONE, FULL = -1, -2


class Bound(NamedTuple):
    """What a decision needs: the hooks (a state), and what the sources see and report (`choose.Sources`)."""

    grouping: Any
    sources: Any


class _Kept(types.Opaque):
    """The type of an argument that says of which type the value at an address is."""

    def __init__(self, kept: Any) -> None:
        self.kept = kept
        super().__init__(name=f"Kept({kept})")


def _unbox(kind: Any, value: Any, c: Any) -> Any:
    del kind, value
    native: Any = pythonapi.NativeValue
    return native(c.context.get_dummy_value())


_extending[0](_Kept)(_unbox)
_extending[1](_Kept)(models.OpaqueModel)


@_intrinsic  # type: ignore[untyped-decorator]
def _write(typing: Any, value: Any, address: Any) -> Any:
    del typing

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        del signature
        what, where = arguments
        builder.store(what, builder.inttoptr(where, what.type.as_pointer()), align=1)
        return context.get_dummy_value()

    return types.none(value, address), generate


@_intrinsic  # type: ignore[untyped-decorator]
def _size(typing: Any, value: Any) -> Any:
    del typing

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        del builder, signature
        return context.get_constant(types.int64, context.get_abi_sizeof(arguments[0].type))

    return types.int64(value), generate


@_intrinsic  # type: ignore[untyped-decorator]
def _read(typing: Any, address: Any, kept: Any) -> Any:
    del typing

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = context.get_value_type(signature.return_type)
        return builder.load(builder.inttoptr(arguments[0], kind.as_pointer()), align=1)

    return kept.kept(address, kept), generate


@njit
def size_of(bound: Any) -> Any:
    """Return how many bytes a value takes in compiled code."""
    return _size(bound)


@njit
def write(bound: Any, address: Any) -> None:
    """Write a value to an address."""
    _write(bound, address)


@njit
def decide(address: Any, kept: Any, source: Any, key: Any, now: Any) -> Any:
    """Choose a worker for a tuple of a source; `NONE` or `FULL` where there is none."""
    bound: Any = _read(address, kept)
    if get(bound.sources.room, 0, 1) < 1:
        return np.int64(FULL)
    return np.int64(choose_one(bound.grouping, bound.sources, source, key, now))


class Entry:
    """Calls compiled code for states of one type; `code` names what it is compiled with."""

    def __init__(self, bound: Bound, code: Code) -> None:
        self._code = code
        self._buffer: NDArray[np.uint8] = np.zeros(int(compiled(size_of, code)(bound)), dtype=np.uint8)
        # Addresses stay what they are: the buffer never moves.
        self.address = self._buffer.ctypes.data
        kept: Any = _Kept(_numba.typeof(bound))
        number: Any = types.int64
        dispatcher: Any = compiled(decide, code)
        self.decide: Callable[..., int] = dispatcher.compile((number, kept, number, number, number))
        self.bind(bound)

    def bind(self, bound: Bound) -> None:
        """Take another state of the same type; the caller keeps it alive."""
        self._bound = bound
        compiled(write, self._code)(bound, self.address)
