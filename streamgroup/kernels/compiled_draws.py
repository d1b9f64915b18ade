"""Draws in compiled code, and the scrambling of words that they and the places of keys are made of."""

from typing import Any

import numpy as np
from numba import njit

__all__ = ["candidate_place", "draw_below", "mixed", "place"]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
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


@njit(forceinline=True)
def draw_below(stream: Any, index: Any, n: Any) -> Any:
    """Draw an integer in 0..n-1: the word at place `index` of a stream of draws (`draws.words`), scaled to n < 2^32."""
    return np.int64(place(stream + np.uint64(index + 1) * _GOLDEN, n))
