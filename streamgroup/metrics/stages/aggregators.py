"""The aggregators: how busy they are, and when results are complete."""

from fractions import Fraction

from streamgroup.metrics.exact_ratios import NS_PER_MS, NS_PER_S, integers, ratio
from streamgroup.metrics.latency import quantile_ns
from streamgroup.metrics.metric_names import Number
from streamgroup.replay.accounting.outcome import Outcome

__all__ = ["measure"]

_NAMES = (
    "aggregator_utilization_max", "partials", "result_delay_ms_mean", "result_delay_ms_p99", "result_delay_ms_max",
    "completion_s", "completion_tps",
)  # fmt: skip


def measure(outcome: Outcome) -> dict[str, Number]:
    """Return the family of the aggregators; all None without them, delays and rates also without a result."""
    merged = outcome.aggregation
    nothing: dict[str, Number] = dict.fromkeys(_NAMES)
    if merged is None:
        return nothing
    if not merged.results:
        return nothing | {"partials": 0}
    span = merged.last_ns - outcome.first_arrival_ns
    finished = sum(integers(outcome.worker.served))
    p99 = quantile_ns(merged.delays, Fraction(99, 100), merged.delay_min_ns, merged.delay_max_ns)
    return {
        "aggregator_utilization_max": ratio(max(integers(merged.busy_ns)), span),
        "partials": merged.partials,
        "result_delay_ms_mean": ratio(merged.delay_sum_ns, merged.results * NS_PER_MS),
        "result_delay_ms_p99": None if p99 is None else p99 / NS_PER_MS,
        "result_delay_ms_max": ratio(merged.delay_max_ns, NS_PER_MS),
        "completion_s": ratio(span, NS_PER_S),
        "completion_tps": ratio(finished * NS_PER_S, span),
    }
