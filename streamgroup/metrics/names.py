"""The names of all metrics, in the order of every table, with their types."""

__all__ = ["MEANINGS", "METRICS", "Number"]

Number = int | float | None

METRICS: dict[str, type[int] | type[float]] = {
    "imbalance": float,
    "imbalance_mean": float,
    "window_imbalance_mean": float,
    "window_imbalance_max": float,
    "peak_to_mean": float,
    "load_stddev_percent": float,
    "window_load_stddev_mean": float,
    "skew_score": float,
    "work_imbalance": float,
    "work_peak_to_mean": float,
    "idle_workers": int,
    "replicas": int,
    "replication_factor": float,
    "state_entries_max": int,
    "memory_estimate_pkg": int,
    "memory_estimate_sg": int,
    "memory_estimate": int,
    "source_state_entries": int,
    "source_state_bytes": int,
    "detector_entries": int,
    "detector_bytes": int,
    "aggregation_messages": int,
    "control_messages": int,
    "control_bytes": int,
    "makespan_s": float,
    "makespan_vs_lower_bound": float,
    "throughput_tps": float,
    "throughput_limit_tps": float,
    "latency_mean_ms": float,
    "latency_p50_ms": float,
    "latency_p95_ms": float,
    "latency_p99_ms": float,
    "latency_p999_ms": float,
    "latency_max_ms": float,
    "latency_worst_worker_mean_ms": float,
    "backlog_max_ms": float,
    "queue_max": int,
    "utilization_mean": float,
    "utilization_max": float,
    "offered_load": float,
    "dropped": int,
    "redelivered": int,
    "lost": int,
    "hot_keys_mean": float,
    "choices_max": int,
    "choices_mean": float,
    "hot_precision": float,
    "hot_recall": float,
    "hot_detection_delay_tuples": float,
    "hot_detection_delay_ms": float,
    "remapped_replicas": int,
}

# How often a metric was defined anew; 1 for all others, and for runs that do not say. `run.json` has it, so that values
# of different meaning are not compared in silence.
MEANINGS: dict[str, int] = {
    # By the choices of each key at its last tuple; before, by the most it ever had.
    "memory_estimate": 2,
    # Against --hot-threshold, 1/(5n) by default; before, against each grouping's own threshold.
    "hot_precision": 2,
    "hot_recall": 2,
    # Pairs that the run without a change does not have; before, the difference of two counts.
    "remapped_replicas": 2,
}
