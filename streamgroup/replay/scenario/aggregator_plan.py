"""What the options say of the aggregators: how many, their service time, and the grouping of the partial results."""

from typing import NamedTuple

from streamgroup.base.errors import UsageError
from streamgroup.base.limits import MOST_WORKERS
from streamgroup.base.time_count_or_share import parse_extent
from streamgroup.cluster.service_distribution import Distribution, parse_timed_service
from streamgroup.replay.scenario.grouping_selection import Selection, select
from streamgroup.replay.scenario.options import ReplayOptions

__all__ = ["AggregatorPlan", "check_aggregators", "check_holding_back", "plan_aggregators"]

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


def check_holding_back(options: ReplayOptions, selection: Selection, aggregators: AggregatorPlan) -> None:
    """Refuse what is not simulated with aggregators that hold workers back: those with --queue-capacity.

    `selection` is the grouping of the sources.
    """
    if options.queue_capacity is None:
        return
    changes = "a worker that comes or goes would leave its window, and what it has to send, to others"
    seen = "it sees the simulated workers, and when they will be idle is not known while aggregators hold them back"
    closed = "in a closed loop tuples arrive when workers have room, so that no window of time has a known last tuple"
    every = options.aggregate_every
    unfit = {
        "--when-full drop": (options.when_full == "drop", "a partial result is never dropped, its worker waits"),
        "--join": (options.join, changes),
        "--leave": (options.leave, changes),
        "--crash": (options.crash, changes),
        "--combine": (options.combine, "a merged tuple has originals of several windows"),
        "--engine-model": (options.engine_model, "a batch is complete before the next one begins"),
        f"-g {selection.text}": (selection.params.sees(), seen),
        f"--aggregator-grouping {aggregators.selection.text}": (aggregators.selection.params.sees(), seen),
        f"--aggregate-every {every} and --arrivals saturate": (
            every is not None and options.arrivals == "saturate" and parse_extent(every, "--aggregate-every").ns, closed
        ),
    }  # fmt: skip
    for flag, (given, why) in unfit.items():
        if given:
            raise UsageError(
                f"--queue-capacity with --aggregators does not go with {flag}: {why}", "leave out one of them"
            )
