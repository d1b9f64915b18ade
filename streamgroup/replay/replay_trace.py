"""A replay: finds the warm-up, makes the run and simulates it."""

import contextlib
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from streamgroup.base.errors import DataError, StreamgroupError, UsageError
from streamgroup.replay.accounting.event_accounting import Measuring
from streamgroup.replay.accounting.outcome import Outcome
from streamgroup.replay.input.chunk_cache import ChunkCache
from streamgroup.replay.input.make_arrivals import tuples_before
from streamgroup.replay.micro_batch import replay_in_batches
from streamgroup.replay.prepared_run import Run
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.replay.scenario.plan import Plan, make_plan
from streamgroup.replay.tuple_arrays import Events
from streamgroup.traces.trace import Trace

__all__ = ["prepared", "replay"]

I64 = NDArray[np.int64]


class _Reached(StreamgroupError):
    """The tuple was found at which a closed loop passes a time."""


def _warmup(trace: Trace, plan: Plan, *, interpreted: bool | None) -> int:
    """Count the warm-up tuples."""
    if plan.warmup is not None:
        return plan.warmup
    if plan.warmup_ns == 0:
        return 0
    found = trace.tuples
    if plan.arrivals.name != "saturate":
        found = tuples_before(trace, plan, plan.warmup_ns)
    else:
        # A closed loop finds its times itself, so its beginning is simulated once more. Tuples of the warm-up have no
        # partial results.
        probe = Run(trace, plan._replace(aggregators=None), 0, interpreted=interpreted)

        def look(offset: int, events: Events, again: I64) -> None:
            nonlocal found
            del again
            late = np.flatnonzero(events.arrival >= plan.warmup_ns)
            if len(late):
                found = offset + int(late[0])
                raise _Reached("reached")

        results = probe.results(None)
        simulation = probe.event_simulation(Measuring(probe.recorder, probe.windows, 0, look))
        with contextlib.closing(simulation), contextlib.suppress(_Reached):
            probe.drive(probe.chunks(None), results, simulation.chunk, None)
            simulation.finish()
    if found >= trace.tuples:
        raise DataError(
            f"--warmup {plan.options.warmup}: all {trace.tuples} tuples of the trace are warm-up, none is measured",
            "make the warm-up shorter",
        )
    return found


def _fit_for_batches(run: Run, *, interpreted: bool | None) -> Run:
    """Return a run whose workers' reports come with the next batch and not, besides, after the control delay.

    UsageError for what has no meaning in batches.
    """
    plan, what = run.plan, f"--engine-model {run.plan.options.engine_model}"
    if run.edge.sees:
        raise UsageError(
            f"{what} does not go with -g {plan.selection.text}: it sees its workers, and all of a batch is chosen "
            "before they start",
            "take a grouping that does not",
        )
    if not run.grouping.has_feedback or not plan.control_delay:
        return run
    if plan.options.control_delay is not None:
        raise UsageError(
            f"{what} does not go with --control-delay and -g {plan.selection.text}: workers report with the next batch",
            "leave out one of them",
        )
    return Run(run.trace, plan._replace(control_delay=0), run.warmup, interpreted=interpreted)


def prepared(trace: Trace, options: ReplayOptions, *, interpreted: bool | None = None) -> Run:
    """Check the options of a run and start its grouping; UsageError and DataError as of `replay`."""
    plan = make_plan(trace, options)
    return Run(trace, plan, _warmup(trace, plan, interpreted=interpreted), interpreted=interpreted)


def replay(
    trace: Trace,
    options: ReplayOptions,
    *,
    log_directory: Path | None = None,
    progress: Callable[[int], None] | None = None,
    interpreted: bool | None = None,
    chunk_cache: ChunkCache | None = None,
    keep_pairs: bool = False,
) -> Outcome:
    """Replay a trace; the result depends on the trace, the options and the installed versions alone.

    `log_directory` takes the assignment log; `progress` receives the number of tuples after each chunk. `interpreted`
    runs the loop as plain Python, False compiles it, None does what is quicker (see `interpreted_or_compiled`): the
    same results. `chunk_cache` shares what is read with other replays in threads of this process. With `keep_pairs` the
    outcome has the pairs of key and worker, `worker.touched`, for comparisons with other runs.
    """
    begun = time.perf_counter()
    one = prepared(trace, options, interpreted=interpreted)
    plan = one.plan
    with contextlib.ExitStack() as stack:
        if plan.app is not None and plan.app.outside_digest:
            # What it prints, in whatever thread, is no result of ours.
            stack.enter_context(contextlib.redirect_stdout(sys.stderr))
        if plan.engine_model is not None:
            # Twice the same: one chooses, the other accounts.
            one = _fit_for_batches(one, interpreted=interpreted)
            again = Run(trace, plan, one.warmup, interpreted=interpreted)
            return replay_in_batches(
                one,
                again,
                log_directory=log_directory,
                progress=progress,
                chunk_cache=chunk_cache,
                keep_pairs=keep_pairs,
            )
        results = one.results(log_directory)
        with contextlib.closing(results):
            simulate = one.event_driven if plan.is_ordered else one.feed_forward
            simulation = simulate(one.chunks(chunk_cache), results, progress)
        return one.outcome(results, simulation, begun, keep_pairs=keep_pairs)
