"""Averages over groups of runs: mean, confidence interval, least and largest."""

from collections.abc import Sequence
from functools import cache
from math import cos, fsum, pi, sin, sqrt, tan

import polars as pl

from streamgroup.metrics.metric_names import TEXTS

__all__ = ["SPREAD", "averaged", "t_quantile"]

# What stands beside the mean of a metric, by suffix.
SPREAD = ("_min", "_max", "_ci95")

Number = int | float

_NORMAL = 1.959963984540054
_MANY = 500


def averaged(frame: pl.DataFrame, by: Sequence[str], metrics: Sequence[str]) -> pl.DataFrame:
    """Return one row for each combination of the columns `by`, in their order, with the number of its `runs`.

    Each of the `metrics` becomes its mean over the runs that have it, `<metric>_min` and `<metric>_max`, and
    `<metric>_ci95`: half the width of Student's 95 % interval of the mean, t s / sqrt(k) with the deviation s of the k
    values and t for k - 1 degrees of freedom; null for fewer than two, and where all are equal: copies of one run, and
    what the seed does not change, say nothing of the error. A metric that is a word becomes all different ones of the
    group, in order, with commas between them. With a column `status` only those that are ok
    are `runs`; `failed` counts the others, and `error` is that of the first of them.
    """
    keys = list(dict.fromkeys(by))
    counts = [pl.len().cast(pl.Int64).alias("runs")]
    if "status" in frame.columns:
        ok = pl.col("status") == "ok"
        counts = [
            ok.sum().cast(pl.Int64).alias("runs"),
            (~ok).sum().cast(pl.Int64).alias("failed"),
            pl.col("error").drop_nulls().first(),
        ]
    chosen = list(dict.fromkeys(metrics))
    grouped = frame.group_by(keys, maintain_order=True).agg(*counts, *(pl.col(name).drop_nulls() for name in chosen))
    columns = {name: grouped[name] for name in grouped.columns if name not in chosen}
    for name in chosen:
        if name in TEXTS:
            words = [", ".join(sorted(set(values))) or None for values in grouped[name].to_list()]
            columns[name] = pl.Series(words, dtype=pl.String)
            continue
        columns.update(_spread(name, grouped[name].to_list(), frame.schema[name]))
    return pl.DataFrame(columns).sort(keys, maintain_order=True)


def _spread(name: str, groups: Sequence[Sequence[Number]], kind: pl.DataType) -> dict[str, pl.Series]:
    """Return the columns of a metric; sums are exact: neither the order of the runs nor threads change a digit."""
    spreads = [_of(values) for values in groups]
    kinds = (pl.Float64(), kind, kind, pl.Float64())
    return {
        f"{name}{suffix}": pl.Series([spread[place] for spread in spreads], dtype=kinds[place])
        for place, suffix in enumerate(("", *SPREAD))
    }


def _of(values: Sequence[Number]) -> tuple[float | None, Number | None, Number | None, float | None]:
    """Return mean, least, largest, and half the width of the interval."""
    if not values:
        return None, None, None, None
    least, largest = min(values), max(values)
    # Rounding must not bring a mean outside of what it is the mean of.
    mean = min(max(fsum(values) / len(values), float(least)), float(largest))
    if least == largest:
        return mean, least, largest, None
    deviation = sqrt(fsum((value - mean) ** 2 for value in values) / (len(values) - 1))
    return mean, least, largest, t_quantile(len(values) - 1) * deviation / sqrt(len(values))


@cache
def t_quantile(freedom: int) -> float:
    """Return the t that a value of Student's distribution is within, from -t to t, with probability 0.95.

    `freedom` are its degrees of freedom, 1 or more. Exact to rounding up to 500; beyond, to 1e-10, by the expansion of
    Cornish and Fisher (Abramowitz and Stegun, 26.7.5).
    """
    if freedom > _MANY:
        z, v = _NORMAL, freedom
        first, second = (z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96
        return z + first / v + second / v**2 + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * v**3)
    low, high = 0.0, pi / 2
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if _within(middle, freedom) < 0.95 else (low, middle)
    return tan(high) * sqrt(freedom)


def _within(angle: float, freedom: int) -> float:
    """Return the probability from -t to t = sqrt(freedom) tan(angle), as a finite sum (A. and S., 26.7.3, 26.7.4)."""
    odd = freedom % 2
    term = cos(angle) if odd else 1.0
    total = 0.0
    for k in range(1 + odd, freedom, 2):
        total += term
        term *= k / (k + 1) * cos(angle) ** 2
    return 2 / pi * (angle + sin(angle) * total) if odd else sin(angle) * total
