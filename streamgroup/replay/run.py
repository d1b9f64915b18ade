"""One replay: read the options, start the grouping, drive the loop over the trace, hand over what was found."""

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgroup.base.errors import DataError, RunError, StreamgroupError, UsageError
from streamgroup.base.units import parse_duration_ns, parse_number
from streamgroup.cluster.service import MAX_SERVICE_NS, TracedCost, capacity, constant_cost
from streamgroup.cluster.speeds import parse_slowdown
from streamgroup.groupings.protocol import SEEN, Context
from streamgroup.kernels import draws, hashing
from streamgroup.replay import clock, loop
from streamgroup.replay.compile import (
    Interpreted,
    cache_directory,
    check_shape,
    compiled_loop,
    only_one_compiles,
)
from streamgroup.replay.feed import Feed, Ready, SourceRule
from streamgroup.replay.log import LogWriter
from streamgroup.replay.machine import Edge, Machine
from streamgroup.replay.options import ReplayOptions
from streamgroup.replay.outcome import Outcome, TopKey
from streamgroup.replay.selection import Selection, select
from streamgroup.replay.windows import WindowRule
from streamgroup.traces.trace import Trace

__all__ = ["Plan", "make_plan", "offered_load", "replay"]

I64 = NDArray[np.int64]
_DEFAULT_COST_NS = 1_000_000
_MOST = 1 << 16
# Windows x workers: 16 bytes each.
_MOST_CELLS = 1 << 29


class Plan(NamedTuple):
    """What the options mean for a trace: checked before anything is read or written.

    `constant_ns` is the base cost of every tuple, None when each brings its own; `mean_ns` its mean.
    """

    selection: Selection
    options: ReplayOptions
    arrivals: clock.ArrivalKind
    speedup: Fraction
    slowdown: list[Fraction]
    constant_ns: int | None
    mean_ns: Fraction
    network_delay: int
    control_delay: int


def make_plan(trace: Trace, options: ReplayOptions) -> Plan:
    """Read and check the options; UsageError for those, DataError for a trace that cannot be replayed."""
    for name, value in (("-n", options.workers), ("--sources", options.sources)):
        if not 1 <= value <= _MOST:
            raise UsageError(f"{name} {value} is not between 1 and {_MOST}")
    for name, value in (("--seed", options.seed), ("--hash-seed", options.hash_seed)):
        if not 0 <= value < 1 << 63:
            raise UsageError(f"{name} {value} is not between 0 and 2^63 - 1")
    selection = select(options.grouping)
    if trace.tuples == 0:
        raise DataError(f"{trace.path}: the trace is empty, there is nothing to replay")
    kind = clock.parse_arrivals(options.arrivals)
    speedup = parse_number(options.speedup, "--speedup")
    if not Fraction(1, 10**9) <= speedup <= 10**9:
        raise UsageError(f"--speedup {options.speedup} is not between 1e-9 and 1e9")
    if kind.name != "trace" and (options.spread_ties or speedup != 1):
        raise UsageError(f"--speedup and --spread-ties change the trace's times, not --arrivals {options.arrivals}")
    _check_windows(trace, options, kind, speedup)
    constant, mean = _cost(trace, options)
    slowdown = parse_slowdown(options.slowdown or "1", options.workers)
    network = parse_duration_ns(options.network_delay, "--network-delay")
    control = network if options.control_delay is None else parse_duration_ns(options.control_delay, "--control-delay")
    if constant is not None and constant * max(slowdown) > MAX_SERVICE_NS:
        raise DataError("a service would last over 2^53 ns (104 days)", "use a shorter --service")
    if mean == 0 and "utilization" in kind.name:
        raise UsageError(
            f"--arrivals {options.arrivals} needs a mean cost over 0", "use --arrivals rate=R or --service"
        )
    return Plan(selection, options, kind, speedup, slowdown, constant, mean, network, control)


def _check_windows(trace: Trace, options: ReplayOptions, kind: clock.ArrivalKind, speedup: Fraction) -> None:
    """Refuse windows that no memory holds: each keeps a row for every worker."""
    rule = WindowRule(options.window, trace.tuples)
    first, last = _ends(trace)
    span = int(Fraction((last - first) * 1000) / speedup) if kind.name == "trace" else clock.MAX_NS
    cells = rule.most(span) * options.workers
    if cells > _MOST_CELLS:
        raise UsageError(
            f"--window {options.window} makes up to {cells // options.workers} windows of {options.workers} workers, "
            f"over {16 * cells >> 30} GB",
            "make the windows longer",
        )


def offered_load(trace: Trace, plan: Plan, last_arrival: int | None = None) -> Fraction | None:
    """Give arrival rate / capacity, exactly; None for one instant, or when tuples cost nothing.

    Without `last_arrival` (ns) this is known before the run, but for ties that are spread: those move the last arrival.
    """
    if plan.mean_ns == 0:
        return None
    if last_arrival is None:
        first, last = _ends(trace)
        last_arrival = round(Fraction((last - first) * 1000) / plan.speedup)
    return clock.offered_load(plan.arrivals, trace.tuples, last_arrival, capacity(plan.mean_ns, plan.slowdown))


def _ends(trace: Trace) -> tuple[int, int]:
    first, last = trace.first_timestamp, trace.last_timestamp
    assert first is not None
    assert last is not None
    return first, last


def _cost(trace: Trace, options: ReplayOptions) -> tuple[int | None, Fraction]:
    if options.service is not None:
        constant = parse_duration_ns(options.service, "--service")
    elif trace.has_cost:
        assert trace.total_cost_ns is not None
        return None, Fraction(trace.total_cost_ns, trace.tuples)
    else:
        constant = _DEFAULT_COST_NS
    return constant, Fraction(constant)


def _arrivals(trace: Trace, plan: Plan) -> clock.Arrivals:
    kind, tuples = plan.arrivals, trace.tuples
    if kind.name == "trace":
        ties = None
        if plan.options.spread_ties:
            batches = trace.batches(("timestamp",))
            ties = clock.find_ties((b.offset, b.timestamp) for b in batches if b.timestamp is not None)
        return clock.TraceArrivals(*_ends(trace), plan.speedup, ties)
    assert kind.value is not None
    if "utilization" in kind.name:
        spacing = 1 / (kind.value * capacity(plan.mean_ns, plan.slowdown))
    else:
        spacing = Fraction(10**9) / kind.value
    if kind.name in ("rate", "utilization"):
        return clock.ConstantArrivals(spacing, tuples)
    return clock.PoissonArrivals(spacing, tuples, plan.options.seed)


def _context(trace: Trace, plan: Plan, free: I64, slowdown: NDArray[np.float64], cost: I64) -> Context:
    options, dictionary = plan.options, trace.dictionary()

    def candidates(d: int) -> NDArray[np.uint16]:
        found = np.empty((trace.keys, d), dtype=np.uint16)
        for j in range(1, d + 1):
            found[:, j - 1] = hashing.candidate(
                dictionary.hash_lo, dictionary.hash_hi, j, options.workers, options.hash_seed
            )
        return found

    sees = plan.selection.params.sees()
    unknown = set(sees) - set(SEEN)
    if unknown:
        raise UsageError(f"{plan.selection.name}: sees() names {sorted(unknown)}", f"it may name {', '.join(SEEN)}")
    return Context(
        workers=options.workers,
        sources=options.sources,
        keys=trace.keys,
        hash_lo=dictionary.hash_lo,
        hash_hi=dictionary.hash_hi,
        hash_seed=options.hash_seed,
        seed=options.seed,
        network_delay=plan.network_delay,
        control_delay=plan.control_delay,
        candidates=candidates,
        draw_stream=lambda purpose: draws.stream(options.seed, purpose),
        cost=cost if "cost" in sees else None,
        free=free if "free" in sees else None,
        slowdown=slowdown if "slowdown" in sees else None,
    )


class _Tally:
    """What is summed per chunk in plain Python: base work, the longest cost, finishes by window."""

    def __init__(self, plan: Plan, width_ns: int | None) -> None:
        self._constant = plan.constant_ns
        self.width_ns = width_ns
        self.work = 0
        self.longest = plan.constant_ns or 0
        self.finished: dict[int, int] | None = {} if width_ns is not None else None
        self.last_arrival = 0

    def add(self, ready: Ready, log: loop.Log | None) -> None:
        """Add a chunk that went through the loop."""
        self.last_arrival = int(ready.arrival[-1])
        if ready.cost is None:
            self.work += (self._constant or 0) * len(ready.arrival)
        else:
            self.work += (int((ready.cost >> 20).sum()) << 20) + int((ready.cost & 0xFFFFF).sum())
            self.longest = max(self.longest, int(ready.cost.max()))
        if self.width_ns is not None and log is not None:
            assert self.finished is not None
            numbers, counts = np.unique(log.finish // self.width_ns, return_counts=True)
            for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
                self.finished[number] = self.finished.get(number, 0) + count


def replay(
    trace: Trace,
    options: ReplayOptions,
    *,
    log_directory: Path | None = None,
    progress: Callable[[int], None] | None = None,
    interpreted: bool = False,
) -> Outcome:
    """Replay a trace; the result depends on the trace, the options and the installed versions alone.

    `log_directory` takes the assignment log; `progress` is told the number of tuples after each chunk. `interpreted`
    runs the loop as plain Python: the same results, with readable tracebacks, a thousand times slower.
    """
    begun = time.perf_counter()
    plan = make_plan(trace, options)
    slowdown = np.array([float(factor) for factor in plan.slowdown])
    free = np.zeros(options.workers, dtype=np.int64)
    cost = np.full(1, plan.constant_ns or 0, dtype=np.int64)
    state = _started(plan.selection, _context(trace, plan, free, slowdown, cost))
    service: Any = TracedCost(slowdown)
    if plan.constant_ns is not None:
        service = constant_cost(plan.constant_ns, plan.slowdown)
    edge = Edge(options.workers, options.sources, trace.keys, plan.network_delay, service)
    sees = plan.selection.params.sees()
    run: Callable[..., int] = loop.run_chunk
    if not interpreted:
        run = compiled_loop(plan.selection.name, plan.selection.outside_digest)
    hooks = Interpreted(state) if interpreted else state
    machine = Machine(run, hooks, state, edge, free, cost if "cost" in sees else None, bool(sees))
    windows = WindowRule(options.window, trace.tuples)
    feed = Feed(
        trace,
        _arrivals(trace, plan),
        SourceRule(options.source_assignment, options.sources, options.seed, trace.dictionary()),
        windows,
        times=plan.arrivals.name == "trace",
        costs=plan.constant_ns is None,
    )
    tally = _Tally(plan, windows.width_ns)
    _drive(feed, machine, tally, plan, log_directory, progress, interpreted)
    machine.finish(costs=plan.constant_ns is None, sources=options.source_assignment != "shuffle")
    return _outcome(trace, plan, machine, tally, state, int(free.max()), begun)


def _drive(
    feed: Feed,
    machine: Machine,
    tally: _Tally,
    plan: Plan,
    log_directory: Path | None,
    progress: Callable[[int], None] | None,
    interpreted: bool,
) -> None:
    worst = max(plan.slowdown)
    writer = None if log_directory is None else LogWriter(log_directory)
    locked = interpreted
    chunks = feed.chunks()
    try:
        for ready in chunks:
            size = len(ready.arrival)
            log = None
            if writer is not None or tally.finished is not None:
                ints, longs = np.empty((2, size), dtype=np.int32), np.empty((2, size), dtype=np.int64)
                log = loop.Log(ints[0], ints[1], longs[0], longs[1])
            if ready.cost is not None and int(ready.cost.max()) * worst > MAX_SERVICE_NS:
                place = ready.offset + int(ready.cost.argmax())
                raise DataError(f"tuple {place} would be served for over 2^53 ns (104 days)", "check the trace's cost")
            with contextlib.ExitStack() as around:
                around.enter_context(_blamed(plan.selection, "a hook failed"))
                if not locked:
                    # The first call compiles, or finds what an earlier process compiled.
                    cache = cache_directory(plan.selection.outside_digest)
                    around.enter_context(only_one_compiles(cache, _source(plan.selection)))
                    locked = True
                machine.chunk(ready, log)
            tally.add(ready, log)
            if writer is not None and log is not None:
                writer.write(ready.offset, ready.arrival, ready.key, log)
            if progress is not None:
                progress(size)
    finally:
        chunks.close()
        if writer is not None:
            writer.close()


@contextlib.contextmanager
def _blamed(selection: Selection, what: str) -> Iterator[None]:
    """Tell an error in a file of the user's as theirs, and keep what it prints out of the results."""
    if not selection.outside_digest:
        yield
        return
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    except StreamgroupError:
        raise
    except (Exception, SystemExit) as error:
        raise RunError(f"{selection.name}: {what}: {type(error).__name__}: {error}") from error


def _started(selection: Selection, context: Context) -> Any:
    """Start the grouping; what goes wrong in a file of the user's is told as theirs."""
    with _blamed(selection, "start() failed"):
        state = selection.module.start(selection.params, context)
    check_shape(state, selection.name)
    return state


def _source(selection: Selection) -> Path:
    return Path(selection.module.__file__)


def _outcome(
    trace: Trace, plan: Plan, machine: Machine, tally: _Tally, state: Any, last_finish: int, begun: float
) -> Outcome:
    options, dictionary = plan.options, trace.dictionary()
    choices = getattr(state, "choices", None)
    entries = getattr(state, "state_entries", None)
    marks = machine.marks
    ids = list(range(min(options.top_keys, trace.keys)))
    order = np.argsort(-dictionary.count, kind="stable")[: len(ids)].tolist()
    texts = trace.key_texts(order)
    top = [
        TopKey(key, text, int(dictionary.count[key]), machine.workers_of(key))
        for key, text in zip(order, texts, strict=True)
    ]
    window = machine.window_table(tally.width_ns, tally.finished)
    return Outcome(
        grouping=plan.selection.text,
        grouping_digest=plan.selection.outside_digest,
        parameters=plan.selection.params.model_dump(),
        workers=options.workers,
        sources=options.sources,
        tuples=trace.tuples,
        keys=trace.keys,
        count=dictionary.count,
        first_arrival_ns=0,
        last_arrival_ns=tally.last_arrival,
        last_finish_ns=last_finish,
        base_work_ns=tally.work,
        longest_cost_ns=tally.longest,
        slowdown=plan.slowdown,
        service_ns=None if plan.constant_ns is None else constant_cost(plan.constant_ns, plan.slowdown).service_ns,
        offered_load=offered_load(trace, plan, tally.last_arrival),
        window=window,
        worker=machine.worker_table(choices is not None),
        latency_min_ns=int(window.latency_min_ns.min()),
        latency_max_ns=int(window.latency_max_ns.max()),
        top_keys=top,
        choices_per_key=plan.selection.params.choices_per_key(options.workers),
        hot_tuples=None if choices is None else int(marks[loop.HOT_TUPLES]),
        hot_choices_sum=None if choices is None else int(marks[loop.HOT_CHOICES]),
        choices_max=None if choices is None else int(marks[loop.CHOICES_MAX]),
        source_state_entries=(
            entries if entries is None or isinstance(entries, int) else int(marks[loop.SOURCE_STATE])
        ),
        state_entry_bytes=getattr(state, "state_entry_bytes", None),
        control_messages=int(getattr(state, "control_messages", np.zeros(1))[0]),
        control_bytes=int(getattr(state, "control_bytes", np.zeros(1))[0]),
        loop_seconds=machine.seconds,
        total_seconds=time.perf_counter() - begun,
    )
