"""What is not simulated with aggregators that hold workers back (`--queue-capacity` with `--aggregators`): refused."""

from streamgroup.base.errors import UsageError
from streamgroup.base.time_count_or_share import parse_extent
from streamgroup.replay.scenario.aggregator_plan import AggregatorPlan
from streamgroup.replay.scenario.grouping_selection import Selection
from streamgroup.replay.scenario.options import ReplayOptions

__all__ = ["check_holding_back"]


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
