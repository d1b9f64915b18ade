"""Service time: what a tuple costs on a worker, rounded to whole nanoseconds once (SIMULATION: worker).

The parts are NamedTuples of arrays and numbers whose method `service(worker, key, cost, seq, start)` a compiler can
read; called as plain Python it gives the same. `cost` is the tuple's base cost in ns (int64, or float64 where a random
factor is in it), and 0 where all tuples cost the same; `start` is when the service starts.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgroup.cluster.worker_speeds import Speeds
from streamgroup.kernels.binary_search import phase_of

__all__ = [
    "MAX_SERVICE_NS",
    "ConstantCost",
    "KeyWorkerCost",
    "TracedCost",
    "VaryingCost",
    "capacity",
    "make_service",
]

MAX_SERVICE_NS = 1 << 53


class ConstantCost(NamedTuple):
    """Every tuple has the same base cost, so a worker's service time is a number: `service_ns` int64[N]."""

    service_ns: NDArray[np.int64]

    def service(self, worker: int, key: int, cost: float, seq: int, start: int) -> int:
        """Return the service time on a worker; the tuple's own cost does not matter."""
        return self.service_ns[worker]


class TracedCost(NamedTuple):
    """Each tuple brings its base cost in ns; a worker multiplies it by its `slowdown` (float64[N])."""

    slowdown: NDArray[np.float64]

    def service(self, worker: int, key: int, cost: float, seq: int, start: int) -> int:
        """Return cost x slowdown in whole ns, halves to even."""
        return np.int64(np.rint(np.float64(cost) * self.slowdown[worker]))  # type: ignore[return-value]


class VaryingCost(NamedTuple):
    """The workers' speeds change: phases of `slowdown` (float64[p, N]) and drift by `jitter` (float64[batches, N]).

    `begins` int64[p], ascending from 0: where each phase begins, as times of the start of a service if `by_time` is 1,
    as indexes of tuples if it is 0. Tuple i is in batch i div `every`. `constant` is the base cost in ns where all
    tuples have the same (and their `cost` is 0), else 0.
    """

    constant: float
    slowdown: NDArray[np.float64]
    begins: NDArray[np.int64]
    by_time: int
    jitter: NDArray[np.float64]
    every: int

    def service(self, worker: int, key: int, cost: float, seq: int, start: int) -> int:
        """Return cost x (slowdown x jitter) in whole ns, halves to even."""
        phase = phase_of(self.begins, start if self.by_time == 1 else seq)
        speed = self.slowdown[phase, worker] * self.jitter[seq // self.every, worker]
        return np.int64(np.rint((np.float64(cost) + self.constant) * speed))  # type: ignore[return-value]

    def slowed(self, worker: int, key: int, cost: float, seq: int, start: int, factor: float) -> int:
        """Return the same with a factor (of the state that the worker holds), before it is rounded."""
        phase = phase_of(self.begins, start if self.by_time == 1 else seq)
        speed = self.slowdown[phase, worker] * self.jitter[seq // self.every, worker]
        return np.int64(np.rint((np.float64(cost) + self.constant) * speed * factor))  # type: ignore[return-value]

    def look(self, key: int, seq: int, now: int, view: NDArray[np.float64]) -> None:
        """Show the speeds (slowdown x jitter) that a service of tuple `seq` has if it starts now: float64[N]."""
        phase = phase_of(self.begins, now if self.by_time == 1 else seq)
        for worker in range(view.shape[0]):
            view[worker] = self.slowdown[phase, worker] * self.jitter[seq // self.every, worker]


class KeyWorkerCost(NamedTuple):
    """The base cost depends on key and worker: `base` float64[keys, N] in ns; the rest is as in `VaryingCost`.

    `cost` is the tuple's random factor; where there is none it is 0, and `constant` 1 (else 0).
    """

    base: NDArray[np.float64]
    constant: float
    slowdown: NDArray[np.float64]
    begins: NDArray[np.int64]
    by_time: int
    jitter: NDArray[np.float64]
    every: int

    def service(self, worker: int, key: int, cost: float, seq: int, start: int) -> int:
        """Return (base x factor) x (slowdown x jitter) in whole ns, halves to even."""
        phase = phase_of(self.begins, start if self.by_time == 1 else seq)
        speed = self.slowdown[phase, worker] * self.jitter[seq // self.every, worker]
        paid = self.base[key, worker] * (np.float64(cost) + self.constant)
        return np.int64(np.rint(paid * speed))  # type: ignore[return-value]

    def slowed(self, worker: int, key: int, cost: float, seq: int, start: int, factor: float) -> int:
        """Return the same with a factor (of the state that the worker holds), before it is rounded."""
        phase = phase_of(self.begins, start if self.by_time == 1 else seq)
        speed = self.slowdown[phase, worker] * self.jitter[seq // self.every, worker]
        paid = self.base[key, worker] * (np.float64(cost) + self.constant)
        return np.int64(np.rint(paid * speed * factor))  # type: ignore[return-value]

    def look(self, key: int, seq: int, now: int, view: NDArray[np.float64]) -> None:
        """Show what a factor of 1 of tuple `seq` costs on each worker if it starts now, in ns: float64[N]."""
        phase = phase_of(self.begins, now if self.by_time == 1 else seq)
        for worker in range(view.shape[0]):
            view[worker] = self.base[key, worker] * (
                self.slowdown[phase, worker] * self.jitter[seq // self.every, worker]
            )


def make_service(
    speeds: Speeds,
    constant_ns: int | None,
    by_worker: NDArray[np.float64] | None = None,
    *,
    factor: bool = False,
    slowed: bool = False,
) -> Any:
    """Choose the simplest part that does: by whether all tuples cost `constant_ns`, and whether speeds change.

    `by_worker` float64[keys, N] are base costs that depend on the worker. `factor` says that costs have a random
    factor; they then come with each tuple (for `by_worker` the factor itself), also where the base is constant.
    `slowed` says that workers slow down by the state that they hold.
    """
    varying = (speeds.slowdown, speeds.begins, int(speeds.by_time), speeds.jitter, speeds.every)
    if by_worker is not None:
        return KeyWorkerCost(by_worker, 0.0 if factor else 1.0, *varying)
    constant = None if factor else constant_ns
    if not speeds.steady or slowed:
        return VaryingCost(float(constant or 0), *varying)
    if constant is None:
        return TracedCost(speeds.slowdown[0].copy())
    return ConstantCost(np.rint(np.float64(constant) * speeds.slowdown[0]).astype(np.int64))


def capacity(mean_cost_ns: Fraction | Sequence[Fraction], slowdown: Sequence[Fraction]) -> Fraction:
    """Return what all workers together can serve, in tuples per ns: the sum of 1 / (slowdown x mean base cost).

    The mean cost is one for all, or one for each worker; it must not be 0.
    """
    if isinstance(mean_cost_ns, Fraction):
        return sum((1 / factor for factor in slowdown), Fraction(0)) / mean_cost_ns
    return sum((1 / (factor * mean) for factor, mean in zip(slowdown, mean_cost_ns, strict=True)), Fraction(0))
