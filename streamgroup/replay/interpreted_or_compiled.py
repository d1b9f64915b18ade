"""Interpreted first, compiled where that pays: small traces need no compiler.

Code that is in memory or on disk is used. Where there is none, a run begins interpreted (see
`base.compiling.plain_python`), with the same results. It continues compiled if it would take longer than compiling, or
twice as long together with earlier runs of the same code in this process.
"""

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Generator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamgroup.base.compiling.code_cache import is_at_hand
from streamgroup.base.compiling.plain_python import plain_of, view
from streamgroup.base.compiling.plain_python_kinds import Kind, NotPlainError, kind_of
from streamgroup.replay.compile_grouping import COMMON, Code, Interpreted, compiled
from streamgroup.replay.input.prefetch import Ready

__all__ = ["SMALL", "Tiers"]

# Compiling takes longer the more there is to do for a tuple: 3 s, and as long as it takes to interpret so many tuples.
_LEAST_S = 3.0
_TUPLES = 350_000
# Several runs are compiled only if together they take so many times as long: the one at hand may be the last.
_RUNS = 2
# Seconds for which each loop was interpreted in this process, by the name of its code.
_SPENT: defaultdict[str, float] = defaultdict(float)
# With fewer tuples than this, next to nothing is compiled for one run.
SMALL = 2 * _TUPLES
# Tuples of the first call of an interpreted loop; each further one has twice as many.
_FIRST = 2048
# Views of NamedTuples that are kept for each function.
_KEPT = 32


class Tiers:
    """How one run of `tuples` tuples calls the functions that can be compiled.

    With `interpreted` it never compiles: what cannot be rewritten, and files of users, run as written. With False it
    always compiles.
    """

    def __init__(self, tuples: int, *, interpreted: bool | None) -> None:
        self._tuples = tuples
        self.interpreted = interpreted
        self._never = interpreted is True
        self._always = interpreted is False
        self._code = ""
        self._most = _FIRST
        # Whether anything was interpreted for want of code; of these calls the time, in seconds of CPU.
        self.used_plain = False
        self.seconds = 0.0
        # And the time that preparing them took, also between pieces: what is done once says nothing of tuples to come.
        self._preparing = 0.0

    def made(self, function: Callable[..., Any], code: Code) -> Callable[..., Any]:
        """Return a function as it is to be called; `code` as in `compile_grouping.compiled`."""
        if self._never:
            return self._as_written(function) if code.outside_digest else self._interpreted(function)
        dispatcher: Any = compiled(function, code)
        if code.outside_digest:
            # Numbers that wrap in compiled code do not here, and a user's code may have any.
            self._always = True
            return dispatcher  # type: ignore[no-any-return]
        self._code = self._code if code is COMMON else code.name
        rewritten = _Rewritten(function)
        own = threading.get_ident()

        def call(*arguments: Any) -> Any:
            if not self._always and not is_at_hand(dispatcher, arguments):
                begun = time.thread_time()
                try:
                    run, views = rewritten.bind(arguments)
                except NotPlainError:
                    # Compiling says what is wrong with it, if anything.
                    self._always = True
                else:
                    self.used_plain = True
                    if threading.get_ident() == own:
                        self._preparing += time.thread_time() - begun
                    return run(*views)
            return dispatcher(*arguments)

        return call

    @staticmethod
    def _as_written(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            return function(*(Interpreted(one) if _has_hooks(one) else one for one in arguments))

        return call

    def _interpreted(self, function: Callable[..., Any]) -> Callable[..., Any]:
        rewritten = _Rewritten(function)
        as_written = self._as_written(function)

        def call(*arguments: Any) -> Any:
            try:
                run, views = rewritten.bind(arguments)
            except NotPlainError:
                return as_written(*arguments)
            return run(*views)

        return call

    def pieces(self, ready: Ready, done: int) -> Generator[Ready]:
        """Cut a chunk, before which `done` tuples were sent, into pieces that are sent one after the other.

        After each piece the run decides whether to stay interpreted.
        """
        size = len(ready.key)
        begin = 0
        while begin < size:
            end = size if self._never or self._always else min(size, begin + self._most)
            begun, prepared = time.thread_time(), self._preparing
            yield _piece(ready, begin, end)
            if self.used_plain and not self._always:
                took = time.thread_time() - begun - (self._preparing - prepared)
                self.seconds += took
                _SPENT[self._code] += took
                if self._most > _FIRST:
                    # Not of the first piece: what a process does once for all tuples is a part of that.
                    each, left = took / (end - begin), self._tuples - done - end
                    compiling = _LEAST_S + each * _TUPLES
                    self._always = (
                        self.seconds + each * left > compiling or _SPENT[self._code] + each * left > _RUNS * compiling
                    )
            elif not self.used_plain:
                # There is code.
                self._most = self._tuples
            begin, self._most = end, self._most * 2


def _has_hooks(value: Any) -> bool:
    return hasattr(value, "_fields") and hasattr(value, "choose")


class _Rewritten:
    """A function as plain Python, which keeps the views of NamedTuples: a machine passes the same again and again."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        # By their id, which no other value has as they are kept, least recently used first.
        self._kept: dict[int, tuple[Any, Kind, Any]] = {}
        self._latest: tuple[tuple[Kind, ...], Callable[..., Any]] | None = None

    def bind(self, arguments: tuple[Any, ...]) -> tuple[Callable[..., Any], list[Any]]:
        """Return what to call for some arguments, and with which views; NotPlainError for what is not rewritten."""
        found = [self._seen(one) for one in arguments]
        kinds = tuple(kind for _, kind, _ in found)
        latest = self._latest
        if latest is None or latest[0] != kinds:
            latest = self._latest = kinds, plain_of(self._function, kinds)
        return latest[1], [seen for _, _, seen in found]

    def _seen(self, value: Any) -> tuple[Any, Kind, Any]:
        if not hasattr(value, "_fields"):
            return value, kind_of(value), view(value)
        found = self._kept.pop(id(value), None) or (value, kind_of(value), view(value))
        if len(self._kept) >= _KEPT:
            del self._kept[next(iter(self._kept))]
        self._kept[id(value)] = found
        return found


def _piece(ready: Ready, begin: int, end: int) -> Ready:
    size = len(ready.key)
    if begin == 0 and end == size:
        return ready

    def cut(array: NDArray[Any] | None) -> Any:
        return array if array is None or len(array) < size else array[begin:end]

    skip = min(max(ready.skip - begin, 0), end - begin)
    place, number = ready.window_place, ready.window_number
    if len(place):
        # The window in which the first measured tuple lies began there or before.
        first = int(np.searchsorted(place, begin + skip, side="right")) - 1
        upto = int(np.searchsorted(place, end, side="left"))
        place, number = np.maximum(place[first:upto], begin + skip) - begin, number[first:upto]
        place.flags.writeable = False
    return Ready(
        ready.offset + begin, cut(ready.arrival), ready.key[begin:end], cut(ready.cost), cut(ready.source), skip,
        place, number, cut(ready.source_factor), cut(ready.held_window),
    )  # fmt: skip
