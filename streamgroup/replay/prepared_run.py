"""One run: what a plan needs to be simulated, the simulation driven over the stream, and its outcome."""

import contextlib
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamgroup.base.errors import DataError, UsageError
from streamgroup.cluster.service_time import MAX_SERVICE_NS, ConstantCost, make_service
from streamgroup.engines.keys.typed_key_arrays import Keys
from streamgroup.groupings.protocol import SEEN, Context
from streamgroup.kernels import hash_placement, random_draws
from streamgroup.replay.accounting import count_partials, detected_and_true_hot_keys
from streamgroup.replay.accounting.assignment_log import LogWriter
from streamgroup.replay.accounting.event_accounting import Measuring
from streamgroup.replay.accounting.outcome import Outcome
from streamgroup.replay.accounting.recorder import Recorder
from streamgroup.replay.accounting.top_keys import top_keys
from streamgroup.replay.accounting.tuple_sinks import Results, Takers
from streamgroup.replay.accounting.tuple_trees import trees_of
from streamgroup.replay.accounting.window_ends import WindowRule
from streamgroup.replay.aggregator_backpressure.simulation import HeldBack, make_held_back
from streamgroup.replay.chunks_in_second_thread import following_thread
from streamgroup.replay.compile_grouping import COMMON
from streamgroup.replay.explain_compile_error import errors_with_lines
from streamgroup.replay.input.chunk_cache import ChunkCache
from streamgroup.replay.input.prefetch import Ready
from streamgroup.replay.input.read_chunks import planned_chunks
from streamgroup.replay.interpreted_or_compiled import Tiers
from streamgroup.replay.live_workers import Members
from streamgroup.replay.running_grouping import RunningGrouping
from streamgroup.replay.scenario.plan import Plan, offered_load
from streamgroup.replay.scenario.typed_keys import typed_keys
from streamgroup.replay.simulation.chunk_driven import Edge, FeedForward, Setup
from streamgroup.replay.simulation.event_driven import EventDriven
from streamgroup.replay.simulation.sources_never_blocked import SourcesNeverBlocked, are_never_blocked
from streamgroup.replay.stages import held_keys_of_run
from streamgroup.replay.stages.partials_to_aggregators_and_app import make_merging
from streamgroup.replay.stages.simulate_with_combiner import Combining, make_combining
from streamgroup.replay.timed_worker_changes import deaths, timed_events
from streamgroup.replay.tuple_arrays import Events, each_column
from streamgroup.traces.trace import Trace

__all__ = ["Run"]

I64 = NDArray[np.int64]


class Run:
    """One run, from the plan to the outcome."""

    def __init__(self, trace: Trace, plan: Plan, warmup: int, *, interpreted: bool | None) -> None:
        if plan.combine is not None:
            plan = plan._replace(events=timed_events(trace, plan))
        self.trace, self.plan = trace, plan
        # None where sources merge nothing.
        self.combining: Combining | None = None
        self.tiers = Tiers(trace.tuples, interpreted=interpreted)
        self.warmup = warmup
        self._interpreted = interpreted
        options = plan.options
        self._keys: dict[str, Keys] = {}
        self.members = Members(plan.events, options.workers, options.seed)
        most = self.members.most
        self._sees = plan.selection.params.sees()
        unknown = set(self._sees) - set(SEEN)
        if unknown:
            raise UsageError(f"{plan.selection.name}: sees() names {sorted(unknown)}", f"it may name {', '.join(SEEN)}")
        costs = plan.costs
        self.service: Any = make_service(
            plan.speeds, costs.constant_ns, costs.by_worker,
            factor=costs.distribution is not None or (plan.combine is not None and plan.combine.share > 0),
            slowed=plan.state is not None,
        )  # fmt: skip
        self.free = np.zeros(most, dtype=np.int64)
        # Where the base cost depends on the worker, too, what is seen is the factor.
        self._cost = np.array([1.0 if costs.constant_ns is None else float(costs.constant_ns)])
        self._speed = plan.speeds.at(0, 0).copy()
        varies = not plan.speeds.steady or costs.by_worker is not None or plan.state is not None
        self.grouping = RunningGrouping(plan.selection, self._context, self.members.live, changes=bool(plan.events))
        self.edge = Edge(
            sources=options.sources,
            delay=plan.network_delay,
            control_delay=plan.control_delay,
            service=self.service,
            free=self.free,
            cost=self._cost if "cost" in self._sees else None,
            slowdown=self._speed if "slowdown" in self._sees and varies else None,
            sees=bool(self._sees),
            service_ns=self.service.service_ns if self._is_constant else None,
            dies=deaths(trace, plan) if options.crash and not plan.is_ordered else None,
            source_ns=None if plan.source_service is None else plan.source_service.by_source(options.sources),
            held=held_keys_of_run.held_keys(trace, plan, warmup, most),
        )
        self.recorder = self.make_recorder(self.edge.service_ns, entries=self.grouping.detector is not None)
        self.setup = Setup(self._function, self.grouping, self.edge, self.members, self.recorder)
        self.windows = WindowRule(options.window, trace.tuples - warmup)

    @property
    def _is_constant(self) -> bool:
        """Return whether each tuple keeps its worker busy for as long as any other."""
        return isinstance(self.service, ConstantCost) and self.plan.combine is None

    def _function(self, function: Callable[..., Any], *, own: bool = False) -> Callable[..., Any]:
        """Return a function as it runs: for this grouping alone (`own`) or for all; compiled or interpreted."""
        return self.tiers.made(function, self.grouping.code if own else COMMON)

    def make_recorder(self, service_ns: I64 | None, *, entries: bool) -> Recorder:
        """Make what measures tuples; `service_ns` is None where services differ, `entries` as in `Recorder`."""
        state = self.plan.state
        return Recorder(
            self._function, self.trace.keys, self.free, service_ns, self._hotness(),
            heads=detected_and_true_hot_keys.heads(self.trace.dictionary().count, self.plan.hot_share), entries=entries,
            limit=0 if state is None else state.limit,
        )  # fmt: skip

    def _hotness(self) -> detected_and_true_hot_keys.Hotness | None:
        """Make what follows the hot keys, where the grouping reports them."""
        if self.grouping.choices is None:
            return None
        return detected_and_true_hot_keys.Hotness(
            self._function(detected_and_true_hot_keys.follow), self.trace.keys, self.plan.hot_share
        )

    def _context(self, live: I64) -> Context:
        trace, options = self.trace, self.plan.options
        dictionary, modulo = trace.dictionary(), self.plan.selection.params.modulo()

        def candidates(d: int) -> NDArray[np.uint16]:
            return hash_placement.candidates(
                dictionary.hash_lo, dictionary.hash_hi, d, live, options.hash_seed, modulo=modulo
            )

        return Context(
            workers=len(live),
            sources=options.sources,
            keys=trace.keys,
            hash_lo=dictionary.hash_lo,
            hash_hi=dictionary.hash_hi,
            hash_seed=options.hash_seed,
            seed=options.seed,
            network_delay=self.plan.network_delay,
            control_delay=self.plan.control_delay,
            candidates=candidates,
            draw_stream=lambda purpose: random_draws.stream(options.seed, purpose),
            live=live,
            params=self.plan.selection.params,
            typed_keys=self._typed_keys,
            key_type=options.key_type,
            cost=self._cost if "cost" in self._sees else None,
            free=self.free if "free" in self._sees else None,
            slowdown=self._speed if "slowdown" in self._sees else None,
            counts=dictionary.count,
        )

    def _typed_keys(self, kind: str) -> Keys:
        """Read the keys under a type; only if workers come and go are they needed, and kept, for longer."""
        keys = self._keys.get(kind) or typed_keys(self.trace, kind)
        if self.plan.events:
            self._keys[kind] = keys
        return keys

    def results(self, log_directory: Path | None) -> Results:
        """Make what takes the tuples besides the meters."""
        each, tuples = self.plan.options.aggregate_every, self.trace.tuples - self.warmup
        merging = make_merging(
            self.trace, self.plan, self.warmup, self.members.most, self.tiers, self._edge_to_aggregators
        )
        counted = None
        # A tuple that a crash takes has its partial result, and no part of a result.
        if each is not None and (merging is None or self.plan.options.crash):
            count = self._function(count_partials.count_partials)
            counted = count_partials.Partials(count, WindowRule(each, tuples), self.trace.keys, self.members.most)
        writer = None if log_directory is None else LogWriter(log_directory)
        return Results(
            Takers(writer, counted, merging, trees_of(self.trace, self.warmup)), self.windows.width_ns, self.warmup,
            self.plan.costs.constant_ns, self.trace.dictionary().count, closed=bool(self.plan.queues.max_pending),
        )  # fmt: skip

    def _edge_to_aggregators(self, plan: Plan) -> tuple[Setup, Tiers]:
        edge = Run(self.trace, plan, 0, interpreted=self._interpreted)
        return edge.setup, edge.tiers

    def chunks(self, chunk_cache: ChunkCache | None) -> Generator[Ready]:
        """Read the stream."""
        return planned_chunks(self.trace, self.plan, self.windows, self.warmup, chunk_cache)

    def feed_forward(
        self, stream: Generator[Ready], results: Results, progress: Callable[[int], None] | None
    ) -> FeedForward:
        """Send the stream through the feed-forward simulation."""
        simulation, keep = FeedForward(self.setup, starts=results.wants_starts), results.wants_tuples
        with following_thread("streamgroup-results") as follow:

            def send(ready: Ready) -> None:
                events = simulation.chunk(ready, keep=keep)
                if keep:
                    follow(lambda: results.add(ready.offset, events))
                else:
                    results.add(ready.offset, events)

            last = self.drive(stream, results, send, progress)
        with self.grouping.blamed("a hook failed"):
            simulation.finish(last)
        return simulation

    def event_driven(
        self, stream: Generator[Ready], results: Results, progress: Callable[[int], None] | None
    ) -> EventDriven:
        """Send the stream through the event-driven simulation."""
        with following_thread("streamgroup-results") as follow:

            def take(offset: int, events: Events, again: I64) -> None:
                if results.wants_tuples:
                    # These columns will be used again, if they are used here.
                    events = events._replace(hot=None, entries=None, held=None)
                    if not results.wants_starts:
                        events = events._replace(source=None, start=None)
                    events = each_column(events, lambda column: column.copy())
                    follow(lambda: results.add(offset, events, again))
                else:
                    results.add(offset, events, again)

            measuring = Measuring(self.recorder, self.windows, self.warmup, take)
            if self.plan.combine is not None:
                return self._merged(stream, results, measuring, progress)
            simulation = self.event_simulation(measuring)
            with contextlib.closing(simulation):
                self.drive(stream, results, simulation.chunk, progress)
                simulation.finish()
            return simulation

    def event_simulation(self, measuring: Measuring) -> EventDriven:
        """Make the event-driven simulation, with what takes its tuples."""
        span = self.warmup, self.trace.tuples
        if self.plan.holds_back:
            return make_held_back(self.setup, self.plan, span, measuring, self.tiers, self._edge_to_aggregators)
        made = SourcesNeverBlocked if are_never_blocked(self.setup, self.plan.queues) else EventDriven
        shuffled = self.plan.options.source_assignment == "shuffle"
        return made(self.setup, self.plan.queues, span, measuring, round_robin=shuffled)

    def _merged(
        self,
        stream: Generator[Ready],
        results: Results,
        measuring: Measuring,
        progress: Callable[[int], None] | None,
    ) -> EventDriven:
        """Send merged tuples through the event-driven simulation, and account their originals."""

        def seen(ready: Ready) -> None:
            results.add_costs(ready)
            if progress is not None:
                progress(len(ready.key))

        self.combining = make_combining(
            self.setup, self.trace, self.plan, measuring, self.warmup, lambda: self.chunks(None), seen
        )
        simulation = self.combining.simulation
        with contextlib.closing(simulation):
            self.drive(self.combining.chunks(stream), None, simulation.chunk, None)
            simulation.finish()
        return simulation

    def drive(
        self,
        stream: Generator[Ready],
        results: Results | None,
        send: Callable[[Ready], None],
        progress: Callable[[int], None] | None,
    ) -> Ready:
        """Read the stream and send it chunk by chunk; return the last chunk. `results` take the costs."""
        worst = self.plan.speeds.longest_factor()
        if (base := self.plan.costs.by_worker) is not None:
            worst *= float(base.max(initial=0))
        if self.plan.state is not None:
            worst *= float(self.plan.state.longest_factor(self.trace.keys))
        ready = None
        try:
            for ready in stream:
                if ready.cost is not None and float(ready.cost.max()) * worst > MAX_SERVICE_NS:
                    place = ready.offset + int(ready.cost.argmax())
                    raise DataError(
                        f"tuple {place} would be served for over 2^53 ns (104 days)",
                        "check the costs, --slowdown or --state-cost",
                    )
                if results is not None:
                    results.add_costs(ready)
                for ready in self.tiers.pieces(ready, ready.offset):  # noqa: B020 (the last is given)
                    with self.grouping.blamed("a hook failed"), errors_with_lines(self.grouping.source):
                        send(ready)
                    if progress is not None:
                        progress(len(ready.key))
        finally:
            stream.close()
        assert ready is not None
        return ready

    def outcome(
        self, results: Results, simulation: FeedForward | EventDriven, begun: float, *, keep_pairs: bool
    ) -> Outcome:
        """Collect the results."""
        plan, trace, grouping, members = self.plan, self.trace, self.grouping, self.members
        options = plan.options
        totals = self.recorder.totals()
        first, (aggregation, found) = results.first_arrival, results.merged()
        if isinstance(simulation, HeldBack):
            aggregation = simulation.aggregation()
        assert first is not None
        last = totals.last_finish if totals.last_finish is not None else results.last_arrival
        window = self.recorder.window_table(members, trace.tuples, first, results.windows_ns, results.finished)
        served = window.served if window.served is not None else window.tuples.sum(axis=1)
        seen = np.asarray(served) > 0
        steady = plan.speeds.steady and not members.changes and plan.costs.by_worker is None and totals.dropped == 0
        steady = steady and plan.combine is None
        constant = self._is_constant
        state, held = grouping.state, held_keys_of_run.findings(plan, self.recorder.meters)
        hot = self.recorder.hotness
        cold = plan.selection.cold_choices(members.ever)
        return Outcome(
            grouping=plan.selection.text,
            grouping_digest=plan.selection.outside_digest,
            parameters=plan.selection.params.model_dump(),
            workers=members.ever,
            sources=options.sources,
            tuples=trace.tuples - self.warmup,
            keys=int(np.count_nonzero(results.count)),
            count=results.count,
            first_arrival_ns=first,
            last_arrival_ns=results.last_arrival,
            last_finish_ns=totals.last_finish,
            base_work_ns=results.work,
            longest_cost_ns=results.longest,
            slowdown=plan.speeds.initial,
            service_ns=self.service.service_ns[: members.ever] if constant else None,
            offered_load=offered_load(trace, plan, results.last_arrival),
            window=window,
            worker=self.recorder.worker_table(members, first, last, keep_pairs=keep_pairs),
            lag=self.recorder.lag_table(members),
            latency_min_ns=int(window.latency_min_ns[seen].min()) if seen.any() else 0,
            latency_max_ns=int(window.latency_max_ns[seen].max()) if seen.any() else 0,
            top_keys=top_keys(trace, results.count, options.top_keys, self.recorder),
            choices_per_key=plan.selection.choices_per_key(members.ever),
            key_choices=None if hot is None or cold is None else hot.choices(cold),
            hot_keys=None if hot is None else hot.found(),
            hot_tuples=None if grouping.choices is None else totals.hot,
            hot_choices_sum=None if grouping.choices is None else totals.hot_choices,
            choices_max=None if grouping.choices is None else totals.choices_max,
            source_state_entries=self.source_state(totals.source_state),
            state_entry_bytes=getattr(state, "state_entry_bytes", None),
            detector_entry_bytes=grouping.entry_bytes,
            detector_fixed_bytes=grouping.fixed_bytes,
            control_messages=grouping.sent("control_messages"),
            control_bytes=grouping.sent("control_bytes"),
            loop_seconds=simulation.seconds,
            total_seconds=time.perf_counter() - begun,
            measured=trace.tuples - self.warmup,
            steady=steady,
            queue_max=simulation.queue_max if self.recorder.meters.sums.parts.any() else None,
            queue_known=simulation.counts_queues or not constant or members.changes or plan.is_ordered,
            dropped=totals.dropped,
            lost=totals.lost,
            redelivered=totals.redelivered,
            aggregation_messages=results.messages,
            source_servers=simulation.servers if self.combining is None else self.combining.combiner.servers,
            combined=None if self.combining is None else self.combining.combined,
            control_work_ns=grouping.control_work(),
            signal_delay=grouping.signal_delay(),
            held_most=held.most,
            state_slowdown_sum=held.slowdown_sum,
            trees=results.trees,
            interpreted_seconds=self.tiers.seconds if self.tiers.used_plain else 0.0,
            aggregation=aggregation,
            results=found,
        )

    def source_state(self, largest: int) -> int | None:
        """Return the most state entries of a source, `largest` where sources count them; None: it reports none."""
        entries = getattr(self.grouping.state, "state_entries", None)
        if isinstance(entries, int):
            return self.grouping.most_entries
        return None if entries is None else largest
