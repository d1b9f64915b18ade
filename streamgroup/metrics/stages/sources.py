"""The sources: how busy they are, and how long tuples wait there."""

from fractions import Fraction

from streamgroup.metrics.exact_ratios import NS_PER_MS, integers, ratio
from streamgroup.metrics.latency import quantile_ns
from streamgroup.metrics.metric_names import Number
from streamgroup.replay.accounting.outcome import Outcome
from streamgroup.replay.accounting.window_rows import CARRY

__all__ = ["measure"]

_OF_SERVERS = ("source_utilization_max", "source_wait_ms_mean", "source_wait_ms_p99")


def measure(outcome: Outcome) -> dict[str, Number]:
    """Return the metrics of the sources; None where these take no time, and merge nothing."""
    servers = outcome.source_servers
    found: dict[str, Number] = {**dict.fromkeys(_OF_SERVERS), "combined": outcome.combined}
    if servers is None:
        return found
    end = outcome.first_arrival_ns if outcome.last_finish_ns is None else outcome.last_finish_ns
    low, high = integers(servers.waits)
    p99 = quantile_ns(servers.histogram, Fraction(99, 100), 0, CARRY)
    return found | {
        "source_utilization_max": ratio(max(integers(servers.busy)), end - outcome.first_arrival_ns),
        "source_wait_ms_mean": ratio(high * CARRY + low, int(servers.histogram.sum()) * NS_PER_MS),
        "source_wait_ms_p99": None if p99 is None else p99 / NS_PER_MS,
    }
