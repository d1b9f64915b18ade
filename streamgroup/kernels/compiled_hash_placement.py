"""`hash_placement` in compiled code: words are scrambled, and mapped to places."""

from typing import Any

import numpy as np

from streamgroup.kernels.compiling.kernel_decorators import njit

__all__ = ["candidate_place", "mixed", "place"]

_M1 = np.uint64(0xBF58476D1CE4E5B9)
_M2 = np.uint64(0x94D049BB133111EB)
_30, _27, _31, _32 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(32)


@njit(forceinline=True)
def mixed(word: Any) -> Any:
    """Scramble a 64-bit word: `hash_placement.mix64`, compiled."""
    word = (word ^ (word >> _30)) * _M1
    word = (word ^ (word >> _27)) * _M2
    return word ^ (word >> _31)


@njit(forceinline=True)
def place(word: Any, n: Any) -> Any:
    """Scramble a word and map it to 0..n-1, n < 2^32: `hash_placement.place` of `hash_placement.mix64`, compiled."""
    return ((mixed(word) >> _32) * np.uint64(n)) >> _32


@njit(forceinline=True)
def candidate_place(word: Any, n: Any, modulo: Any) -> Any:
    """Scramble a word and map it to 0..n-1: `place`, or with `modulo` `hash_placement.place_by_remainder`, compiled."""
    if modulo:
        return (mixed(word) >> _32) % np.uint64(n)
    return place(word, n)
