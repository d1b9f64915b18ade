"""Rewritten code gives what compiled code gives, at the borders of words and signed numbers, or is refused."""

import contextlib
import importlib.util
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgroup.base.compiling.plain_python import plain, view
from streamgroup.base.compiling.plain_python_kinds import NotPlainError

_TOP = 1 << 63
WORDS = st.integers(0, 2 * _TOP - 1) | st.sampled_from([0, 1, _TOP - 1, _TOP, _TOP + 1, 2 * _TOP - 1])
HALVES = st.integers(0, (1 << 32) - 1) | st.sampled_from([0, 1, 1 << 31, (1 << 32) - 1])
# Sums and products of some of these do not leave the signed numbers: those do not wrap.
SIGNED = st.integers(-(1 << 12), 1 << 12) | st.sampled_from([-1, 0, 1])
# What the arrays of the same letter hold.
TYPES = {"w": np.uint64, "h": np.uint32, "i": np.int64, "f": np.float64}
_CONSTANTS = {
    "w": ["np.uint64(3)", "np.uint64(0xFFFF_FFFF_FFFF_FFFF)", "np.uint64(1 << 63)"],
    "h": ["np.uint32(5)"],
    "i": ["-1", "2", "7"],
    "f": ["0.5", "-3.0"],
}


def number(draw: random.Random, depth: int) -> tuple[str, bool]:
    """Write an expression, and say whether it may be a float (of which there are no bits)."""
    if depth == 0:
        letter = draw.choice("wwhiif")
        return draw.choice([f"{letter}[0]", f"{letter}[1]", *_CONSTANTS[letter]]), letter == "f"
    (one, first), (two, second) = number(draw, depth - 1), number(draw, draw.randrange(depth))
    kind = draw.randrange(9)
    if kind == 0 and not first:
        count = draw.choice(["0", "31", "np.uint64(1)", "np.uint64(63)"])
        return draw.choice([f"({one} >> {count})", f"(np.uint64({one}) << np.uint64(33))"]), False
    if kind == 1 and not (first or second):
        return f"({one} {draw.choice('&|^')} {two})", False
    if kind == 2:
        other = f"({two} + ({two} == 0))" if second or draw.randrange(2) else f"({two} | np.uint64(1))"
        return f"({one} {draw.choice(['//', '%'])} {other})", first or second
    if kind == 3:
        return f"{draw.choice(['min', 'max'])}({one}, {two})", first or second
    if kind == 4 and not first:
        # What is signed stays small: it does not wrap.
        one, shift = draw.choice([(f"np.int64({one})", 50), (f"np.int32({one})", 20), (f"np.int8({one})", 0)])
        return f"({one} >> {shift})", False
    if kind == 5 and not first:
        return f"{draw.choice(['np.uint64', 'np.uint32', 'np.uint8', '~', '-'])}({one})", False
    if kind == 6:
        return f"({one} if {two} {draw.choice(['<', '>=', '=='])} {one} else {two})", first or second
    if kind == 7:
        return f"np.float64({one})", True
    return f"({one} {draw.choice('+-*' if depth == 1 else '+-')} {two})", first or second


def made(folder: Path, seed: int, wanted: int) -> list[Any]:
    """Write functions that compare, divide and return what another computed; those that are not refused."""
    draw = random.Random(seed)
    lines = ["import numba", "import numpy as np", ""]
    for index in range(10 * wanted):
        one, two = number(draw, 2)[0], number(draw, draw.randrange(3))[0]
        lines += [
            "@numba.njit",
            f"def part_{index}(w, h, i, f):",
            f"    return {one}",
            "@numba.njit",
            f"def whole_{index}(w, h, i, f):",
            f"    some = part_{index}(w, h, i, f)",
            f"    return some < {two}, some == {two}, some / 3.0, {two} >= some, some",
        ]
    path = folder / f"made_{seed}.py"
    path.write_text("\n".join(lines) + "\n")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: list[Any] = []
    for index in range(10 * wanted):
        function = getattr(module, f"whole_{index}")
        with contextlib.suppress(NotPlainError):
            found.append((function, plain(function, *arrays([0, 0], [0, 0], [0, 0]))))
    assert len(found) >= wanted, "most are refused"
    return found[:wanted]


def arrays(words: list[int], halves: list[int], signed: list[int]) -> list[Any]:
    values = {"w": words, "h": halves, "i": signed, "f": [signed[0] / 4, -2.5]}
    return [np.array(values[letter], dtype=TYPES[letter]) for letter in TYPES]


def same(compiled: Any, rewritten: Any) -> None:
    """Compare results; a word that numba returns in one tuple is a Python int in both."""
    assert len(compiled) == len(rewritten)
    for one, other in zip(compiled, rewritten, strict=True):
        assert one == other or (one != one and other != other), (compiled, rewritten)


def test_what_is_not_refused_gives_what_compiled_code_gives(tmp_path: Path) -> None:
    pairs = made(tmp_path, seed=1, wanted=24)

    @settings(max_examples=60, deadline=None)
    @given(*(st.lists(each, min_size=2, max_size=2) for each in (WORDS, HALVES, SIGNED)))
    def agree(words: list[int], halves: list[int], signed: list[int]) -> None:
        given_arrays = arrays(words, halves, signed)
        for compiled, rewritten in pairs:
            try:
                found = rewritten(*map(view, given_arrays))
            except (OverflowError, ValueError, ZeroDivisionError):
                continue
            same(compiled(*given_arrays), found)

    agree()


def compared(w: Any) -> Any:
    """Compare a sum of elements, of which nothing says that they are words."""
    return w[0] + w[1] < w[0], w[0] - w[1] > w[0], (w[0] + w[1]) >> np.uint64(1), ~w[0] > w[1]


@given(WORDS, WORDS)
def test_elements_are_words_where_the_array_holds_words(one: int, two: int) -> None:
    top, array = 2 * _TOP, np.array([one, two], dtype=np.uint64)
    total = (one + two) % top
    assert plain(compared, array)(view(array)) == (
        total < one, (one - two) % top > one, total >> 1, top - 1 - one > two,
    )  # fmt: skip


def halved(w: Any) -> Any:
    """Divide a word by a signed number: numba takes the word for a signed one."""
    return w[0] // 2


def chosen(w: Any) -> Any:
    """Choose a word or a signed number: numba makes floats of them."""
    return min(w[0], 3)


def opposite(w: Any) -> Any:
    """Change the sign of an unsigned number of 32 bits."""
    return -w[0]


@pytest.mark.parametrize(("function", "kind"), [(halved, np.uint64), (chosen, np.uint64), (opposite, np.uint32)])
def test_what_numba_takes_for_something_else_is_refused(function: Callable[[Any], Any], kind: Any) -> None:
    plain(function, np.zeros(1, dtype=np.int64))
    with pytest.raises(NotPlainError):
        plain(function, np.zeros(1, dtype=kind))
