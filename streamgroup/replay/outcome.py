"""What a replay found, as integers and arrays: the metrics divide, nothing here does."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Outcome", "TopKey", "WindowTable", "WorkerTable"]

I64 = NDArray[np.int64]


@dataclass(frozen=True)
class WindowTable:
    """The non-empty windows, in order: r rows.

    `number` int64[r] (a window keeps its number when others are empty), `start_ns` int64[r] (time windows: where the
    window begins; others: the arrival of its first tuple), `tuples` and `busy_ns` int64[r, n] per worker,
    `latency_min_ns`, `latency_max_ns` int64[r], `latency_sum_ns` r exact ints, `quantile_ns` float64[r, 3] (p50, p95,
    p99), `pairs` int64[r] distinct (worker, key) pairs, `detector_entries` int64[r] or None, `finished` int64[r]
    (measured tuples that finished within the window) or None unless the windows are times.
    """

    number: I64
    start_ns: I64
    tuples: I64
    busy_ns: I64
    latency_min_ns: I64
    latency_max_ns: I64
    latency_sum_ns: list[int]
    quantile_ns: NDArray[np.float64]
    pairs: I64
    detector_entries: I64 | None
    finished: I64 | None


@dataclass(frozen=True)
class WorkerTable:
    """The workers ever alive, by id: n rows.

    `tuples`, `busy_ns`, `wait_max_ns` (longest wait ahead of a new tuple), `keys` (distinct keys seen) int64[n];
    `latency_sum_ns` n exact ints; `histogram` int64[n, BUCKETS] (see `kernels.latencies`); `head_tuples` int64[n] or
    None without a hot-key detector.
    """

    tuples: I64
    busy_ns: I64
    wait_max_ns: I64
    keys: I64
    latency_sum_ns: list[int]
    histogram: I64
    head_tuples: I64 | None


@dataclass(frozen=True)
class TopKey:
    """One of the most frequent keys: its text (None: the null key), tuples, and how many workers hold it."""

    key_id: int
    key: str | None
    count: int
    workers: int


@dataclass(frozen=True)
class Outcome:
    """The findings of one run over `tuples` measured tuples of `keys` distinct keys on `workers` workers.

    Times are ns since the first arrival. `count` int64[keys] is the frequency of each key. `service_ns` int64[n] is
    each worker's service time where all tuples cost the same, else None. `offered_load` is exact or None.
    `grouping_digest` names the code of a grouping outside the package.
    `choices_per_key`: workers that any key may go to, None where it depends on the key.
    """

    grouping: str
    parameters: dict[str, Any]
    workers: int
    sources: int
    tuples: int
    keys: int
    count: I64
    first_arrival_ns: int
    last_arrival_ns: int
    last_finish_ns: int
    base_work_ns: int
    longest_cost_ns: int
    slowdown: list[Fraction]
    service_ns: I64 | None
    offered_load: Fraction | None
    window: WindowTable
    worker: WorkerTable
    latency_min_ns: int
    latency_max_ns: int
    top_keys: list[TopKey]
    choices_per_key: int | None
    hot_tuples: int | None
    hot_choices_sum: int | None
    choices_max: int | None
    source_state_entries: int | None
    state_entry_bytes: int | None
    control_messages: int
    control_bytes: int
    loop_seconds: float
    total_seconds: float
    grouping_digest: str = ""
