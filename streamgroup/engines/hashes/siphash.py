"""SipHash as CPython hashes the bytes of a string with it, and the keys that `PYTHONHASHSEED` gives it.

SipHash-2-4 (Aumasson, Bernstein, 2012) up to CPython 3.10, SipHash-1-3 from 3.11 on.
"""

import numpy as np

from streamgroup.base.errors import UsageError
from streamgroup.kernels.compiling.kernel_decorators import njit

__all__ = ["MOST_SEED", "ROUNDS", "add_word", "begin", "end", "hash_keys", "siphash"]

# The largest PYTHONHASHSEED.
MOST_SEED = (1 << 32) - 1
# Rounds a word and at the end, by the version of CPython.
ROUNDS = {"3.10": (2, 4), "3.11": (1, 3)}

_MASK = (1 << 64) - 1
_CONSTANTS = (0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573)


def hash_keys(seed: int) -> tuple[int, int]:
    """Return the two 64-bit keys of a process that was started with PYTHONHASHSEED=`seed`, 0 to 2^32 - 1.

    Seed 0 stands for zeros; any other starts a linear congruential generator that makes the bytes.
    """
    if not 0 <= seed <= MOST_SEED:
        raise UsageError(f"seed={seed}: PYTHONHASHSEED is 0 to {MOST_SEED}")
    if seed == 0:
        return 0, 0
    secret, state = bytearray(), seed
    for _ in range(16):
        state = (state * 214013 + 2531011) & 0xFFFF_FFFF
        secret.append(state >> 16 & 255)
    return int.from_bytes(secret[:8], "little"), int.from_bytes(secret[8:], "little")


def _rotated(word: int, by: int) -> int:
    return (word << by | word >> (64 - by)) & _MASK


def _mixed(state: list[int], rounds: int) -> list[int]:
    a, b, c, d = state
    for _ in range(rounds):
        a, c = (a + b) & _MASK, (c + d) & _MASK
        b, d = _rotated(b, 13) ^ a, _rotated(d, 16) ^ c
        a = _rotated(a, 32)
        c, a = (c + b) & _MASK, (a + d) & _MASK
        b, d = _rotated(b, 17) ^ c, _rotated(d, 21) ^ a
        c = _rotated(c, 32)
    return [a, b, c, d]


def siphash(data: bytes, keys: tuple[int, int], rounds: tuple[int, int]) -> int:
    """Hash bytes to 0..2^64-1; `rounds` are those for each word and those at the end."""
    each, last = rounds
    state = [constant ^ keys[place % 2] for place, constant in enumerate(_CONSTANTS)]
    padded = data + bytes(7 - len(data) % 8) + bytes([len(data) % 256])
    for at in range(0, len(padded), 8):
        word = int.from_bytes(padded[at : at + 8], "little")
        state[3] ^= word
        state = _mixed(state, each)
        state[0] ^= word
    state[2] ^= 255
    a, b, c, d = _mixed(state, last)
    return a ^ b ^ c ^ d


@njit(forceinline=True)
def _rotate(word: np.uint64, by: int) -> np.uint64:
    return (word << np.uint64(by)) | (word >> np.uint64(64 - by))


@njit(forceinline=True)
def _mix(
    a: np.uint64, b: np.uint64, c: np.uint64, d: np.uint64, rounds: int
) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64]:
    for _ in range(rounds):
        a, c = a + b, c + d
        b, d = _rotate(b, 13) ^ a, _rotate(d, 16) ^ c
        a = _rotate(a, 32)
        c, a = c + b, a + d
        b, d = _rotate(b, 17) ^ c, _rotate(d, 21) ^ a
        c = _rotate(c, 32)
    return a, b, c, d


@njit(forceinline=True)
def begin(low: np.uint64, high: np.uint64) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64]:
    """Return the state that the two keys start with."""
    return (
        np.uint64(0x736F6D6570736575) ^ low,
        np.uint64(0x646F72616E646F6D) ^ high,
        np.uint64(0x6C7967656E657261) ^ low,
        np.uint64(0x7465646279746573) ^ high,
    )


@njit(forceinline=True)
def add_word(
    state: tuple[np.uint64, np.uint64, np.uint64, np.uint64], word: np.uint64, rounds: int
) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64]:
    """Take the next eight bytes, the lowest first."""
    a, b, c, d = _mix(state[0], state[1], state[2], state[3] ^ word, rounds)
    return a ^ word, b, c, d


@njit(forceinline=True)
def end(state: tuple[np.uint64, np.uint64, np.uint64, np.uint64], word: np.uint64, each: int, last: int) -> np.uint64:
    """Take the last word (up to seven bytes, and the length in the highest), and give the hash."""
    state = add_word(state, word, each)
    a, b, c, d = _mix(state[0], state[1], state[2] ^ np.uint64(255), state[3], last)
    return a ^ b ^ c ^ d
