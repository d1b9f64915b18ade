"""The aggregators behind the workers, from the records of a finished run (docs/cluster.md, section 8)."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import Any, NamedTuple

from tests.naive.groupings.simple_groupings import Grouping
from tests.naive.kernels.hashes_and_draws import exp, exponential, log, normal
from tests.naive.metrics.metric_formulas import as_float, mean, nearest_rank
from tests.naive.metrics.what_is_counted import finished_of, windows_of
from tests.naive.replay.options import Key, Span
from tests.naive.replay.tuple_records import Record

__all__ = ["AGGREGATOR_METRICS", "Merge", "aggregator_metrics", "factor", "merge", "merged_metrics"]

MILLISECOND, SECOND = 1_000_000, 1_000_000_000
AGGREGATOR_METRICS = (
    "aggregator_utilization_max",
    "partials",
    "result_delay_ms_mean",
    "result_delay_ms_p99",
    "result_delay_ms_max",
    "completion_s",
    "completion_tps",
)


@dataclass(frozen=True)
class Merge:
    """What merges: `grouping` sends to `aggregators` servers; service: mean in ns and distribution."""

    aggregators: int
    grouping: Grouping
    every: Span | None
    service_ns: int = 0
    distribution: str = "deterministic"
    network_delay_ns: int = 0
    seed: int = 0


class Partial(NamedTuple):
    """In the order in which they leave."""

    leaves_ns: int
    worker: int
    window: int
    key_id: int
    key: Key


def partials_of(measured: list[Record], every: Span | None, key_ids: Mapping[Key, int]) -> list[Partial]:
    found = []
    for window, content in windows_of(measured, every or ("share", Fraction(1))).items():
        done = finished_of(content)
        for worker in {r.worker for r in done}:
            own = [r for r in done if r.worker == worker]
            leaves = max(r.finish_ns for r in own if r.finish_ns is not None)
            found += [Partial(leaves, worker, window, key_ids[key], key) for key in {r.key for r in own}]
    return sorted(found, key=lambda partial: partial[:4])


def end_of(window: int, content: list[Record], every: Span | None, first_ns: int) -> int:
    if every is not None and every[0] == "time":
        return first_ns + (window + 1) * int(every[1])
    return content[-1].arrival_ns


def factor(what: Merge, index: int) -> float:
    kind, _, cv = what.distribution.partition(":")
    if kind == "exponential":
        return exponential(what.seed, "aggregator", index)
    if kind == "lognormal":
        variance = log(1.0 + float(cv) * float(cv))
        return exp(sqrt(variance) * normal(what.seed, "aggregator", index) - variance / 2)
    return 1.0


def merge(measured: list[Record], what: Merge, key_ids: Mapping[Key, int]) -> tuple[dict[Any, int], list[int], int]:
    """When the result of each (window, key) is complete, how long each aggregator works, and how many partials."""
    free, busy = [0] * what.aggregators, [0] * what.aggregators
    complete: dict[Any, int] = {}
    partials = partials_of(measured, what.every, key_ids)
    for number, partial in enumerate(partials):
        if hasattr(what.grouping, "tick"):
            what.grouping.tick(partial.leaves_ns)
        aggregator = what.grouping.choose(partial.worker, partial.key, partial.leaves_ns)
        service = round(float(what.service_ns) * factor(what, number))
        begins = max(free[aggregator], partial.leaves_ns + what.network_delay_ns)
        free[aggregator] = begins + service
        busy[aggregator] += service
        at = (partial.window, partial.key)
        complete[at] = max(complete.get(at, 0), free[aggregator])
    return complete, busy, len(partials)


def aggregator_metrics(measured: list[Record], what: Merge | None, key_ids: Mapping[Key, int]) -> dict[str, Any]:
    if what is None:
        return dict.fromkeys(AGGREGATOR_METRICS)
    return merged_metrics(measured, what.every, *merge(measured, what, key_ids))


def merged_metrics(
    measured: list[Record], every: Span | None, complete: dict[Any, int], busy: list[int], partials: int
) -> dict[str, Any]:
    """Of what `merge` returns."""
    found: dict[str, Any] = {**dict.fromkeys(AGGREGATOR_METRICS), "partials": partials}
    if not complete:
        return found
    first = measured[0].arrival_ns
    windows = windows_of(measured, every or ("share", Fraction(1)))
    ends = {window: end_of(window, content, every, first) for window, content in windows.items()}
    delays = [max(0, at - ends[window]) for (window, _), at in complete.items()]
    span = max(complete.values()) - first
    found |= {
        "result_delay_ms_mean": as_float(mean(delays), MILLISECOND),
        "result_delay_ms_p99": as_float(nearest_rank(delays, Fraction(99, 100)), MILLISECOND),
        "result_delay_ms_max": as_float(max(delays), MILLISECOND),
        "completion_s": as_float(span, SECOND),
    }
    if span:
        found["aggregator_utilization_max"] = as_float(Fraction(max(busy), span))
        found["completion_tps"] = as_float(Fraction(len(finished_of(measured)) * SECOND, span))
    return found
