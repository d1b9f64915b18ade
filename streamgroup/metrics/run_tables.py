"""The tables of a run: summary, windows, workers, loads, latency, keys, lag.

They are Arrow tables, which Polars reads as they are; importing Polars would take a fifth of a short run.
"""

from types import ModuleType

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from streamgroup.base.arrow_numpy import arrow, column
from streamgroup.base.run_tables_version import SCHEMA_VERSION
from streamgroup.kernels.latency_histogram import lower_bounds
from streamgroup.metrics import (
    hot_keys,
    imbalance,
    latency,
    least_imbalance,
    makespan_and_throughput,
    queues,
    replication,
    slowdown_by_state,
    source_state_and_control_messages,
    tuple_trees,
    utilization,
    work_imbalance,
)
from streamgroup.metrics.exact_ratios import I64, NS_PER_MS, NS_PER_S, integers, ratio
from streamgroup.metrics.imbalance import row_deviation
from streamgroup.metrics.metric_names import METRICS, Metric
from streamgroup.metrics.stages import aggregators, bottleneck, sources
from streamgroup.replay.accounting.outcome import AppResults, Outcome
from streamgroup.replay.accounting.window_rows import PERCENTS

__all__ = ["FAMILIES", "summary", "tables"]

FAMILIES: tuple[ModuleType, ...] = (
    imbalance,
    least_imbalance,
    work_imbalance,
    replication,
    slowdown_by_state,
    source_state_and_control_messages,
    makespan_and_throughput,
    bottleneck,
    latency,
    tuple_trees,
    queues,
    utilization,
    hot_keys,
    sources,
    aggregators,
)


def summary(outcome: Outcome) -> dict[str, Metric]:
    """Return every metric in the order of METRICS; None where one does not exist for the run."""
    found: dict[str, Metric] = {}
    for family in FAMILIES:
        found.update(family.measure(outcome))
    return {name: found.get(name) for name in METRICS}


def _summary(outcome: Outcome) -> pa.Table:
    """Return the one row of metrics, its column types the same for every run whatever is null in it."""
    kinds = {int: pa.int64(), float: pa.float64(), str: pa.string()}
    return pa.table({name: column([value], kinds[METRICS[name]]) for name, value in summary(outcome).items()})


def tables(outcome: Outcome) -> dict[str, pa.Table]:
    """Return all tables of a run by name; every one has the column `schema_version`."""
    made = {
        "summary": _summary(outcome),
        "windows": _windows(outcome),
        "workers": _workers(outcome),
        "loads": _loads(outcome),
        "latency": _latency(outcome),
        "keys": _keys(outcome),
        "lag": _lag(outcome),
    }
    if outcome.results is not None:
        made["results"] = _results(outcome.results)
    return {name: with_version(table) for name, table in made.items()}


def with_version(table: pa.Table) -> pa.Table:
    """Add the column that every table has."""
    return table.append_column("schema_version", arrow(np.full(len(table), SCHEMA_VERSION, dtype=np.int32)))


def _windows(outcome: Outcome) -> pa.Table:
    windows = outcome.window
    tuples = windows.tuples.sum(axis=1)
    served = tuples if windows.served is None else windows.served
    means = [
        ratio(total, count * NS_PER_MS) for total, count in zip(windows.latency_sum_ns, integers(served), strict=True)
    ]
    any_served = served > 0
    quantiles = latency.window_quantiles_ms(windows)
    return pa.table(
        {
            "window": arrow(windows.number),
            "start_s": arrow(windows.start_ns / NS_PER_S),
            "tuples": arrow(tuples),
            "finished": _optional(windows.finished, len(tuples)),
            "imbalance": _floats(imbalance.cumulative_imbalance(windows)),
            "window_imbalance": _floats(imbalance.own_imbalance(windows)),
            "load_stddev": arrow(row_deviation(windows.tuples, windows.alive)),
            "latency_min_ms": _floats(windows.latency_min_ns / NS_PER_MS, any_served),
            "latency_mean_ms": column(means, pa.float64()),
            **{
                f"latency_p{percent}_ms": _floats(quantiles[:, place], any_served)
                for place, percent in enumerate(PERCENTS.tolist())
            },
            "latency_max_ms": _floats(windows.latency_max_ns / NS_PER_MS, any_served),
            "replicas": arrow(windows.pairs),
            "hot_keys": _optional(None if outcome.hot_keys is None else outcome.hot_keys.treated, len(tuples)),
            "detector_entries": _optional(windows.detector_entries, len(tuples)),
            "workers_joined": _counts(windows.joined, len(tuples)),
            "workers_left": _counts(windows.left, len(tuples)),
        }
    )


def _workers(outcome: Outcome) -> pa.Table:
    workers = outcome.worker
    ever = len(workers.tuples)
    head, true_head = workers.head_tuples, workers.true_head_tuples
    means, p99 = latency.worker_latencies(outcome)
    waits = zip(integers(workers.wait_max_ns), integers(workers.served), strict=True)
    return pa.table(
        {
            "worker": arrow(np.arange(ever, dtype=np.int32)),
            "tuples": arrow(workers.tuples),
            "head_tuples": _optional(head, ever),
            "tail_tuples": _optional(None if head is None else workers.tuples - head, ever),
            "true_head_tuples": _optional(true_head, ever),
            "true_tail_tuples": _optional(None if true_head is None else workers.tuples - true_head, ever),
            "busy_s": arrow(workers.busy_ns / NS_PER_S),
            "utilization": column(utilization.of_workers(outcome), pa.float64()),
            "keys": arrow(workers.keys),
            "latency_mean_ms": column(means, pa.float64()),
            "latency_p99_ms": column(p99, pa.float64()),
            "backlog_max_ms": column([wait / NS_PER_MS if served else None for wait, served in waits], pa.float64()),
        }
    )


def _loads(outcome: Outcome) -> pa.Table:
    """Return one row for every worker in every non-empty window, zeros included."""
    windows = outcome.window
    rows, workers = windows.tuples.shape
    return pa.table(
        {
            "window": arrow(np.repeat(windows.number, workers)),
            "worker": arrow(np.tile(np.arange(workers, dtype=np.int32), rows)),
            "tuples": arrow(windows.tuples.ravel()),
            "busy_s": arrow(windows.busy_ns.ravel() / NS_PER_S),
        }
    )


def _lag(outcome: Outcome) -> pa.Table:
    """Return one row for every worker at the end of every cell of time, zeros included."""
    lag = outcome.lag
    tuples = np.zeros((0, 0), dtype=np.int64) if lag is None else lag.tuples
    behind = tuples if lag is None else lag.behind_ns
    cells, workers = tuples.shape
    ends = np.arange(1, cells + 1) * (0 if lag is None else lag.width_ns)
    return pa.table(
        {
            "time_s": arrow(np.repeat(ends / NS_PER_S, workers)),
            "worker": arrow(np.tile(np.arange(workers, dtype=np.int32), cells)),
            "backlog_tuples": arrow(tuples.ravel()),
            "backlog_s": _floats(behind.ravel() / NS_PER_S),
        }
    )


def _latency(outcome: Outcome) -> pa.Table:
    pooled = outcome.worker.histogram.sum(axis=0)
    filled = np.flatnonzero(pooled)
    return pa.table({"at_least_ms": arrow(lower_bounds()[filled] / NS_PER_MS), "tuples": arrow(pooled[filled])})


def _keys(outcome: Outcome) -> pa.Table:
    top = outcome.top_keys
    return pa.table(
        {
            "key": column([key.key for key in top], pa.string()),
            "count": column([key.count for key in top], pa.int64()),
            "share": column([ratio(key.count, outcome.measured) for key in top], pa.float64()),
            "hot": column([key.hot for key in top], pa.bool_()),
            "workers": column([key.workers for key in top], pa.int64()),
        }
    )


def _results(results: AppResults) -> pa.Table:
    """Return the results of an application; what is no number is null, and several parts make a struct."""
    parts = {
        name: _floats(values) if values.dtype == np.float64 else arrow(values)
        for name, values in results.columns.items()
    }
    made = parts[""] if "" in parts else pa.StructArray.from_arrays(list(parts.values()), names=list(parts))
    key = pa.DictionaryArray.from_arrays(arrow(results.place), column(results.texts, pa.string())).cast(pa.string())
    return pa.table({"window": arrow(results.window), "key_id": arrow(results.key_id), "key": key, "result": made})


def _floats(values: NDArray[np.float64], exist: NDArray[np.bool_] | None = None) -> pa.Array:
    """Return the values that exist (None: those that are not NaN), and null for the others."""
    exist = ~np.isnan(values) if exist is None else exist
    if exist.all():
        return arrow(values)
    return column(
        [value if has else None for value, has in zip(values.tolist(), exist.tolist(), strict=True)], pa.float64()
    )


def _counts(values: I64 | None, rows: int) -> pa.Array:
    """Return counts, which are 0 where nothing happened at all."""
    return arrow(np.zeros(rows, dtype=np.int64) if values is None else values)


def _optional(values: I64 | None, rows: int) -> pa.Array:
    return pa.nulls(rows, pa.int64()) if values is None else arrow(values)
