"""The tables of a run as Polars frames: summary, windows, workers, loads, latency, keys."""

from types import ModuleType

import numpy as np
import polars as pl

from streamgroup.kernels.latencies import lower_bounds
from streamgroup.metrics import (
    hot_keys,
    imbalance,
    latency,
    makespan,
    overhead,
    queues,
    replication,
    utilization,
    work,
)
from streamgroup.metrics.exact import NS_PER_MS, NS_PER_S, integers, ratio, row_deviation
from streamgroup.metrics.names import METRICS, SCHEMA_VERSION, Number
from streamgroup.replay.outcome import Outcome

__all__ = ["FAMILIES", "summary", "summary_schema", "tables"]

FAMILIES: tuple[ModuleType, ...] = (
    imbalance,
    work,
    replication,
    overhead,
    makespan,
    latency,
    queues,
    utilization,
    hot_keys,
)


def summary(outcome: Outcome) -> dict[str, Number]:
    """Give every metric in the order of METRICS; None where one does not exist for the run."""
    found: dict[str, Number] = {}
    for family in FAMILIES:
        found.update(family.measure(outcome))
    return {name: found.get(name) for name in METRICS}


def summary_schema() -> dict[str, pl.DataType]:
    """Give the column types of the metrics, the same for every run whatever is null in it."""
    return {name: pl.Int64() if kind is int else pl.Float64() for name, kind in METRICS.items()}


def tables(outcome: Outcome) -> dict[str, pl.DataFrame]:
    """Give all tables of a run by name; every one has the column `schema_version`."""
    made = {
        "summary": pl.DataFrame([summary(outcome)], schema=summary_schema()),
        "windows": _windows(outcome),
        "workers": _workers(outcome),
        "loads": _loads(outcome),
        "latency": _latency(outcome),
        "keys": _keys(outcome),
    }
    version = pl.lit(SCHEMA_VERSION, dtype=pl.Int32).alias("schema_version")
    return {name: frame.with_columns(version) for name, frame in made.items()}


def _windows(outcome: Outcome) -> pl.DataFrame:
    windows = outcome.window
    tuples = windows.tuples.sum(axis=1)
    means = [
        ratio(total, count * NS_PER_MS) for total, count in zip(windows.latency_sum_ns, integers(tuples), strict=True)
    ]
    quantiles = latency.window_quantiles_ms(windows)
    return pl.DataFrame(
        {
            "window": windows.number,
            "start_s": windows.start_ns / NS_PER_S,
            "tuples": tuples,
            "finished": _optional(windows.finished, len(tuples)),
            "imbalance": imbalance.cumulative_imbalance(windows),
            "window_imbalance": imbalance.own_imbalance(windows),
            "load_stddev": row_deviation(windows.tuples),
            "latency_min_ms": windows.latency_min_ns / NS_PER_MS,
            "latency_mean_ms": pl.Series(means, dtype=pl.Float64),
            "latency_p50_ms": quantiles[:, 0],
            "latency_p95_ms": quantiles[:, 1],
            "latency_p99_ms": quantiles[:, 2],
            "latency_max_ms": windows.latency_max_ns / NS_PER_MS,
            "replicas": windows.pairs,
            "hot_keys": _optional(None, len(tuples)),
            "detector_entries": _optional(windows.detector_entries, len(tuples)),
        }
    )


def _workers(outcome: Outcome) -> pl.DataFrame:
    workers = outcome.worker
    head = workers.head_tuples
    means, p99 = latency.worker_latencies(outcome)
    waits = zip(integers(workers.wait_max_ns), integers(workers.tuples), strict=True)
    return pl.DataFrame(
        {
            "worker": np.arange(outcome.workers, dtype=np.int32),
            "tuples": workers.tuples,
            "head_tuples": _optional(head, outcome.workers),
            "tail_tuples": _optional(None if head is None else workers.tuples - head, outcome.workers),
            "busy_s": workers.busy_ns / NS_PER_S,
            "utilization": pl.Series(utilization.of_workers(outcome), dtype=pl.Float64),
            "keys": workers.keys,
            "latency_mean_ms": pl.Series(means, dtype=pl.Float64),
            "latency_p99_ms": pl.Series(p99, dtype=pl.Float64),
            "backlog_max_ms": pl.Series(
                [wait / NS_PER_MS if tuples else None for wait, tuples in waits], dtype=pl.Float64
            ),
        }
    )


def _loads(outcome: Outcome) -> pl.DataFrame:
    """Give one row for every worker in every non-empty window, zeros included."""
    windows = outcome.window
    rows, workers = windows.tuples.shape
    return pl.DataFrame(
        {
            "window": np.repeat(windows.number, workers),
            "worker": np.tile(np.arange(workers, dtype=np.int32), rows),
            "tuples": windows.tuples.ravel(),
            "busy_s": windows.busy_ns.ravel() / NS_PER_S,
        }
    )


def _latency(outcome: Outcome) -> pl.DataFrame:
    pooled = outcome.worker.histogram.sum(axis=0)
    filled = np.flatnonzero(pooled)
    return pl.DataFrame({"at_least_ms": lower_bounds()[filled] / NS_PER_MS, "tuples": pooled[filled]})


def _keys(outcome: Outcome) -> pl.DataFrame:
    top = outcome.top_keys
    return pl.DataFrame(
        {
            "key": pl.Series([key.key for key in top], dtype=pl.String),
            "count": pl.Series([key.count for key in top], dtype=pl.Int64),
            "share": pl.Series([ratio(key.count, outcome.tuples) for key in top], dtype=pl.Float64),
            "hot": pl.Series([None] * len(top), dtype=pl.Boolean),
            "workers": pl.Series([key.workers for key in top], dtype=pl.Int64),
        }
    )


def _optional(values: np.ndarray[tuple[int], np.dtype[np.int64]] | None, rows: int) -> pl.Series:
    return pl.Series([None] * rows if values is None else values, dtype=pl.Int64)
