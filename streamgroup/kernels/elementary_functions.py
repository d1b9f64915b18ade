"""Logarithm, exponential and inverse normal distribution, with the same bits on every machine.

The library's functions differ in their last bit between processors. These use additions, multiplications, divisions,
square roots and exact conversions only, which IEEE 754 defines to the bit.
"""

import numpy as np
from numpy.typing import NDArray

__all__ = ["exp", "inverse_normal", "log", "log_one_plus"]

F64 = NDArray[np.float64]

_LN2 = 0.6931471805599453
# The same in two parts: products of the first with a small whole number are exact (Cody and Waite).
_LN2_HIGH = 6.93147180369123816490e-01
_LN2_LOW = 1.90821492927058770002e-10
_HALF_ROOT = 0.7071067811865476


def _two_artanh(ratio: F64) -> F64:
    """Give log((1 + ratio) / (1 - ratio)) for |ratio| <= 0.172, as a series of which 14 terms suffice."""
    square = ratio * ratio
    total = np.full_like(ratio, 1.0 / 27.0)
    for odd in range(25, 0, -2):
        total = total * square + 1.0 / odd
    return 2.0 * ratio * total


def log(x: F64) -> F64:
    """Take the natural logarithm of x > 0 (error below 1e-15 relative to the larger of 1 and |log x|).

    x = m 2^e with m in [sqrt(1/2), sqrt(2)), and log m = 2 artanh((m - 1) / (m + 1)).
    """
    mantissa, exponent = np.frexp(x)
    small = mantissa < _HALF_ROOT
    mantissa = np.where(small, mantissa * 2.0, mantissa)
    exponent = exponent - small
    return _two_artanh((mantissa - 1.0) / (mantissa + 1.0)) + exponent * _LN2


def log_one_plus(x: float) -> float:
    """Take log(1 + x) for x >= 0; small x keep their precision."""
    if x <= 0.25:
        return float(_two_artanh(np.array([x / (2.0 + x)]))[0])
    return float(log(np.array([1.0 + x]))[0])


def exp(x: F64) -> F64:
    """Raise e to the power x, |x| <= 700 (error below 1 unit of the last place).

    x = k log 2 + r with |r| <= log(2) / 2, so e^x = 2^k (1 + r + r^2 P(r)) with Taylor's P, up to r^14 / 14!.
    """
    k = np.rint(x * (1.0 / _LN2))
    rest = (x - k * _LN2_HIGH) - k * _LN2_LOW
    total = np.full_like(rest, _TAYLOR[0])
    for coefficient in _TAYLOR[1:]:
        total = total * rest + coefficient
    return np.ldexp(1.0 + (rest + rest * rest * total), k.astype(np.int32))


def _taylor() -> list[float]:
    factorial, terms = 1, []
    for n in range(1, 15):
        factorial *= n
        if n >= 2:
            terms.append(1.0 / factorial)
    return terms[::-1]


_TAYLOR = _taylor()


# Algorithm AS 241, PPND16 (Wichura, Applied Statistics 37, 1988): numerator and denominator of each range, from the
# highest power down.
_CENTRE = (
    (2509.0809287301226727, 33430.575583588128105, 67265.770927008700853, 45921.953931549871457,
     13731.693765509461125, 1971.5909503065514427, 133.14166789178437745, 3.387132872796366608),
    (5226.495278852545925, 28729.085735721942674, 39307.89580009271061, 21213.794301586595867,
     5394.1960214247511077, 687.1870074920579083, 42.313330701600911252, 1.0),
)  # fmt: skip
_MIDDLE = (
    (7.7454501427834140764e-4, 0.0227238449892691845833, 0.24178072517745061177, 1.27045825245236838258,
     3.64784832476320460504, 5.7694972214606914055, 4.6303378461565452959, 1.42343711074968357734),
    (1.05075007164441684324e-9, 5.475938084995344946e-4, 0.0151986665636164571966, 0.14810397642748007459,
     0.68976733498510000455, 1.6763848301838038494, 2.05319162663775882187, 1.0),
)  # fmt: skip
_TAIL = (
    (2.01033439929228813265e-7, 2.71155556874348757815e-5, 0.0012426609473880784386, 0.026532189526576123093,
     0.29656057182850489123, 1.7848265399172913358, 5.4637849111641143699, 6.6579046435011037772),
    (2.04426310338993978564e-15, 1.4215117583164458887e-7, 1.8463183175100546818e-5, 7.868691311456132591e-4,
     0.0148753612908506148525, 0.13692988092273580531, 0.59983220655588793769, 1.0),
)  # fmt: skip


def _ratio(parts: tuple[tuple[float, ...], tuple[float, ...]], x: F64) -> F64:
    above, below = (np.full_like(x, part[0]) for part in parts)
    for up, down in zip(parts[0][1:], parts[1][1:], strict=True):
        above = above * x + up
        below = below * x + down
    return above / below


def inverse_normal(centred: F64) -> F64:
    """Give the standard normal quantile of 1/2 + `centred`, |centred| < 1/2 (relative error about 1e-16, AS 241).

    The probability comes less one half, because near 1 a float64 cannot hold it.
    """
    result = np.empty_like(centred)
    central = np.abs(centred) <= 0.425
    q = centred[central]
    result[central] = q * _ratio(_CENTRE, 0.180625 - q * q)
    q = centred[~central]
    r = np.sqrt(-log(0.5 - np.abs(q)))
    near = r <= 5.0
    outer = np.empty_like(r)
    outer[near] = _ratio(_MIDDLE, r[near] - 1.6)
    outer[~near] = _ratio(_TAIL, r[~near] - 5.0)
    result[~central] = np.where(q < 0.0, -outer, outer)
    return result
