"""What the options say of the aggregators: how many, their service time, and the grouping of the partial results."""

from typing import NamedTuple

from streamgroup.base.errors import UsageError
from streamgroup.base.limits import MOST_WORKERS
from streamgroup.cluster.service_distribution import Distribution, parse_timed_service
from streamgroup.replay.scenario.grouping_selection import Selection, select
from streamgroup.replay.scenario.options import ReplayOptions

__all__ = ["AggregatorPlan", "check_aggregators", "plan_aggregators"]

_DEFAULT_GROUPING = "kg"


class AggregatorPlan(NamedTuple):
    """`servers` aggregators, each with `service_ns` for a partial result, times a random factor if there is one.

    `selection` is the grouping that sends partial results to them.
    """

    servers: int
    service_ns: int
    distribution: Distribution | None
    selection: Selection


def check_aggregators(count: int | None, what: str = "--aggregators") -> None:
    """Refuse a number of aggregators that there cannot be."""
    if count is not None and not 1 <= count <= MOST_WORKERS:
        raise UsageError(f"{what} {count} is not between 1 and {MOST_WORKERS}")


def plan_aggregators(options: ReplayOptions) -> AggregatorPlan | None:
    """Read and check what the options say of aggregators; None where there are none."""
    check_aggregators(options.aggregators)
    if options.aggregators is None:
        for name, value in (("service", options.aggregator_service), ("grouping", options.aggregator_grouping)):
            if value is not None:
                raise UsageError(f"--aggregator-{name} is about aggregators, and there are none", "add --aggregators A")
        return None
    service, grouping = options.aggregator_service, options.aggregator_grouping
    base, distribution = parse_timed_service("0" if service is None else service, "--aggregator-service")
    selection = select(_DEFAULT_GROUPING if grouping is None else grouping)
    return AggregatorPlan(options.aggregators, base, distribution, selection)
