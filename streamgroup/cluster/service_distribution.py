"""The random factor of a tuple's cost: deterministic, exponential or lognormal, with mean 1 (SIMULATION: worker)."""

from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from streamgroup.base.errors import UsageError
from streamgroup.base.numbers_and_durations import parse_duration_ns, parse_number
from streamgroup.base.spelling_hint import suggest
from streamgroup.kernels import elementary_functions, random_draws

__all__ = ["Distribution", "factors", "log_variance", "parse_cv", "parse_distribution", "parse_timed_service"]

_KINDS = ("deterministic", "exponential", "lognormal")
_MOST_CV = 100
# What a service may last (see `service_time`).
_MAX_NS = 1 << 53


@dataclass(frozen=True)
class Distribution:
    """How cost factors are drawn; `variance` is that of the logarithm (lognormal only): ln(1 + CV^2)."""

    kind: Literal["exponential", "lognormal"]
    variance: float


def parse_distribution(text: str | None, what: str = "--service-distribution") -> Distribution | None:
    """Read `deterministic` (or nothing: no factor, None), `exponential` or `lognormal:CV`, CV up to 100.

    `what` names the option in errors.
    """
    if text is None:
        return None
    name, colon, value = (piece.strip() for piece in text.partition(":"))
    if name not in _KINDS:
        raise UsageError(f"{what}: there is no kind {name!r}", suggest(name, _KINDS))
    if name == "lognormal":
        if not value:
            raise UsageError(f"{what} lognormal needs a coefficient of variation", "write lognormal:0.5")
        return Distribution("lognormal", log_variance(parse_cv(value, what)))
    if colon:
        raise UsageError(f"{what} {name} takes no value", "deterministic, exponential or lognormal:CV")
    return Distribution("exponential", 0.0) if name == "exponential" else None


def parse_timed_service(text: str, what: str) -> tuple[int, Distribution | None]:
    """Read `20us`, `20us:exponential` or `20us:lognormal:0.5`: the mean in ns, and the random factor."""
    time, colon, kind = text.partition(":")
    base = parse_duration_ns(time, what)
    if base > _MAX_NS:
        raise UsageError(f"{what} {text}: a service would last over 2^53 ns (104 days)")
    return base, parse_distribution(kind if colon else None, what)


def parse_cv(text: str, what: str) -> Fraction:
    """Read a coefficient of variation: standard deviation over mean, 0 to 100."""
    value = parse_number(text, what)
    if not 0 <= value <= _MOST_CV:
        raise UsageError(f"{what}: the coefficient of variation {text} is not between 0 and {_MOST_CV}")
    return value


def log_variance(cv: Fraction) -> float:
    """Return the variance of a lognormal variable's logarithm: ln(1 + CV^2)."""
    return elementary_functions.log_one_plus(float(cv * cv))


def factors(
    distribution: Distribution, seed: int, index: NDArray[np.int64], purpose: str = "service"
) -> NDArray[np.float64]:
    """Draw the factor of each tuple by its place in the stream, the same for every grouping: float64, mean 1.

    Each `purpose` has draws of its own. Lognormal: exp(sigma N - sigma^2 / 2) with N standard normal.
    """
    if distribution.kind == "exponential":
        return random_draws.exponential(seed, purpose, index)
    normal = random_draws.normal(seed, purpose, index)
    return elementary_functions.exp(sqrt(distribution.variance) * normal - distribution.variance / 2.0)
