"""How many choices the hot keys need: FINDOPTIMALCHOICES of D-Choices (001, section IV-A, equations 3, 9 and 10)."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgroup.kernels.compiling.call_kernel import call
from streamgroup.kernels.compiling.kernel_decorators import njit

__all__ = ["Powers", "Variant", "choices_needed", "due_after", "has_room", "make_powers", "power"]

F64 = NDArray[np.float64]
_MOST = 1 << 20
# By default d is computed anew once the tuples have grown by 1/64, and after 1000 in any case.
_GROWTH, _MOST_BETWEEN = 64, 1000


@njit
def power(x: Any, k: Any) -> Any:
    """Raise x to the power k >= 0 by squaring, low bit first: the same bits everywhere, unlike a library's `pow`."""
    result = 1.0
    while k > 0:
        if k & 1:
            result *= x
        x *= x
        k >>= 1
    return result


class Powers(NamedTuple):
    """What the search looks up for n workers, q = (n - 1)/n.

    `left` float64[m] are q^k, `first` float64[n + 1] are (1 - q^d)^d.
    """

    left: F64
    first: F64


@njit
def _fill(left: Any, first: Any, q: Any) -> None:
    for k in range(left.shape[0]):
        left[k] = power(q, k)
    for d in range(first.shape[0]):
        first[d] = power(1.0 - power(q, d), d)


def make_powers(workers: int) -> Powers:
    """Compute the powers for n workers; past the end of `left` they are computed when they are needed."""
    powers = Powers(np.empty(min(64 * workers, _MOST) + 1), np.empty(workers + 1))
    call(_fill, powers.left, powers.first, (workers - 1) / workers)
    return powers


@njit(forceinline=True)
def _left(powers: Any, q: Any, k: Any) -> Any:
    return powers.left[k] if k < powers.left.shape[0] else power(q, k)


@njit(forceinline=True)
def has_room(x: Any, load: Any, n: Any, eps: Any, plain: Any) -> Any:
    """Return whether the share x of n workers gets at most its share of the tuples and eps (001, equation 3)."""
    return load <= ((x * n) * (1.0 / n) + eps if plain else (x * n) * (1.0 / n + eps))


class Variant(NamedTuple):
    """Which of the published variants to compute: `every` prefix of hot keys is constrained, or only the first and all.

    `rounded` takes the start of the authors' code, `plain` its slack (see `choices_needed`).
    """

    every: bool
    rounded: bool
    plain: bool


@njit
def choices_needed(estimates: Any, hot: Any, total: Any, eps: Any, powers: Any, variant: Any) -> Any:
    """Return the least d for which the expected imbalance stays under eps; n, the workers of `powers`, means all.

    `estimates` int64, of which the first `hot` >= 1 are the estimated counts of the hot keys, largest first, of
    `total` tuples. For each prefix of h hot keys (see `Variant`) the tuples that go to the
    b = n - n q^(h d) workers these keys can reach must not be more than b (1/n + eps) of all. Floats are computed in
    one order, the one written here, since the result hangs on their last bit.

    The search goes up from p_1 n, since no worker may get more than its share of the hottest key alone, and from 2.
    `rounded` takes the authors' code's start, p_1 n to the nearest integer and at least 1, `plain` its slack, eps
    instead of b eps.
    """
    every, rounded, plain = variant.every, variant.rounded, variant.plain
    workers = powers.first.shape[0] - 1
    n = np.float64(workers)
    m = np.float64(total)
    q = (n - 1.0) / n
    in_all = np.int64(0)
    for place in range(hot):
        in_all += np.int64(estimates[place])
    top = np.int64(estimates[0])
    p_1 = np.float64(top) / m
    tail = np.float64(total - min(in_all, total)) / m
    start = np.floor(p_1 * n + 0.5) if rounded else np.ceil(p_1 * n - 1e-9)
    d: Any = max(np.int64(1 if rounded else 2), np.int64(start))
    while d < workers:
        fits = True
        before = top
        h = 1
        while True:
            x = 1.0 - _left(powers, q, h * d)
            inside = min(1.0, np.float64(before) / m)
            outside = np.float64(in_all - before) / m
            reach = powers.first[d] if h == 1 else power(x, d)
            if not has_room(x, inside + reach * outside + (x * x) * tail, n, eps, plain):
                fits = False
                break
            if h >= hot:
                break
            if every:
                before += np.int64(estimates[h])
                h += 1
            else:
                before = in_all
                h = hot
        if fits:
            return d
        d += 1
    return np.int64(workers)


@njit(forceinline=True)
def due_after(total: Any, every: Any) -> Any:
    """Return at how many tuples d is due again if it was computed at `total` >= 1: the next multiple of `every`.

    With `every` 0, when the tuples have grown by 1/64, at most by 1000.
    """
    if every > 0:
        return (total // every + 1) * every
    return total + min((total + _GROWTH - 1) // _GROWTH, _MOST_BETWEEN)
