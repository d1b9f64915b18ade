"""The plan of a replay: the options, checked and read for a trace, before any tuple is."""

from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgroup.base.errors import DataError, UsageError
from streamgroup.base.limits import MOST_SOURCES, MOST_WORKERS
from streamgroup.base.numbers_and_durations import parse_duration_ns, parse_number
from streamgroup.base.time_count_or_share import index_of, parse_extent
from streamgroup.cluster.membership import Event, parse_membership
from streamgroup.cluster.service_distribution import Distribution, parse_distribution
from streamgroup.cluster.service_time import MAX_SERVICE_NS, capacity
from streamgroup.cluster.state_cost import StateCost, parse_state_cost
from streamgroup.cluster.worker_speeds import Speeds, make_speeds
from streamgroup.engines.keys.typed_key_values import check_kind
from streamgroup.groupings._share_threshold import checked_share, share_of
from streamgroup.replay.accounting.window_ends import WindowRule
from streamgroup.replay.aggregator_backpressure.unsupported_options import check_holding_back
from streamgroup.replay.input.arrivals import MAX_NS
from streamgroup.replay.scenario.aggregator_plan import AggregatorPlan, plan_aggregators
from streamgroup.replay.scenario.app_selection import AppSelection, plan_app
from streamgroup.replay.scenario.arrivals_option import SEARCHED, ArrivalKind, load_of_arrivals, parse_arrivals
from streamgroup.replay.scenario.capacity_file import with_capacity
from streamgroup.replay.scenario.grouping_selection import Selection, select
from streamgroup.replay.scenario.micro_batch_option import MicroBatch, parse_engine_model
from streamgroup.replay.scenario.options import MOST_WAITING, WHEN_FULL, ReplayOptions, check_seeds
from streamgroup.replay.scenario.source_service import SourceService, parse_source_service
from streamgroup.replay.simulation.event_driven import Queues
from streamgroup.replay.stages.combiner import CombineRule, parse_combine
from streamgroup.traces.trace import Trace

__all__ = ["Costs", "Plan", "longest_span", "make_plan", "offered_load", "trace_span"]

I64 = NDArray[np.int64]
_DEFAULT_COST_NS = 1_000_000
# Windows x workers: 16 bytes each.
_MOST_CELLS = 1 << 29


class Costs(NamedTuple):
    """Base costs: `constant_ns` of every tuple, `by_key` int64[keys], `by_worker` float64[keys, N], or the trace's own.

    `mean_ns` is the mean over the tuples, one for each worker with `by_worker`; `distribution` the random factor.
    """

    constant_ns: int | None
    by_key: I64 | None
    by_worker: NDArray[np.float64] | None
    mean_ns: Fraction | list[Fraction]
    distribution: Distribution | None

    @property
    def free_of_charge(self) -> bool:
        """Return whether tuples cost nothing (on some worker), so that there is no capacity."""
        return min(self.mean_ns) == 0 if isinstance(self.mean_ns, list) else self.mean_ns == 0


class Plan(NamedTuple):
    """The options, read. `options` are as given but for what their capacity file filled in.

    `warmup` is the number of tuples that are not measured; None while it is a time, `warmup_ns`. From the share
    `hot_share` on a key is hot in truth. `source_service` is None where sources take no time, `combine` where they
    merge nothing, `aggregators` and `app` where there is none, and `state` where it costs nothing. `max_p99_ns` is what
    a search of the rate keeps, None without such a limit.
    `engine_model` is None for a pipelined engine.
    """

    selection: Selection
    options: ReplayOptions
    arrivals: ArrivalKind
    speedup: Fraction
    speeds: Speeds
    costs: Costs
    queues: Queues
    events: list[Event]
    network_delay: int
    control_delay: int
    warmup: int | None
    warmup_ns: int
    hot_share: Fraction
    source_service: SourceService | None = None
    combine: CombineRule | None = None
    aggregators: AggregatorPlan | None = None
    app: AppSelection | None = None
    state: StateCost | None = None
    max_p99_ns: int | None = None
    engine_model: MicroBatch | None = None

    @property
    def is_ordered(self) -> bool:
        """Return whether tuples leave their sources later than they arrive, or something flows back to the sources, so
        that the event-driven simulation is needed."""
        flows_back = self.queues.max_pending or self.queues.capacity or self.queues.redeliver
        return bool(flows_back or self.source_service is not None or self.combine is not None)

    @property
    def holds_back(self) -> bool:
        """Return whether aggregators hold workers back when they are full."""
        return self.aggregators is not None and self.queues.capacity > 0

    @property
    def capacity(self) -> Fraction:
        """Return what the workers of the start can serve, in tuples per ns."""
        return capacity(self.costs.mean_ns, self.speeds.initial)


def make_plan(trace: Trace, options: ReplayOptions) -> Plan:
    """Read and check the options; UsageError for those, DataError for a trace that cannot be replayed."""
    options = with_capacity(options)
    for name, value, most in (("-n", options.workers, MOST_WORKERS), ("--sources", options.sources, MOST_SOURCES)):
        if not 1 <= value <= most:
            raise UsageError(f"{name} {value} is not between 1 and {most}")
    check_seeds(options)
    check_kind(options.key_type)
    selection = select(options.grouping)
    _check_files(selection)
    if trace.tuples == 0:
        raise DataError(f"{trace.path}: the trace is empty, there is nothing to replay")
    kind = parse_arrivals(options.arrivals)
    if kind.name == "trace" and trace.manifest.times == "none":
        raise UsageError(
            f"{trace.path}: its tuples have no times to arrive at", "use --arrivals rate=R or utilization=0.8"
        )
    speedup = parse_number(options.speedup, "--speedup")
    if not Fraction(1, 10**9) <= speedup <= 10**9:
        raise UsageError(f"--speedup {options.speedup} is not between 1e-9 and 1e9")
    if kind.name != "trace" and (options.spread_ties or speedup != 1):
        raise UsageError(f"--speedup and --spread-ties change the trace's times, not --arrivals {options.arrivals}")
    events = parse_membership(options.join, options.leave, options.crash, trace.tuples, options.workers)
    joiners = len(options.join)
    speeds = make_speeds(
        options.slowdown, options.slowdown_at, options.speed_jitter,
        workers=options.workers, joiners=joiners, tuples=trace.tuples, seed=options.seed,
    )  # fmt: skip
    costs = _costs(trace, options, joiners)
    network = parse_duration_ns(options.network_delay, "--network-delay")
    control = network if options.control_delay is None else parse_duration_ns(options.control_delay, "--control-delay")
    state = parse_state_cost(options.state_cost, options.memory_limit, options.workers)
    _check_service(costs, speeds, 1 if state is None else state.longest_factor(trace.keys))
    if ("utilization" in kind.name or kind.name in SEARCHED) and costs.free_of_charge:
        raise UsageError(
            f"--arrivals {options.arrivals} needs a mean cost over 0", "use --arrivals rate=R or --service"
        )
    warmup, warmup_ns = _warmup(options, trace.tuples)
    plan = Plan(
        selection, options, kind, speedup, speeds, costs, _queues(options, kind), events, network, control,
        warmup, warmup_ns, _hot_share(options, selection),
        None if options.source_service is None else parse_source_service(options.source_service),
        parse_combine(options.combine, options.combine_cost), plan_aggregators(options),
        plan_app(options, selection, trace), state, _max_p99(options, kind), parse_engine_model(options.engine_model),
    )  # fmt: skip
    if plan.queues.drops and selection.params.needs_every_delivery():
        raise UsageError(
            f"-g {selection.text} counts what it sent until it is served, and --when-full drop would drop some of it",
            "use --when-full block",
        )
    if plan.combine is not None:
        _check_combine(plan)
    if plan.engine_model is not None:
        _check_engine_model(plan)
    if plan.aggregators is not None:
        _check_files(plan.aggregators.selection)
        check_holding_back(options, selection, plan.aggregators)
    _check_windows(trace, plan, options.workers + joiners)
    return plan


def _check_combine(plan: Plan) -> None:
    """Refuse what a combiner cannot be exact with."""
    what = f"--combine {plan.options.combine}"
    if plan.queues.max_pending:
        raise UsageError(
            f"{what} with --arrivals saturate: a mini-batch would wait for tuples that wait for it to finish",
            "use --arrivals utilization=0.8, or rate=R",
        )
    if plan.queues.redeliver:
        raise UsageError(f"{what} with --redeliver: a merged tuple is not taken apart again", "leave one of them out")
    if len(plan.speeds.begins) > 1 and not plan.speeds.by_time:
        raise UsageError(
            f"{what} with --slowdown-at at a tuple's index or share: merged tuples are other tuples", "give a time"
        )


def _check_engine_model(plan: Plan) -> None:
    """Refuse what would come out otherwise in an engine whose sources choose a whole batch before it is served."""
    what, options = f"--engine-model {plan.options.engine_model}", plan.options
    unfit = {
        f"--arrivals {options.arrivals}": (
            plan.queues.max_pending or plan.arrivals.name in SEARCHED, "times are those of a pipelined engine",
        ),
        "--queue-capacity": (plan.queues.capacity, "workers hold no queue: their batch is complete when it begins"),
        "--join, --leave and --crash": (plan.events, "workers are the tasks of each batch"),
        "--source-service": (plan.source_service, "what sources take is part of a batch's overhead"),
        "--combine": (plan.combine, "tuples are not merged at the sources"),
        "--aggregators": (plan.aggregators, "they would be a stage of the same batch"),
        "--state-cost or --memory-limit": (plan.state, "services depend on what workers hold when they start"),
        "--slowdown-at a time or --speed-jitter": (
            plan.speeds.by_time and len(plan.speeds.begins) > 1, "services depend on when they start",
        ),
    }  # fmt: skip
    for flag, (given, why) in unfit.items():
        if given:
            raise UsageError(f"{what} does not go with {flag}: {why}", "leave out one of them")


def _queues(options: ReplayOptions, kind: ArrivalKind) -> Queues:
    when_full = "block" if options.when_full is None else options.when_full
    if when_full not in WHEN_FULL:
        raise UsageError(f"--when-full: there is no kind {when_full!r}", " or ".join(WHEN_FULL))
    if options.queue_capacity is None:
        if options.when_full is not None:
            raise UsageError("--when-full needs queues that can be full", "add --queue-capacity Q")
    elif not 1 <= options.queue_capacity < MOST_WAITING:
        raise UsageError(f"--queue-capacity {options.queue_capacity} is not between 1 and 2^40")
    saturate = kind.name == "saturate"
    drops = options.queue_capacity is not None and when_full == "drop"
    if saturate and drops:
        raise UsageError("--arrivals saturate with --when-full drop would drop without end", "use --when-full block")
    if not 1 <= options.max_pending < MOST_WAITING:
        raise UsageError(f"--max-pending {options.max_pending} is not between 1 and 2^40")
    if options.max_pending != ReplayOptions.max_pending and not saturate:
        raise UsageError(
            f"--max-pending is for --arrivals saturate, not for --arrivals {options.arrivals}",
            "add --arrivals saturate, or leave it out",
        )
    if options.redeliver and not options.crash:
        raise UsageError("--redeliver is about crashes, and there is none", "add --crash T")
    return Queues(options.queue_capacity or 0, drops, options.redeliver, options.max_pending if saturate else 0)


def _warmup(options: ReplayOptions, tuples: int) -> tuple[int | None, int]:
    extent = parse_extent(options.warmup, "--warmup")
    index = index_of(extent, tuples)
    if index is not None and index >= tuples:
        raise DataError(
            f"--warmup {options.warmup}: all {tuples} tuples of the trace are warm-up, none is measured",
            "make the warm-up shorter",
        )
    return index, extent.ns


def _max_p99(options: ReplayOptions, kind: ArrivalKind) -> int | None:
    if options.max_p99 is None:
        return None
    if kind.name not in SEARCHED:
        raise UsageError("--max-p99 is the limit of a search, and there is none", "add --arrivals max")
    limit = parse_duration_ns(options.max_p99, "--max-p99")
    if limit == 0:
        raise UsageError("--max-p99 0: no service takes no time", "write a duration, as in 20ms")
    return limit


def _hot_share(options: ReplayOptions, selection: Selection) -> Fraction:
    """Return from which share of the tuples on a key is hot in truth, for the workers of the start."""
    if options.hot_threshold == "own":
        share = selection.params.hot_share(options.workers)
        return Fraction(1, 5 * options.workers) if share is None else share
    return share_of(checked_share(options.hot_threshold, "--hot-threshold"), options.workers)


def _check_service(costs: Costs, speeds: Speeds, state: Fraction | int) -> None:
    """Refuse services that are too long, as far as this is known before the tuples are."""
    longest = 0.0
    if costs.constant_ns is not None:
        longest = costs.constant_ns
    elif costs.by_key is not None:
        longest = float(costs.by_key.max(initial=0))
    elif costs.by_worker is not None:
        longest = float(costs.by_worker.max(initial=0))
    # As Fractions: a float would round 2^53 + 1 down.
    if Fraction(longest) * Fraction(speeds.longest_factor()) * state > MAX_SERVICE_NS:
        hint = "use a shorter --service" if state == 1 else "use a shorter --service, or a smaller --state-cost"
        raise DataError("a service would last over 2^53 ns (104 days)", hint)


def _check_windows(trace: Trace, plan: Plan, workers: int) -> None:
    """Refuse windows that no memory holds: each keeps a row for every worker."""
    span = min(longest_span(trace, plan), MAX_NS)
    for name, text in (("--window", plan.options.window), ("--aggregate-every", plan.options.aggregate_every)):
        if text is None:
            continue
        most = WindowRule(text, trace.tuples, name).most(span)
        if name == "--window" and most * workers > _MOST_CELLS:
            raise UsageError(
                f"{name} {text} makes up to {most} windows of {workers} workers, over {16 * most * workers >> 30} GB",
                "make the windows longer",
            )


def longest_span(trace: Trace, plan: Plan) -> int:
    """Return how long it is from the first to the last arrival, in ns: about that long with Poisson arrivals, less in a
    closed loop; in a search, at the workers' capacity."""
    kind, costs = plan.arrivals, plan.costs
    if kind.name == "trace":
        first, last = trace_span(trace)
        return int(Fraction((last - first) * 1000) / plan.speedup)
    if kind.name == "saturate":
        # As if one worker served all, at the lowest speed, and random factors came out twice as high as they should.
        mean = max(costs.mean_ns) if isinstance(costs.mean_ns, list) else costs.mean_ns
        factor = Fraction(plan.speeds.longest_factor())
        if plan.state is not None:
            factor *= plan.state.longest_factor(trace.keys)
        return int(2 * trace.tuples * (mean * factor + plan.network_delay))
    if kind.name in SEARCHED:
        return int((trace.tuples - 1) / plan.capacity)
    assert kind.value is not None
    spacing = 1 / (kind.value * plan.capacity) if "utilization" in kind.name else Fraction(10**9) / kind.value
    return int((trace.tuples - 1) * spacing)


def offered_load(trace: Trace, plan: Plan, last_arrival: int | None = None) -> Fraction | None:
    """Return arrival rate / capacity, exactly; None for one instant, a closed loop, a search, or tuples without cost.

    Without `last_arrival` (ns) this is known before the run, but for ties that are spread: those move the last arrival.
    """
    if plan.costs.free_of_charge:
        return None
    if last_arrival is None:
        first, last = trace_span(trace)
        last_arrival = round(Fraction((last - first) * 1000) / plan.speedup)
    return load_of_arrivals(plan.arrivals, trace.tuples, last_arrival, plan.capacity)


def trace_span(trace: Trace) -> tuple[int, int]:
    """Return the first and the last timestamp of a trace that is not empty, in us."""
    first, last = trace.first_timestamp, trace.last_timestamp
    assert first is not None
    assert last is not None
    return first, last


def _check_files(selection: Selection) -> None:
    for name, path in selection.params.files().items():
        try:
            Path(path).open("rb").close()
        except OSError as error:
            about = type(selection.params).model_fields[name].description
            raise UsageError(f"{selection.name}: {name}={path}: {error.strerror}", about) from None


def _costs(trace: Trace, options: ReplayOptions, joiners: int) -> Costs:
    distribution = parse_distribution(options.service_distribution)
    if options.key_cost is not None:
        from streamgroup.replay.scenario.key_cost_file import read_key_cost  # its import takes as long as 10,000 tuples

        if options.service is not None:
            raise UsageError("--service and --key-cost exclude each other", "give one of them")
        table = read_key_cost(options.key_cost, trace, options.workers + joiners)
        count = trace.dictionary().count
        mean = table.mean_ns(count, options.workers)
        return Costs(None, table.base_ns, table.by_worker, mean, distribution)
    if options.service is not None:
        constant = parse_duration_ns(options.service, "--service")
    elif trace.has_cost:
        assert trace.total_cost_ns is not None
        return Costs(None, None, None, Fraction(trace.total_cost_ns, trace.tuples), distribution)
    else:
        constant = _DEFAULT_COST_NS
    return Costs(constant, None, None, Fraction(constant), distribution)
