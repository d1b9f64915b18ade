"""Where a key goes: every use of a key's hash, vectorised over distinct keys (never over tuples).

`hash_lo` and `hash_hi` are h1 and h2 of MurmurHash3 x64-128 of the key's bytes, stored as int64. All arithmetic is
modulo 2^64. Each purpose has a constant of its own, so that nothing correlates with anything else.
"""

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "candidate",
    "candidate_words",
    "candidates",
    "mix64",
    "node_positions",
    "place",
    "place_by_remainder",
    "ring_positions",
    "sampled",
    "sketch_columns",
    "source_of",
]

U64 = NDArray[np.uint64]

_SAMPLE = np.uint64(0xA0761D6478BD642F)
_SOURCE = np.uint64(0xE7037ED1A0B428DB)
_RING = np.uint64(0x8EBC6AF09C88C6E3)
_NODE = np.uint64(0x589965CC75374CC3)


def mix64(x: U64) -> U64:
    """Scramble 64-bit words: the finaliser of splitmix64 (Steele, Lea, Flood, OOPSLA 2014)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def _words(values: NDArray[np.int64]) -> U64:
    return np.atleast_1d(np.ascontiguousarray(values, dtype=np.int64)).view(np.uint64)


def _scalar(value: int) -> U64:
    """Wrap a Python int modulo 2^64 as an array, on which numpy's arithmetic wraps without a warning."""
    return np.array([value & 0xFFFF_FFFF_FFFF_FFFF], dtype=np.uint64)


def place(mixed: U64, n: int) -> U64:
    """Map the upper 32 bits of a word to 0..n-1 by multiplication (Lemire 2016), for n up to 2^32."""
    return ((mixed >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32)


def place_by_remainder(mixed: U64, n: int) -> U64:
    """Map the upper 32 bits of a word to 0..n-1 by their remainder modulo n: HASH(k) mod n of the papers."""
    return (mixed >> np.uint64(32)) % np.uint64(n)


def candidate(
    hash_lo: NDArray[np.int64], hash_hi: NDArray[np.int64], j: int, n: int, hash_seed: int = 0, *, modulo: bool = False
) -> NDArray[np.int32]:
    """Give the j-th candidate (j = 1, 2, ...) of each key among n workers: F_j of the trace format.

    With `modulo` the place is a remainder: as even, but another place for nearly every key when n changes. Candidates
    of a key may coincide (F_1 = F_2 with probability 1/n), as in the papers.
    """
    seed = mix64(_scalar(hash_seed)) if hash_seed else _scalar(0)
    mixed = mix64(_words(hash_lo) + _scalar(j) * (_words(hash_hi) | np.uint64(1)) + seed)
    return (place_by_remainder(mixed, n) if modulo else place(mixed, n)).astype(np.int32)


def candidates(
    hash_lo: NDArray[np.int64],
    hash_hi: NDArray[np.int64],
    d: int,
    live: NDArray[np.int64],
    hash_seed: int = 0,
    *,
    modulo: bool = False,
) -> NDArray[np.uint16]:
    """Give uint16[keys, d]: the ids, from `live`, of each key's candidates 1 to d among as many workers."""
    found = np.empty((len(hash_lo), d), dtype=np.uint16)
    ids = live.astype(np.uint16)
    for j in range(1, d + 1):
        found[:, j - 1] = ids[candidate(hash_lo, hash_hi, j, len(live), hash_seed, modulo=modulo)]
    return found


def candidate_words(hash_lo: NDArray[np.int64], hash_hi: NDArray[np.int64], hash_seed: int = 0) -> U64:
    """Give uint64[keys, 2], from which compiled code makes the candidates of a key: h1 + seed, and the step h2 | 1."""
    seed = mix64(_scalar(hash_seed)) if hash_seed else _scalar(0)
    return np.ascontiguousarray(np.stack([_words(hash_lo) + seed, _words(hash_hi) | np.uint64(1)], axis=1))


def source_of(hash_lo: NDArray[np.int64], sources: int) -> NDArray[np.int32]:
    """Give the source that a key's tuples come from under `--source-assignment key`."""
    return place(mix64(_words(hash_lo) ^ _SOURCE), sources).astype(np.int32)


def sampled(hash_hi: NDArray[np.int64], share: float) -> NDArray[np.bool_]:
    """Tell which keys a sample of `share` (0..1) of the keys keeps: all tuples of a key or none."""
    return (mix64(_words(hash_hi) ^ _SAMPLE) >> np.uint64(11)).astype(np.float64) < share * 2.0**53


def ring_positions(hash_lo: NDArray[np.int64]) -> NDArray[np.int64]:
    """Give each key's position on the consistent-hash ring, 0..2^32-1."""
    return (mix64(_words(hash_lo) ^ _RING) >> np.uint64(32)).astype(np.int64)


def node_positions(worker: NDArray[np.int64], node: NDArray[np.int64]) -> NDArray[np.int64]:
    """Give the ring positions of virtual nodes, each of a worker (below 2^32): the two arrays are broadcast."""
    words = (_words(worker) << np.uint64(32)) | _words(node)
    return (mix64(words ^ _NODE) >> np.uint64(32)).astype(np.int64)


def sketch_columns(hash_lo: NDArray[np.int64], row: int, columns: int) -> NDArray[np.int32]:
    """Give each key's column in row `row` (0, 1, ...) of a sketch."""
    return place(mix64(_words(hash_lo) ^ mix64(_scalar(row + 1))), columns).astype(np.int32)
