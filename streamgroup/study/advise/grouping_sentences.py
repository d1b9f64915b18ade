"""Sentences on one grouping, for an advice and for the verdict of a report."""

from streamgroup.study.advise.recommendation import Row

__all__ = ["busy", "costs", "count", "merits", "percent", "short", "take", "times", "values_range"]

# From here on a number is written without decimals.
_LARGE = 1000


def take(grouping: str, workers: int) -> str:
    """Recommend a grouping, without a full stop."""
    return f"Take {grouping} for {count(workers)}"


def merits(row: Row, kg: Row | None, by: str = "segment") -> str:
    """Say what a grouping does, beside key grouping where that is there; `by` names what the range is over."""
    latency = f"p99 {short(row.latency_p99_ms)} ms{values_range(row, 'latency_p99', '_ms', by)}"
    latency += f", maximum {short(row.latency_max_ms)} ms"
    if kg is not None and row.grouping == kg.grouping:
        text = latency if row.keeps_up else "its queues only grow, so latencies say nothing"
        return f"{kg.grouping}: {text}."
    text = f"{row.grouping}: the most loaded worker gets {times(row.peak_to_mean)} the mean{busy(row)}"
    if not row.keeps_up:
        return f"{text}; queues only grow, so latencies say nothing."
    if kg is None:
        return f"{text}; {latency}."
    growing = "" if kg.keeps_up else ", growing with the stream"
    return f"{text}; {latency} (kg: {short(kg.latency_p99_ms)} and {short(kg.latency_max_ms)} ms{growing})."


def costs(row: Row, kg: Row | None) -> str:
    """Say what state a grouping keeps, beside key grouping where that is there."""
    replicas, most = ("", "") if kg is None else (f" (kg: {kg.replicas:,})", f" (kg: {kg.state_entries_max:,})")
    return (
        f"It keeps {row.replicas:,} state entries, {row.replication_factor:.4g} a key{replicas}, at most "
        f"{row.state_entries_max:,} on a worker{most}; {_merging(row, kg)}."
    )


def _merging(row: Row, kg: Row | None) -> str:
    """Say that partial results have to be merged, and what it takes where that was simulated."""
    if row.result_delay_mean_ms is None or row.result_delay_p99_ms is None or row.aggregator_load_max is None:
        return "what split keys give has to be merged" if row.replication_factor > 1 else "no key is split"
    if row.aggregator_load_max > 1:
        return f"its partial results are {percent(row.aggregator_load_max)} of what the busiest aggregator can do"
    delay, beside = f"p99 {short(row.result_delay_p99_ms)} ms", ""
    if kg is not None and kg.result_delay_mean_ms is not None and kg.result_delay_p99_ms is not None:
        beside = f"; kg: {short(kg.result_delay_mean_ms)} ms, p99 {short(kg.result_delay_p99_ms)} ms"
    return (
        f"its partial results keep the busiest aggregator {percent(row.aggregator_load_max)} busy, and a result "
        f"is complete {short(row.result_delay_mean_ms)} ms after its window's end ({delay}{beside})"
    )


def values_range(row: Row, name: str, unit: str = "", by: str = "segment") -> str:
    """Write from which value to which a figure goes by segment, or by seed; nothing where they are equal."""
    low, high = getattr(row, f"{name}_low{unit}"), getattr(row, f"{name}_high{unit}")
    span = short(low) if low == high else f"{short(low)} to {short(high)}"
    if not low <= getattr(row, f"{name}{unit}") <= high:
        # Other workers are the most loaded in other segments.
        return f" ({span} within a {by})"
    return "" if low == high else f" ({span} by {by})"


def busy(row: Row) -> str:
    """Say how much the most loaded worker and all of them have to do."""
    if row.worker_load_max is None or row.worker_load_mean is None:
        return ""
    if row.worker_load_max <= 1:
        return f", {percent(row.worker_load_max)} busy (mean {percent(row.worker_load_mean)})"
    return f", {percent(row.worker_load_max)} of what it can do (mean {percent(row.worker_load_mean)})"


def count(workers: int) -> str:
    """Write a number of workers."""
    return "1 worker" if workers == 1 else f"{workers:,} workers"


def times(value: float) -> str:
    """Write a factor."""
    return f"{value:.2f} times" if value < _LARGE else f"{value:,.0f} times"


def percent(share: float) -> str:
    """Write a share in percent."""
    return f"{short(100 * share)} %"


def short(value: float) -> str:
    """Write a number with three digits, or without decimals."""
    return f"{value:,.0f}" if abs(value) >= _LARGE else f"{value:.3g}"
