"""What a replay found, as integers and arrays: the metrics divide, nothing here does."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamgroup.replay.accounting.replica_sets import TouchedPairs
from streamgroup.replay.simulation.source_server import Servers

__all__ = [
    "Aggregation", "AppResults", "HotKeys", "LagTable", "Outcome", "TopKey", "TreeTable", "WindowTable", "WorkerTable",
]  # fmt: skip

I64 = NDArray[np.int64]


@dataclass(frozen=True)
class WindowTable:
    """The windows in which a measured tuple arrived, in order: r rows.

    `number` int64[r] (a window keeps its number when others are empty), `start_ns` int64[r] since the first arrival of
    the trace (time windows: where the window begins, the first at the first measured arrival; others: the arrival of
    its first tuple), `tuples` and `busy_ns` int64[r, N] per worker: accepted deliveries, and the service time of the
    finished ones, all in the window of the tuple's arrival. `served` int64[r] are the window's tuples that finished,
    None when those are all that were accepted. `latency_min_ns`, `latency_max_ns` int64[r] and `latency_sum_ns` r exact
    ints are over the served ones, and mean nothing where there are none. `quantile_ns` float64[r, 6] are the
    percentiles (`window_rows.PERCENTS`), `pairs` int64[r] distinct (worker, key) pairs, `detector_entries` int64[r] or
    None, `finished` int64[r] (measured tuples that finished within the window) or None unless the windows are times.
    `alive` bool[r, N] tells who is alive at the arrival of the window's last tuple, `ever` int64[r] (1..N) how many
    have been alive until then, ids 0..ever-1; None when all are alive all the time. `joined` and `left` int64[r] count
    workers that joined, and that left or crashed, before a tuple of the window and after those before; None: nobody.
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
    served: I64 | None = None
    alive: NDArray[np.bool_] | None = None
    ever: I64 | None = None
    joined: I64 | None = None
    left: I64 | None = None


@dataclass(frozen=True)
class WorkerTable:
    """The workers ever alive, by id: N rows.

    `tuples` int64[N] are accepted deliveries, `finished` int64[N] the finished ones of them (None: all);
    `busy_ns` (of finished ones), `wait_max_ns` (longest wait ahead of a new tuple), `keys` (distinct keys seen)
    int64[N]; `latency_sum_ns` N exact ints and `histogram` int64[N, BUCKETS] (see `latency_histogram`) are of finished
    ones; `head_tuples` int64[N] or None without a hot-key detector. `true_head_tuples` int64[N], None if nobody counted
    them, are deliveries of keys that are hot in truth over the whole trace. A worker is alive from `alive_from_ns` (0
    or its join) to `alive_to_ns` (its crash; its leave or, if later, its last finish; for all others any time from the
    last finish of the run on), int64[N] since the first arrival; None: all the time. `touched` are the pairs of
    key and worker themselves, None where nobody compares them.
    """

    tuples: I64
    busy_ns: I64
    wait_max_ns: I64
    keys: I64
    latency_sum_ns: list[int]
    histogram: I64
    head_tuples: I64 | None
    finished: I64 | None = None
    alive_from_ns: I64 | None = None
    alive_to_ns: I64 | None = None
    touched: TouchedPairs | None = None
    true_head_tuples: I64 | None = None

    @property
    def served(self) -> I64:
        """Return the finished tuples of each worker: int64[N]."""
        return self.tuples if self.finished is None else self.finished


@dataclass(frozen=True)
class LagTable:
    """How far workers are behind, at the ends of r equal cells of time, `width_ns` long, from the first arrival on.

    `tuples` int64[r, N] were sent to a worker and have neither finished nor been lost by then; `behind_ns` int64[r, N]
    is how much later the last of all that it had been sent by then finishes or is lost, 0 if none is left.
    """

    width_ns: int
    tuples: I64
    behind_ns: I64


@dataclass(frozen=True)
class TreeTable:
    """Latencies of tuple trees: from the arrival of a tree's first tuple to the finish of the last one to finish.

    `trees` were measured whole and finished; of their latencies `sum_ns` is exact, `histogram` int64[BUCKETS] is as
    `kernels.latency_histogram` has it, `min_ns` and `max_ns` are 0 without any.
    """

    trees: int
    sum_ns: int
    min_ns: int
    max_ns: int
    histogram: I64


@dataclass(frozen=True)
class TopKey:
    """One of the most frequent keys: its text (None: the null key), tuples, and how many workers hold it.

    `hot` tells whether it was ever treated as hot, None without a hot-key detector.
    """

    key_id: int
    key: str | None
    count: int
    workers: int
    hot: bool | None = None


@dataclass(frozen=True)
class HotKeys:
    """What a grouping treated as hot next to what was hot, by accepted measured tuples in the order of the stream.

    By window, int64[r] each: the distinct keys `treated` as hot, those `hot` in truth, and those in `both`. `detected`
    counts how often a key became hot and was treated so, then or later; `delay_tuples` and `delay_ns` are exact sums of
    what that took from the start of the window.
    """

    treated: I64
    hot: I64
    both: I64
    detected: int
    delay_tuples: int
    delay_ns: int


@dataclass(frozen=True)
class Aggregation:
    """What the aggregators did: `busy_ns` int64[A], `partials` in all, and `last_ns` when the last result was complete.

    Of the `results` (one for each window and key) `delay_sum_ns` exactly, `delay_min_ns` and `delay_max_ns` are from
    the end of the window to the complete result, `delays` int64[BUCKETS] their histogram (see `latency_histogram`).
    Without partial results `last_ns` and the delays are 0.
    """

    busy_ns: I64
    partials: int
    results: int
    last_ns: int
    delay_sum_ns: int
    delay_min_ns: int
    delay_max_ns: int
    delays: I64


@dataclass(frozen=True)
class AppResults:
    """The results of an application, one for each window and key: `window` and `key_id` int64[r].

    The key's text is `texts[place[r]]` (None: the null key). `columns` have r ints or floats each; a result that is one
    number is the column "", others have the names of their parts.
    """

    window: I64
    key_id: I64
    texts: list[str | None]
    place: I64
    columns: dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Outcome:
    """The findings of one run on `workers` workers, those that joined and those that are gone among them.

    Of the `tuples` the last `measured` are (0: all of them); they have `keys` distinct keys, and `count` int64[..] is
    the frequency of each, 0 of a key that only the others have. Times are ns since the first arrival of the trace;
    under `saturate` a tuple arrives when it is emitted. `first_arrival_ns` and `last_arrival_ns` are of measured
    tuples, `last_finish_ns` is the last finish of one, None if none finished. `base_work_ns` and `longest_cost_ns` are
    base costs of measured tuples.

    `slowdown` is that of the workers of the start, at time 0. `steady` is False where the lower bound of the makespan
    does not hold: speeds or membership change, costs depend on the worker, or tuples are dropped. `service_ns` int64[N]
    is each worker's service time where that is the same for all tuples, else None; `queue_max` is the longest queue
    where the loop knows queues (`queue_known`; None if nothing was accepted). `offered_load` is exact or None.
    `dropped` and `lost` are tuples, `redelivered` deliveries. `aggregation_messages` is None when each worker sends one
    partial result a key, at the end. `remapped_replicas` compares with the run without a change of membership, if there
    is one. `grouping_digest` names the code of a grouping outside the package. `choices_per_key`: workers that any key
    may go to, None where it depends on the key; then `key_choices` int64[..] is the number of workers that each key was
    given by its last measured tuple that was accepted, None if nobody knows. `hot_keys` is None without a hot-key
    detector, `lag` where nobody followed it. A detector takes `detector_entry_bytes` for each of its entries
    (None if nobody says) and `detector_fixed_bytes` beside them. `source_servers` says what was measured of the
    sources, None where they take no time; `combined` counts the merged tuples that left them, None where nothing is
    merged. `aggregation` is None without aggregators, `results` without an application. Where state costs,
    `held_most` is the most entries that a finished tuple found on its worker, and `state_slowdown_sum` the sum of the
    factors of all of them. `control_work_ns` is the service time of what the busiest control server was given (None:
    there is none that takes time), `signal_delay` the sum of the delays in ns of signals that made a key hot, and their
    number. `trees` is None for a trace without tuple trees, `max_rate_tps` unless the rate was searched.
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
    last_finish_ns: int | None
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
    measured: int = 0
    steady: bool = True
    queue_max: int | None = None
    queue_known: bool = False
    dropped: int = 0
    lost: int = 0
    redelivered: int = 0
    aggregation_messages: int | None = None
    interpreted_seconds: float = 0.0
    remapped_replicas: int | None = None
    key_choices: I64 | None = None
    hot_keys: HotKeys | None = None
    lag: LagTable | None = None
    detector_entry_bytes: int | None = None
    detector_fixed_bytes: int = 0
    source_servers: Servers | None = None
    combined: int | None = None
    aggregation: Aggregation | None = None
    results: AppResults | None = None
    held_most: int | None = None
    state_slowdown_sum: Fraction | None = None
    control_work_ns: int | None = None
    signal_delay: tuple[int, int] | None = None
    trees: TreeTable | None = None
    max_rate_tps: Fraction | None = None

    def __post_init__(self) -> None:
        """Without a warm-up all tuples are measured."""
        if not self.measured:
            object.__setattr__(self, "measured", self.tuples)
