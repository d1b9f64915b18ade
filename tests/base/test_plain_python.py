"""Functions rewritten for Python's own numbers give what numpy and 64-bit arithmetic give."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgroup.base.compiling import plain_python as room
from streamgroup.base.compiling.plain_python import plain, view
from streamgroup.base.compiling.plain_python_kinds import NotPlainError
from streamgroup.kernels import compiled_hash_placement, hash_placement
from streamgroup.kernels.compiling.call_kernel import call, cells
from streamgroup.kernels.latency_histogram import bucket_of

WORDS = st.integers(0, (1 << 64) - 1)
SIGNED = st.integers(-(1 << 63), (1 << 63) - 1)
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_TABLE = np.array([5, 7, 11])


@given(WORDS, st.integers(1, 1 << 32))
def test_words_wrap(word: int, n: int) -> None:
    array = np.array([word], dtype=np.uint64)
    assert plain(compiled_hash_placement.mixed, np.uint64(word))(word) == int(hash_placement.mix64(array)[0])
    assert plain(compiled_hash_placement.place, np.uint64(word))(word, n) == int(
        hash_placement.place(hash_placement.mix64(array), n)[0]
    )


def spread(words: Any, step: Any, found: Any) -> None:
    """Add, subtract, shift and divide words in a loop, of which some come from an array."""
    word = words[0]
    for place in range(found.shape[0]):
        word += np.uint64(step)
        other = np.uint64(7) - word * _FACTOR
        found[place] = (other ^ (word << np.uint64(9))) // np.uint64(3)
        if other >> np.uint64(63) == 0 and other > word:
            word = ~other


@given(WORDS, WORDS)
def test_words_in_a_loop(word: int, step: int) -> None:
    found, given = np.zeros(6, dtype=np.uint64), np.array([word], dtype=np.uint64)
    plain(spread, given, step, found)(view(given), step, view(found))
    top = (1 << 64) - 1
    for one in found.tolist():
        word = (word + step) & top
        other = (7 - word * int(_FACTOR)) & top
        assert one == (other ^ (word << 9 & top)) // 3
        if other >> 63 == 0 and other > word:
            word = ~other & top


def signs(number: Any) -> Any:
    """Go to words and smaller numbers, and back."""
    return np.int64(np.uint64(number)), np.int32(np.uint32(number)), np.int64(np.int8(np.uint8(number)))


@given(SIGNED)
def test_signs(number: int) -> None:
    array = np.array([number])
    wanted = (number, int(array.astype(np.int32)[0]), int(array.astype(np.int8)[0]))
    assert plain(signs)(number) == wanted


def share(part: Any, whole: Any) -> Any:
    """Divide numbers that a float does not hold."""
    return part / whole, np.int64(np.rint(part / 3.0))


@given(SIGNED, st.integers(1, (1 << 63) - 1))
def test_quotients_are_of_floats(part: int, whole: int) -> None:
    assert plain(share)(part, whole) == (float(part) / float(whole), int(np.rint(np.float64(part) / 3.0)))


@given(st.integers(-5, 1 << 62))
def test_bits_of_floats(ns: int) -> None:
    bits = int(np.float64(ns).view(np.int64))
    assert plain(bucket_of)(ns) == (0 if ns <= 0 else (bits >> 45) - (1023 * 128 - 1))


class State(NamedTuple):
    """Arrays of any dimensions, and a method that is no hook."""

    count: Any
    cube: Any
    few: int

    def touch(self, key: int, worker: int) -> int:
        """Count in two places."""
        self.count[key, np.uint64(worker)] += self.few
        self.cube[key, 1, worker] = max(self.cube[key, 1, worker], _TABLE[worker])
        return min(key, worker)


def work(state: Any) -> Any:
    """Call a hook, clear an array, and ask for sizes."""
    state.touch(1, 2)
    state.count[:] = state.few
    state.touch(1, 2)
    return state.count.shape[1] + state.cube.shape[2]


@pytest.mark.parametrize(("few", "most"), [(0, 0), (0, 1 << 16), (1 << 16, 1 << 16)])
def test_views_write_into_the_arrays(monkeypatch: pytest.MonkeyPatch, few: int, most: int) -> None:
    """However many rows are viewed at once and kept."""
    monkeypatch.setattr(room, "_FEW_ROWS", few)
    monkeypatch.setattr(room, "_MOST_ROWS", most)
    monkeypatch.setitem(room.hook_names, "touch", False)
    state = State(np.zeros((2, 3), dtype=np.int32), np.zeros((2, 2, 3)), 4)
    assert plain(work)(view(state)) == 6
    assert state.count.tolist() == [[4, 4, 4], [4, 4, 8]]
    assert state.cube[1, 1].tolist() == [0, 0, 11]
    assert cells((state, 3)) == 18


def test_what_does_not_fit_is_no_other_number() -> None:
    with pytest.raises(ValueError, match="memoryview"):
        call(spread, np.zeros(1, dtype=np.uint64), 1, np.zeros(3, dtype=np.uint8))


def power(x: Any) -> Any:
    """Use an operator that is not rewritten."""
    return x**2


def made(x: Any) -> Any:
    """Make an array of Python's."""
    return [x]


def named(x: Any) -> Any:
    """Use a name that is not there."""
    return nowhere + x  # type: ignore[name-defined] # noqa: F821


@pytest.mark.parametrize("function", [power, made, named])
def test_what_is_not_rewritten_is_said(function: Callable[[Any], Any]) -> None:
    with pytest.raises(NotPlainError):
        plain(function)
