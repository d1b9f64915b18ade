"""The formulae of the metrics, on plain lists."""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import ceil, sqrt

__all__ = [
    "as_float",
    "imbalance",
    "mean",
    "mean_of_known",
    "nearest_rank",
    "peak_to_mean",
    "population_deviation",
    "ratio",
    "skew_score",
]


def as_float(number: Fraction | int | None, unit: int = 1) -> float | None:
    return None if number is None else float(Fraction(number) / unit)


def mean(numbers: Sequence[Fraction | int]) -> Fraction:
    return Fraction(sum(numbers)) / len(numbers)


def mean_of_known(numbers: Iterable[Fraction | int | None]) -> Fraction | None:
    """The mean of those that exist; None without any."""
    known = [x for x in numbers if x is not None]
    return mean(known) if known else None


def ratio(a: Fraction | int | None, b: Fraction | int | None) -> Fraction | None:
    """a / b; None where one of them does not exist, or b is 0."""
    return Fraction(a) / Fraction(b) if a is not None and b else None


def imbalance(loads: Sequence[int], total: int | None = None) -> Fraction | None:
    """max_w L_w - mean_w L_w where L_w is the share that worker w has of the total; no share of nothing."""
    total = sum(loads) if total is None else total
    return None if total == 0 else (max(loads) - mean(loads)) / total


def peak_to_mean(loads: Sequence[int]) -> Fraction | None:
    return ratio(max(loads), mean(loads))


def population_deviation(numbers: Sequence[Fraction | int]) -> float:
    centre = mean(numbers)
    return sqrt(mean([(x - centre) ** 2 for x in numbers]))


def skew_score(loads: Sequence[int]) -> float:
    """Flink's: mean absolute deviation over mean, in percent, at most 100; 0 when nothing came."""
    centre = mean(loads)
    if centre == 0:
        return 0.0
    deviation = mean([abs(x - centre) for x in loads])
    return float(min(Fraction(100), 100 * deviation / centre))


def nearest_rank(numbers: Iterable[int], quantile: Fraction) -> int:
    ordered = sorted(numbers)
    return ordered[max(ceil(quantile * len(ordered)), 1) - 1]
