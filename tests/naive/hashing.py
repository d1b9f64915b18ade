"""Where a key goes, and draws by counter, with Python integers."""

import hashlib
import math

import mmh3

__all__ = [
    "below",
    "candidate",
    "exponential",
    "hash_key",
    "log",
    "mix64",
    "source_of",
    "stream",
    "uniform",
    "word",
]

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15


def mix64(z: int) -> int:
    """The finaliser of splitmix64."""
    z &= MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def hash_key(key: bytes | None) -> tuple[int, int]:
    """h1 and h2, unsigned. The null key is no bytes with seed 1."""
    if key is None:
        return mmh3.hash64(b"", 1, x64arch=True, signed=False)
    return mmh3.hash64(key, 0, x64arch=True, signed=False)


def candidate(key: bytes | None, j: int, n: int, hash_seed: int = 0) -> int:
    """F_j(key) among n workers, j = 1, 2, ..."""
    h1, h2 = hash_key(key)
    moved = mix64(hash_seed) if hash_seed != 0 else 0
    return ((mix64((h1 + j * (h2 | 1) + moved) & MASK) >> 32) * n) >> 32


def source_of(key: bytes | None, sources: int) -> int:
    """The source of a key under `--source-assignment key`."""
    h1, _ = hash_key(key)
    return ((mix64(h1 ^ 0xE7037ED1A0B428DB) >> 32) * sources) >> 32


def stream(seed: int, purpose: str) -> int:
    """The start of the sequence that belongs to (seed, purpose)."""
    return int.from_bytes(hashlib.sha256(f"{seed}\0{purpose}".encode()).digest()[:8], "little")


def word(seed: int, purpose: str, index: int) -> int:
    """The 64 random bits of (seed, purpose, index)."""
    return mix64((stream(seed, purpose) + (index + 1) * GOLDEN) & MASK)


def uniform(seed: int, purpose: str, index: int) -> float:
    """A multiple of 2^-53 in [0, 1)."""
    return (word(seed, purpose, index) >> 11) * 2.0**-53


def below(seed: int, purpose: str, index: int, n: int) -> int:
    """An integer in 0..n-1."""
    return ((word(seed, purpose, index) >> 32) * n) >> 32


def log(x: float) -> float:
    """The natural logarithm by a fixed series, so that it is the same on every machine."""
    m, e = math.frexp(x)
    if m < math.sqrt(0.5):
        m, e = m * 2.0, e - 1
    ratio = (m - 1.0) / (m + 1.0)
    square = ratio * ratio
    total = 1.0 / 27.0
    for odd in range(25, 0, -2):
        total = total * square + 1.0 / odd
    return 2.0 * ratio * total + e * 0.6931471805599453


def exponential(seed: int, purpose: str, index: int) -> float:
    """An exponential draw with mean 1."""
    return -log(1.0 - uniform(seed, purpose, index))
