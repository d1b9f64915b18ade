"""Whether the machine was fast enough in an engine run: services and wake-ups as asked for and as measured."""

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Machine", "machine_of"]

I64 = NDArray[np.int64]


class Machine(NamedTuple):
    """Mean service that was asked for and that was measured, in ms, and their ratio; how late processes woke, in ms.

    A process wakes at an arrival it waited for, and at the end of a service. `lateness_share` is the mean lateness by
    the mean service that was asked for. `cpu_s` is that of all workers in `wall_s` seconds on `cores` cores;
    `ready_spread_ms` from the first worker that was ready to the last, `begun_late_ms` how late a worker began.
    """

    service_asked_ms: float
    service_measured_ms: float
    service_factor: float
    lateness_mean_ms: float
    lateness_p99_ms: float
    lateness_max_ms: float
    lateness_share: float
    wake_ups: int
    cpu_s: float
    wall_s: float
    cores: int
    load_average: float
    ready_spread_ms: float
    begun_late_ms: float


def machine_of(service: I64, start: I64, finish: I64, late: I64, reports: Sequence[dict[str, Any]]) -> Machine:
    """Sum up what was measured: `service` that was asked for, `late` (-1: no wait) and times of each tuple, in ns."""
    asked, took = float(service.mean()), float((finish - start).mean())
    lateness = np.concatenate([late[late >= 0], np.maximum(finish - start - service, 0)])
    mean = float(lateness.mean())
    return Machine(
        service_asked_ms=asked / 1e6,
        service_measured_ms=took / 1e6,
        service_factor=took / asked if asked else 1.0,
        lateness_mean_ms=mean / 1e6,
        lateness_p99_ms=float(np.quantile(lateness, 0.99)) / 1e6,
        lateness_max_ms=float(lateness.max()) / 1e6,
        lateness_share=mean / asked if asked else float("inf"),
        wake_ups=len(lateness),
        cpu_s=sum(report["cpu_ns"] for report in reports) / 1e9,
        wall_s=float(finish.max()) / 1e9,
        cores=os.cpu_count() or 1,
        load_average=os.getloadavg()[0],
        ready_spread_ms=max(report["ready_spread_ns"] for report in reports) / 1e6,
        begun_late_ms=max(0.0, max(report["behind_ns"] for report in reports) / 1e6),
    )
