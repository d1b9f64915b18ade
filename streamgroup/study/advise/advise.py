"""Runs `advise`: replays candidates in bounded time, and recommends a grouping for a number of workers."""

import dataclasses
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from streamgroup.base.errors import RunError, UsageError
from streamgroup.base.memory import free_memory
from streamgroup.base.progress import Silent, Watcher
from streamgroup.base.storage.storage_path import StoragePath
from streamgroup.replay.interpreted_or_compiled import SMALL
from streamgroup.replay.scenario.grouping_selection import select
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.study.advise.candidate_groupings import KEY_GROUPING, candidates
from streamgroup.study.advise.hot_keys import HotKeys, find_hot_keys
from streamgroup.study.advise.key_grouping_with_combiner import COMBINER_SIZES, Combined, find_combiner
from streamgroup.study.advise.least_workers import LeastWorkers, chosen_workers, search_workers
from streamgroup.study.advise.measure_candidates import SEGMENTS, MeasuredCandidate, Sample, measure, sample_of
from streamgroup.study.advise.offered_load import OfferedLoad, find_offered_load
from streamgroup.study.advise.recommendation import Choice, Row, Targets, balanced, choose, same
from streamgroup.study.bounds.families import balance
from streamgroup.study.bounds.key_frequencies import of_trace
from streamgroup.study.bounds.question import Question
from streamgroup.study.bounds.statement import Statement
from streamgroup.study.replay_run import checked
from streamgroup.study.run_cost import BASE_MB, TUPLES_PER_S
from streamgroup.study.sweep.compile_in_background import compile_ahead, not_compiled
from streamgroup.traces.trace import Trace

__all__ = ["Advice", "AdviceRequest", "LeastWorkers", "advise"]

# Shares of the budget: all groupings roughly, those that are left, and other numbers of workers.
_ROUGHLY, _CLOSELY, _WORKERS = 0.25, 0.45, 0.3
# Groupings that are looked at closely, beside key grouping and the one with the least latency.
_LEFT = 3
# Tries of both searches for the least number of workers, about.
_TRIES = 24
# Of the memory that is free, for all runs at once.
_FOR_RUNS = 0.6


@dataclass(frozen=True)
class AdviceRequest:
    """What is asked beside the options of the runs.

    `groupings` are asked as well as the usual ones. `budget` is in seconds (over 0) of two cores with an assumed speed,
    so that the answer does not depend on the machine; nor does it on `jobs`, the number of threads. With `any_workers`
    the number of workers is asked, too: that of the options means nothing, and half of the budget goes to it.
    """

    targets: Targets = field(default_factory=Targets)
    groupings: tuple[str, ...] = ()
    budget: float = 60.0
    jobs: int = 1
    any_workers: bool = False


@dataclass(frozen=True, repr=False)
class Advice:
    """The answer: `rows` are of the groupings in the last pass, `roughly` of all in the first, each in the order asked.

    `sample` is what the last pass replayed, `first_sample` the first one. `best` is the row with the least latency of
    those that keep up (and are balanced, where the rule asks for that), None without any. `failed` are pairs of
    grouping and error. `combined` is key grouping with a combiner in each source, None where key grouping is
    recommended or the options rule a combiner out. `floors` are the bounds on balance, by name. `by_workers` are the
    least workers of all groupings, where the number of workers was asked.
    """

    trace: Trace
    offered: OfferedLoad
    question: AdviceRequest
    choice: Choice
    kg: Row
    best: Row | None
    rows: list[Row]
    roughly: list[Row]
    failed: list[tuple[str, str]]
    warnings: list[str]
    sample: Sample
    first_sample: Sample
    workers_sample: Sample
    hot_keys: HotKeys
    least: list[LeastWorkers]
    combined: Combined | None
    floors: dict[str, Statement]
    by_workers: list[LeastWorkers] | None = None

    @property
    def recommended(self) -> str:
        """Return the recommended grouping, with its parameters."""
        return self.choice.recommended.grouping

    @property
    def met(self) -> bool:
        """Return whether the recommended grouping keeps up and meets the targets, if there are any."""
        return self.choice.recommended.keeps_up and self.choice.met is not False

    def to_json(self) -> dict[str, Any]:
        """Return all of it as one JSON object, see docs/advice.md."""
        from streamgroup.study.advise.advice_text import as_json

        return as_json(self)

    def __str__(self) -> str:
        from streamgroup.study.advise.advice_text import as_text

        return as_text(self)

    def __repr__(self) -> str:
        from streamgroup.study.advise.advice_text import headline

        return f"<Advice: {headline(self)}>"


def advise(
    trace_path: str | Path | StoragePath,
    options: ReplayOptions,
    question: AdviceRequest,
    progress: Watcher | None = None,
) -> Advice:
    """Replay what is needed and choose; the grouping in `options` means nothing.

    UsageError for options that are wrong or of which nothing general can be said, DataError for a trace that is empty
    or not sound, RunError if key grouping cannot be replayed.
    """
    for name, value, least in (("--budget", question.budget, 0), ("--max-p99", question.targets.max_p99_ms, 0)):
        if value is not None and not least < value < float("inf"):
            raise UsageError(f"{name} {value:g} is not over {least}")
    limit = question.targets.max_replication
    if limit is not None and not 1 <= limit < float("inf"):
        raise UsageError(f"--max-replication {limit:g} is below 1", "every key has one state entry at least")
    trace, options = checked(trace_path, dataclasses.replace(options, grouping=KEY_GROUPING), log=False)
    progress = progress or Silent()
    texts: dict[str, str] = {}
    for text in (*candidates(trace, options), *question.groupings):
        texts.setdefault(select(text).text, text)
    groupings = list(texts.values())
    offered = find_offered_load(trace, options)
    if not question.any_workers:
        advisor = _Advisor(offered, question, groupings, progress)
        with advisor.compiling():
            return advisor.answer()
    _check_any_workers(offered, question)
    question = dataclasses.replace(question, budget=question.budget / 2)
    fewest = find_offered_load(trace, dataclasses.replace(options, workers=offered.sustainable or 1))
    first = _Advisor(fewest, question, groupings, progress)
    with first.compiling():
        by_workers = first.by_workers()
        options = dataclasses.replace(options, workers=chosen_workers(by_workers))
        advice = _Advisor(find_offered_load(trace, options), question, groupings, progress).answer()
    return dataclasses.replace(advice, by_workers=by_workers)


def _check_any_workers(offered: OfferedLoad, question: AdviceRequest) -> None:
    """Refuse what the number of workers cannot follow from."""
    if question.targets.max_p99_ms is None:
        raise UsageError("without -n the number of workers needs a target", "give -n, or --max-p99")
    if offered.assumed or offered.rate is not None or offered.load is None:
        raise UsageError(
            "how many workers are needed follows from the time a tuple takes and the rate of tuples; one is unknown",
            "give -n, or --service and, where the trace's times are not the rate, --arrivals rate=R",
        )
    if offered.sustainable is None:
        raise UsageError("no number of workers can do this load", "is --service right?")


class _Advisor:
    """One answer on its way."""

    def __init__(self, offered: OfferedLoad, question: AdviceRequest, groupings: list[str], progress: Watcher) -> None:
        self.offered, self.trace = offered, offered.trace
        self.question, self.groupings, self.progress = question, groupings, progress
        self.workers = offered.options.workers
        self.budget = question.budget * TUPLES_PER_S["ordered"]
        self.rows: dict[str, Row] = {}
        self.failed: dict[str, str] = {}
        self.warnings: dict[str, tuple[str, ...]] = {}

    def compiling(self) -> AbstractContextManager[None]:
        """Let other processes compile meanwhile, if all replays together are many enough."""
        sample = self._sample(_ROUGHLY, len(self.groupings))
        # The last is compiled first: of the groupings, which are asked again with other numbers of workers.
        runs = [*self._combiners(sample), *(self._run(text, sample) for text in self.groupings)]
        return compile_ahead(self.trace, runs, self._at_once(runs), sample.tuples * (len(runs) + _TRIES))

    def answer(self) -> Advice:
        _note_compiling(self.groupings, self.trace.tuples, self.progress)
        first = self._sample(_ROUGHLY, len(self.groupings))
        self._ask(self.groupings, first, "first pass")
        roughly = self._in_order()
        sample = first
        if not first.whole:
            left = self._left()
            sample = self._sample(_CLOSELY, len(left))
            self.rows = {}
            self._ask(left, sample, "second pass")
        rows = self._in_order()
        choice = choose(rows, self.question.targets)
        kg = self._kg()
        fit = balanced(rows) if choice.rule == "compromise" else [row for row in rows if row.keeps_up]
        segments = _fifths(self.trace.tuples) if sample.whole else sample.segments
        workers_sample = self._sample(_WORKERS, _TRIES)
        return Advice(
            trace=self.trace,
            offered=self.offered,
            question=self.question,
            choice=choice,
            kg=kg,
            best=min(fit, key=lambda row: (row.compared_ms, row.replication_factor), default=None),
            rows=rows,
            roughly=roughly,
            failed=list(self.failed.items()),
            warnings=self._warnings(choice),
            sample=sample,
            first_sample=first,
            workers_sample=workers_sample,
            hot_keys=find_hot_keys(self.trace, self.workers, segments, self.offered.options.hash_seed),
            combined=None if choice.recommended.grouping == kg.grouping else self._combined(sample),
            least=self._least(list(dict.fromkeys([choice.recommended, kg])), workers_sample),
            floors=self._floors(),
        )

    def _combined(self, sample: Sample) -> Combined | None:
        """Replay key grouping with combiners of several sizes, and take one."""
        runs = self._combiners(sample)
        self.progress.start(len(runs) * sample.tuples, "combiners")
        found = self._measure(sample, runs)
        tried = [(size, one.row) for size, one in zip(COMBINER_SIZES, found, strict=True)]
        return find_combiner(tried, self.question.targets)

    def _combiners(self, sample: Sample) -> list[ReplayOptions]:
        run = self._run(KEY_GROUPING, sample)
        return [dataclasses.replace(run, combine=str(size)) for size in COMBINER_SIZES]

    def _run(self, grouping: str, sample: Sample) -> ReplayOptions:
        return self.offered.run(grouping, self.workers, whole=sample.whole)

    def _floors(self) -> dict[str, Statement]:
        """Return what the key counts alone force, whatever the rule."""
        question = Question(of_trace(self.trace), self.workers, self.offered.options.sources)
        return {one.name: one for one in balance.statements(question)}

    def _sample(self, share: float, runs: int) -> Sample:
        return sample_of(self.trace.tuples, int(self.budget * share / runs))

    def _ask(self, groupings: Sequence[str], sample: Sample, what: str) -> None:
        runs = [self._run(text, sample) for text in groupings]
        self.progress.start(len(runs) * sample.tuples, what)
        for text, one in zip(groupings, self._measure(sample, runs), strict=True):
            if one.row is None:
                self.failed[text] = one.error or ""
            else:
                # Equals are decided by the place in the whole list.
                self.rows[text] = dataclasses.replace(one.row, order=self.groupings.index(text))
                self.warnings[text] = one.warnings
        self._kg()

    def _measure(self, sample: Sample, runs: Sequence[ReplayOptions]) -> list[MeasuredCandidate]:
        return measure(self.trace, sample, runs, self._at_once(runs), self.progress.advance)

    def _at_once(self, runs: Sequence[ReplayOptions]) -> int:
        """Return how many of the runs memory holds at once, at most the threads there are."""
        ever = max(run.workers for run in runs) / self.workers
        own = (float(str(self.offered.description["memory_mb"])) - BASE_MB) * 1e6 * max(ever, 1.0)
        return max(1, min(self.question.jobs, int(free_memory() * _FOR_RUNS / max(own, 1.0))))

    def _kg(self) -> Row:
        row = self.rows.get(KEY_GROUPING)
        if row is None:
            raise RunError(f"{KEY_GROUPING}, which all is compared with: {self.failed[KEY_GROUPING]}")
        return row

    def _in_order(self) -> list[Row]:
        return sorted(self.rows.values(), key=lambda row: row.order)

    def _left(self) -> list[str]:
        """Return the groupings of the second pass: first choices, least latency and load, kg, and those asked."""
        rows, names = self._in_order(), [self.groupings[row.order] for row in self._in_order()]
        asked = {select(text).text for text in self.question.groupings}
        wanted = {place for place, row in enumerate(rows) if row.grouping in {KEY_GROUPING, *asked}}
        if fit := balanced(rows):
            # All others are compared with these two.
            wanted.add(rows.index(min(fit, key=lambda row: (row.compared_ms, row.order))))
            wanted.add(rows.index(min(fit, key=lambda row: (row.worker_load_max or 0, row.order))))
        remaining = list(rows)
        for _ in range(_LEFT):
            choice = choose(remaining, self.question.targets)
            wanted.add(rows.index(choice.recommended))
            if choice.runner_up is None:
                break
            remaining = [row for row in remaining if not same(row, choice.recommended)]
        return [names[place] for place in sorted(wanted)]

    def _warnings(self, choice: Choice) -> list[str]:
        """Return the warnings on the recommended grouping and on key grouping, without those on the load."""
        texts = [self.groupings[choice.recommended.order], KEY_GROUPING]
        said = dict.fromkeys(line for text in texts for line in self.warnings[text])
        return [line for line in said if not line.startswith("offered load")]

    def _least(self, rows: Sequence[Row], sample: Sample) -> list[LeastWorkers]:
        """Search the least number of workers for groupings that were replayed."""
        texts = {row.grouping: self.groupings[row.order] for row in rows}
        return self._search(texts, {row.grouping: row for row in rows}, sample)

    def by_workers(self) -> list[LeastWorkers]:
        """Search the least number of workers for all groupings."""
        texts = {select(text).text: text for text in self.groupings}
        return self._search(texts, {}, self._sample(1.0, _TRIES * len(texts) // 2))

    def _search(self, texts: Mapping[str, str], known: Mapping[str, Row], sample: Sample) -> list[LeastWorkers]:
        self.progress.start(None, "workers")
        return search_workers(
            self.offered, self.question.targets, texts, known, lambda runs: self._measure(sample, runs),
            whole=sample.whole,
        )  # fmt: skip


def _fifths(tuples: int) -> list[tuple[int, int]]:
    size = -(-tuples // SEGMENTS)
    return [(first, min(first + size, tuples)) for first in range(0, tuples, size)]


def _note_compiling(groupings: Sequence[str], tuples: int, progress: Watcher) -> None:
    """Note that compiling takes time, if some groupings are not compiled yet."""
    count = len(not_compiled([ReplayOptions(text, 1) for text in groupings]))
    if count and tuples > SMALL:
        what = "grouping, which takes some 5 s" if count == 1 else "groupings, which takes some 5 s each"
        progress.note(f"compiling {count} {what} the first time")
