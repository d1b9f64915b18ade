"""Service time: what a tuple costs on a worker, rounded to whole nanoseconds once (SIMULATION: worker)."""

from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgroup.base.errors import UsageError
from streamgroup.base.units import parse_number, round_half_even

__all__ = ["MAX_SERVICE_NS", "ConstantCost", "TracedCost", "capacity", "constant_cost", "parse_slowdown"]

MAX_SERVICE_NS = 1 << 53


class ConstantCost(NamedTuple):
    """Every tuple has the same base cost, so a worker's service time is a number: `service_ns` int64[n]."""

    service_ns: NDArray[np.int64]

    def service(self, worker: int, key: int, cost: float, seq: int, start: int) -> int:
        """Give the service time on a worker; the tuple's own cost does not matter."""
        return self.service_ns[worker]


class TracedCost(NamedTuple):
    """Each tuple brings its base cost in ns; a worker multiplies it by its `slowdown` (float64[n])."""

    slowdown: NDArray[np.float64]

    def service(self, worker: int, key: int, cost: float, seq: int, start: int) -> int:
        """Give cost x slowdown in whole ns, halves to even."""
        return np.int64(np.rint(np.float64(cost) * self.slowdown[worker]))  # type: ignore[return-value]


def constant_cost(cost_ns: int, slowdown: list[Fraction]) -> ConstantCost:
    """Round the one base cost for each worker's slowdown."""
    return ConstantCost(np.array([round_half_even(cost_ns * factor) for factor in slowdown], dtype=np.int64))


def parse_slowdown(text: str, workers: int) -> list[Fraction]:
    """Read `1,1,1,2` (repeated to n workers) or `half:2` (the floor(n/2) highest ids take that much longer)."""
    if text.startswith("half:"):
        factors = [Fraction(1)] * (workers - workers // 2) + [_factor(text[5:])] * (workers // 2)
    else:
        given = [_factor(piece) for piece in text.split(",")]
        factors = [given[worker % len(given)] for worker in range(workers)]
    return factors


def _factor(text: str) -> Fraction:
    value = parse_number(text, "--slowdown")
    if not Fraction(1, 10**6) <= value <= 10**6:
        raise UsageError(
            f"--slowdown: {text} is not a factor between 0.000001 and 1000000",
            "1 is the normal speed, 2 half of it",
        )
    return value


def capacity(mean_cost_ns: Fraction, slowdown: list[Fraction]) -> Fraction:
    """Give what all workers together can serve, in tuples per ns: sum of 1/slowdown over the mean base cost."""
    return sum((1 / factor for factor in slowdown), Fraction(0)) / mean_cost_ns
