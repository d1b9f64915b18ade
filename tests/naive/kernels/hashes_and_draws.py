"""Where a key goes, and draws by counter, with Python integers."""

import hashlib
import math
from decimal import Decimal, localcontext

import mmh3

__all__ = [
    "below",
    "candidate",
    "exp",
    "exponential",
    "hash_key",
    "inverse_normal",
    "log",
    "mix64",
    "normal",
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


def candidate(key: bytes | None, j: int, n: int, hash_seed: int = 0, modulo: bool = False) -> int:
    """F_j(key) among n workers, j = 1, 2, ...: a hash of 32 bits, scaled to n or modulo n."""
    h1, h2 = hash_key(key)
    moved = mix64(hash_seed) if hash_seed != 0 else 0
    hashed = mix64(h1 + j * (h2 | 1) + moved) >> 32
    return hashed % n if modulo else hashed * n >> 32


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


def exp(x: float) -> float:
    """e to the x: forty digits, rounded once."""
    with localcontext() as context:
        context.prec = 40
        return float(Decimal(x).exp())


# Wichura, Algorithm AS 241 (1988), PPND16: numerators and denominators from the highest power down
CENTRE = (
    (
        2509.0809287301226727,
        33430.575583588128105,
        67265.770927008700853,
        45921.953931549871457,
        13731.693765509461125,
        1971.5909503065514427,
        133.14166789178437745,
        3.387132872796366608,
    ),
    (
        5226.495278852854561,
        28729.085735721942674,
        39307.89580009271061,
        21213.794301586595867,
        5394.1960214247511077,
        687.1870074920579083,
        42.313330701600911252,
        1.0,
    ),
)
SHOULDER = (
    (
        7.7454501427834140764e-4,
        0.0227238449892691845833,
        0.24178072517745061177,
        1.27045825245236838258,
        3.64784832476320460504,
        5.7694972214606914055,
        4.6303378461565452959,
        1.42343711074968357734,
    ),
    (
        1.05075007164441684324e-9,
        5.475938084995344946e-4,
        0.0151986665636164571966,
        0.14810397642748007459,
        0.68976733498510000455,
        1.6763848301838038494,
        2.05319162663775882187,
        1.0,
    ),
)
TAIL = (
    (
        2.01033439929228813265e-7,
        2.71155556874348757815e-5,
        0.0012426609473880784386,
        0.026532189526576123093,
        0.29656057182850489123,
        1.7848265399172913358,
        5.4637849111641143699,
        6.6579046435011037772,
    ),
    (
        2.04426310338993978564e-15,
        1.4215117583164458887e-7,
        1.8463183175100546818e-5,
        7.868691311456132591e-4,
        0.0148753612908506148525,
        0.13692988092273580531,
        0.59983220655588793769,
        1.0,
    ),
)


def quotient(coefficients: tuple[tuple[float, ...], tuple[float, ...]], r: float) -> float:
    values = []
    for polynomial in coefficients:
        value = 0.0
        for coefficient in polynomial:
            value = value * r + coefficient
        values.append(value)
    return values[0] / values[1]


def inverse_normal(p: float) -> float:
    """The number that a standard normal variable is below with probability p."""
    q = p - 0.5
    if abs(q) <= 0.425:
        return q * quotient(CENTRE, 0.180625 - q * q)
    r = math.sqrt(-log(p if q < 0 else 1.0 - p))
    value = quotient(SHOULDER, r - 1.6) if r <= 5.0 else quotient(TAIL, r - 5.0)
    return -value if q < 0 else value


def normal(seed: int, purpose: str, index: int) -> float:
    """A draw with mean 0 and variance 1."""
    return inverse_normal(((word(seed, purpose, index) >> 11) + 0.5) * 2.0**-53)
