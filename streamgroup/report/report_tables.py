"""The tables of a report: means beside their maxima, all runs, the hottest keys and their workers."""

import polars as pl

from streamgroup.metrics.metric_names import METRICS
from streamgroup.report.report_data import ReportData
from streamgroup.study.run_option_columns import OPTION_COLUMNS

__all__ = ["all_runs", "hot_keys", "side_by_side", "varying"]

_BOTH = ("peak_to_mean", "replication_factor", "latency_p50_ms", "latency_p99_ms")
_ALWAYS = ("trace", "grouping", "workers")


def side_by_side(data: ReportData) -> pl.DataFrame:
    """Return one row for each condition, grouping and workers: means over seeds, each beside its maximum.

    Where no two runs differ in seeds alone, the metrics themselves.
    """
    keys = ["condition", "grouping", "workers"]
    columns = [
        pl.len().cast(pl.Int64).alias("runs"),
        *(
            one
            for name in _BOTH
            for one in (pl.col(name).mean().alias(f"{name}_mean"), pl.col(name).max().alias(f"{name}_max"))
        ),
        pl.col("latency_max_ms").max(),
        pl.col("window_imbalance_max").max(),
        pl.col("idle_workers").max(),
        pl.col("throughput_limit_tps").min().alias("throughput_limit_tps_min"),
    ]
    found = data.runs.group_by(keys).agg(columns).sort(keys)
    if (found["runs"] > 1).any():
        return found
    return found.drop(f"{name}_max" for name in _BOTH).rename(
        {**{f"{name}_mean": name for name in _BOTH}, "throughput_limit_tps_min": "throughput_limit_tps"}
    )


def all_runs(data: ReportData) -> pl.DataFrame:
    """Return every run with every option and metric."""
    return data.runs


def varying(frame: pl.DataFrame) -> pl.DataFrame:
    """Leave out the options that are the same in all runs, but for those that name one, and metrics that none has."""
    names = [
        name
        for name in frame.columns
        if name in ("run", *_ALWAYS)
        or (name in OPTION_COLUMNS and frame[name].n_unique() > 1)
        or (name in METRICS and frame[name].null_count() < frame.height)
    ]
    return frame.select(names)


def hot_keys(data: ReportData) -> pl.DataFrame:
    """Return the hottest keys of each trace, and how many workers each grouping sent them to.

    Of the runs on one number of workers, the first condition of each trace.
    """
    runs = data.first_seeds
    first = runs.unique("trace", keep="first", maintain_order=True)
    chosen = runs.join(first.select("condition"), "condition", "semi").select("run", "trace", "workers", "grouping")
    if chosen.is_empty():
        return pl.DataFrame()
    keys = data.table("keys", chosen["run"].to_list()).rename({"workers": "sent_to"}).join(chosen, "run")
    wide = keys.with_columns(pl.col("grouping").map_elements(lambda name: f"workers with {name}", pl.String)).pivot(
        "grouping", index=["trace", "key", "count", "share"], values="sent_to", aggregate_function="first"
    )
    return wide.sort("trace", "count", "key", descending=[False, True, False], nulls_last=True)
