"""Explains the loads of workers: of a grouping on a trace, or of a run."""

import dataclasses
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from streamgroup.base.errors import DataError, UsageError
from streamgroup.groupings.protocol import Parts
from streamgroup.replay.accounting.window_ends import WindowRule
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.replay.scenario.plan import Plan, make_plan
from streamgroup.study.explain.load_composition import Period, compose, find_hot, most_loaded
from streamgroup.study.explain.remedies import Remedies, find_remedies
from streamgroup.study.explain.verdict import Verdict, judge
from streamgroup.study.explain.where_tuples_went import (
    Assignment,
    Logged,
    WindowLoads,
    counted,
    keys_of,
    stamp_at,
    warmup_of,
    window_loads,
)
from streamgroup.study.key_destinations import HashDestinations, HashedKeys
from streamgroup.study.read_run import MARKER, read_record, recorded_options
from streamgroup.study.read_table import read_table
from streamgroup.study.replay_run import LOG, checked, make_run
from streamgroup.traces.statistics.key_counts import count_keys
from streamgroup.traces.trace import Trace, open_trace

__all__ = ["Explanation", "explain", "explain_run", "is_run"]

I64 = NDArray[np.int64]
How = Literal["counted", "log", "replayed"]

_AGAIN = "make the run again, or explain the trace"


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """Why the workers of a replay have the loads they have.

    `how` says where the loads are from: counted by key, the log of a run, or a replay. `windows` is how many there are,
    `window` the worst of them, None where there is but one, and `focus` the period of the two that the verdict is
    about. `names` are the hot keys by id (None: the null key). `remedies` is None where nothing needs help.
    """

    trace: Trace
    options: ReplayOptions
    grouping: str
    how: How
    parts: Parts | None
    windows: int
    whole: Period
    window: Period | None
    focus: Period
    verdict: Verdict
    names: dict[int, str | None]
    remedies: Remedies | None

    @property
    def by_key(self) -> bool:
        """Return whether every key has one worker."""
        return self.how == "counted"

    def to_json(self) -> dict[str, Any]:
        """Return all of it as one JSON object."""
        from streamgroup.study.explain.explain_text import as_json

        return as_json(self)

    def __str__(self) -> str:
        from streamgroup.study.explain.explain_text import as_text

        return as_text(self)

    def __repr__(self) -> str:
        return f"<Explanation: {self.verdict} under {self.grouping} on {self.options.workers} workers>"


def is_run(path: str | Path) -> bool:
    """Report whether a path is the directory of a run."""
    return (Path(path) / MARKER).is_file()


def explain(
    trace_path: str | Path, options: ReplayOptions, *, workers: int = 3, progress: Callable[[int], None] | None = None
) -> Explanation:
    """Explain what the `workers` most loaded workers of a replay get.

    Where each key has one worker, all is counted and nothing replayed; memory is O(keys + windows x workers). Other
    groupings are replayed with a log, in a temporary directory. UsageError for the options, DataError for the trace.
    """
    trace, options = checked(trace_path, options, log=False)
    return _explain(trace, options, workers, None, progress)


def explain_run(run: Path, *, workers: int = 3, progress: Callable[[int], None] | None = None) -> Explanation:
    """Explain a run by the options in its record and the trace that it names: counted, or by the run's log, if any.

    Where neither will do, it is replayed again. DataError where the trace is gone or another one, or the workers got
    other loads than the tables of the run say.
    """
    record = read_record(run)
    # What comes after the workers changes nothing of their load, and a file of it may be gone.
    options = dataclasses.replace(
        recorded_options(run, record), app=None, aggregators=None, aggregator_service=None, aggregator_grouping=None
    )
    path, fingerprint = record["trace"].get("path"), record["trace"]["fingerprint"]
    if path is None:
        raise DataError(f"{run / MARKER} is not the record of a run: trace.path: it is missing", _AGAIN)
    try:
        trace = open_trace(path)
    except UsageError as error:
        raise DataError(f"{run}: its {error.message}", "explain it where it was made, or explain the trace") from None
    if trace.fingerprint() != fingerprint:
        raise DataError(f"{run}: the trace {path} is another one by now", _AGAIN)
    log = run / LOG
    found = _explain(trace, options, workers, log if log.is_dir() else None, progress)
    _check(run, record, found)
    return found


def _check(run: Path, record: dict[str, Any], found: Explanation) -> None:
    digest = record.get("grouping", {}).get("file_digest", "")
    tuples = read_table(run, "workers")["tuples"].to_numpy()
    summary = read_table(run, "summary").row(0, named=True)
    # Tables count every delivery that was accepted, the explanation the last one of every tuple.
    if summary.get("dropped") or summary.get("redelivered"):
        return
    if not np.array_equal(tuples, found.whole.tuples):
        what = "its grouping's file has changed" if digest else "another version of this program made it"
        raise DataError(f"{run}: workers get other loads today than its tables say: {what}", _AGAIN)


def _explain(
    trace: Trace, options: ReplayOptions, most: int, log: Path | None, progress: Callable[[int], None] | None
) -> Explanation:
    if most < 1:
        raise UsageError(f"--top-workers {most} is below 1")
    plan = make_plan(trace, options)
    place = HashDestinations(plan.selection, options.workers, options.hash_seed, options.seed, options.key_type)
    keys = keys_of(trace)
    steady = not plan.events and not plan.queues.drops and plan.arrivals.name != "saturate"
    found = counted(place, keys) if steady else None
    if found is not None:
        loads = window_loads(trace, plan, warmup_of(trace, plan), found.worker_of)
        return _Question(trace, plan, found, loads, "counted", most).answer(place, keys)
    if log is not None:
        return _of_log(trace, plan, log, most, "log")
    with tempfile.TemporaryDirectory(prefix="streamgroup-explain-") as directory:
        again = Path(directory) / LOG
        make_run(trace, plan.options, log_directory=again, progress=progress)
        return _of_log(trace, plan, again, most, "replayed")


def _of_log(trace: Trace, plan: Plan, log: Path, most: int, how: How) -> Explanation:
    found = Logged(log, plan.options.workers + len(plan.options.join))
    warmup = found.before(plan.warmup_ns) if plan.warmup is None else plan.warmup
    loads = found.loads(WindowRule(plan.options.window, trace.tuples - warmup), warmup)
    return _Question(trace, plan, found, loads, how, most).answer(None, None)


@dataclass(frozen=True, eq=False)
class _Question:
    """Known loads whose explanation is asked for; the `most` most loaded workers are taken apart."""

    trace: Trace
    plan: Plan
    assignment: Assignment
    loads: WindowLoads
    how: How
    most: int

    def answer(self, place: HashDestinations | None, keys: HashedKeys | None) -> Explanation:
        """Take the whole stream and the worst window apart; `place` and `keys` are given where a key has one worker."""
        loads, windows = self.loads, len(self.loads.first)
        whole = self._period(int(loads.first[0]), int(loads.end[-1]), loads.tuples.sum(axis=0))
        window = None
        if windows > 1:
            worst = loads.worst()
            window = self._period(int(loads.first[worst]), int(loads.end[worst]), loads.tuples[worst])
        verdict, focus = judge(whole, window, windows, by_key=place is not None)
        remedies = None
        if verdict not in ("balanced", "choices of the grouping"):
            # What fits the keys of one window best says nothing of the next.
            remedies = find_remedies(self.trace, place, None if verdict == "drift" else keys, focus)
        shown = {key.key_id for period in (whole, window) if period for worker in period.top for key in worker.hot}
        ids = sorted(shown | set(remedies.split.pieces if remedies and remedies.split else ()))
        return Explanation(
            trace=self.trace,
            options=self.plan.options,
            grouping=self.plan.selection.text,
            how=self.how,
            parts=self._parts,
            windows=windows,
            whole=whole,
            window=window,
            focus=focus,
            verdict=verdict,
            names=dict(zip(ids, self.trace.key_texts(ids), strict=True)),
            remedies=remedies,
        )

    @property
    def _parts(self) -> Parts | None:
        """Return the key groups or partitions of each worker, where workers stay."""
        return None if self.plan.events else self.plan.selection.params.parts_by_worker(self.plan.options.workers)

    def _period(self, first: int, end: int, tuples: I64) -> Period:
        count = count_keys(self.trace, first, end)
        times = (
            None
            if self.trace.manifest.times == "none"
            else (stamp_at(self.trace, first), stamp_at(self.trace, end - 1))
        )
        period = Period(first, end, tuples, count, find_hot(count, len(tuples)), (), *(times or (None, None)))
        parts = self._parts
        top = tuple(
            compose(
                period,
                worker,
                *self.assignment.on_worker(worker, count, first, end),
                None if parts is None else parts.of_worker,
            )
            for worker in most_loaded(tuples, self.most)
        )
        return dataclasses.replace(period, top=top)
