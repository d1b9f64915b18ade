"""The chunks of a stream as a plan has them: its arrival times, sources and costs, and what they may be shared by."""

from collections.abc import Generator

from streamgroup.replay.accounting.window_ends import WindowRule
from streamgroup.replay.input.chunk_cache import ChunkCache
from streamgroup.replay.input.make_arrivals import make_arrivals
from streamgroup.replay.input.prefetch import ChunkReader, Ready
from streamgroup.replay.input.source_and_cost_of_tuples import CostRule, SourceFactorRule, SourceRule
from streamgroup.replay.scenario.plan import Plan
from streamgroup.replay.scenario.seeds_used import is_stream_drawn
from streamgroup.traces.trace import Trace

__all__ = ["planned_chunks"]


def planned_chunks(
    trace: Trace, plan: Plan, windows: WindowRule, warmup: int, chunk_cache: ChunkCache | None
) -> Generator[Ready]:
    """Read the stream: through a thread of its own, or shared with other replays of the process."""
    reader = _reader(trace, plan, windows, warmup)
    if chunk_cache is None:
        return reader.chunks()
    options = plan.options
    times = plan.arrivals, plan.speedup, options.spread_ties, options.window, warmup
    capacity = plan.capacity if "utilization" in plan.arrivals.name else None
    costs = options.service, options.key_cost, options.service_distribution, _source_factor(plan)
    assignment = options.source_assignment
    sources = None if assignment == "shuffle" else options.sources
    seed = options.seed if is_stream_drawn(vars(options)) else None
    key = (*times, capacity, *costs, assignment, sources, seed)
    return reader.shared_chunks(chunk_cache, key)


def _reader(trace: Trace, plan: Plan, windows: WindowRule, warmup: int) -> ChunkReader:
    options, costs = plan.options, plan.costs
    return ChunkReader(
        trace,
        make_arrivals(trace, plan),
        SourceRule(options.source_assignment, options.sources, options.seed, trace.dictionary()),
        CostRule(
            costs.constant_ns, costs.by_key, costs.distribution, options.seed, by_worker=costs.by_worker is not None
        ),
        windows,
        warmup,
        times=plan.arrivals.name == "trace",
        source_factor=_source_factor(plan),
    )


def _source_factor(plan: Plan) -> SourceFactorRule | None:
    """Make what draws the random factors of the times at the sources, if these have any."""
    found = plan.source_service
    if found is None or found.distribution is None:
        return None
    return SourceFactorRule(found.distribution, max(found.times_ns), plan.options.seed)
