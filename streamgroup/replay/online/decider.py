"""The decisions of one source, in its process: the grouping's state, which grows with the keys that come."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgroup.base.errors import RunError, UsageError
from streamgroup.base.limits import MOST_SOURCES, MOST_WORKERS
from streamgroup.base.numbers_and_durations import parse_duration_ns
from streamgroup.engines.keys.typed_key_values import check_kind
from streamgroup.groupings.protocol import Context, WorkersChange
from streamgroup.replay.interpreted_or_compiled import Tiers
from streamgroup.replay.online.compiled_decision import FULL, Bound, Entry
from streamgroup.replay.online.context_of_keys import ContextRule
from streamgroup.replay.online.deliver_finished_tuples import Finishes, deliver_block
from streamgroup.replay.online.grow_state_for_new_keys import (
    find_key_rows,
    grown_state,
    own_rows,
    put_rows,
    without_limit,
)
from streamgroup.replay.online.known_keys import KnownKeys
from streamgroup.replay.running_grouping import RunningGrouping
from streamgroup.replay.scenario.grouping_selection import select
from streamgroup.replay.scenario.options import ReplayOptions, check_seeds
from streamgroup.replay.simulation.choose import CHOSEN, FULL_STATE, Sources, choose_block
from streamgroup.replay.simulation.chunk_driven import frozen
from streamgroup.replay.tuple_arrays import Choices, Chunk, Span

__all__ = ["Decided", "Decider"]

I64 = NDArray[np.int64]


class Decided(NamedTuple):
    """What was decided for tuples: `worker` int32, and, where the grouping reports it, `hot` int32, the workers allowed
    to a tuple treated as hot (else 0), and `entries` int64, the size of the detector.
    """

    worker: NDArray[np.int32]
    hot: NDArray[np.int32] | None
    entries: I64 | None


class Decider:
    """Decides as source `source` of `options.sources`, from options of a replay; see `streamgroup.online.Partitioner`.

    `keys` is for how many keys there is room before the state grows. Interpreted, nothing is compiled; None takes code
    that is at hand, and is for batches only.
    """

    def __init__(self, options: ReplayOptions, source: int, *, keys: int = 0, interpreted: bool | None = False) -> None:
        selection = select(options.grouping)
        _check(options, source)
        if reason := selection.params.not_alone(options.sources):
            raise UsageError(f"-g {selection.text}: {reason}")
        if seen := selection.params.sees():
            raise UsageError(
                f"-g {selection.text} reads {', '.join(seen)} of the simulated workers, which no source knows"
            )
        network = parse_duration_ns(options.network_delay, "--network-delay")
        control = options.control_delay
        self._rule = ContextRule(
            selection.params, options, network,
            network if control is None else parse_duration_ns(control, "--control-delay"),
        )  # fmt: skip
        self.options, self.selection = options, selection
        self.source = source
        self.known = KnownKeys()
        self._live = np.arange(options.workers, dtype=np.int64)
        self._ever = options.workers
        self._where, least = find_key_rows(self.started)
        self.capacity = max(keys, least)
        self.grouping = RunningGrouping(selection, self._context, self._live, changes=False)
        self._tiers = Tiers(1, interpreted=interpreted)
        self._largest = np.zeros(1, dtype=np.int64)
        self._entry: Entry | None = None
        self._take(without_limit(self.grouping.state, self._where))
        self._choose = self._tiers.made(choose_block, self.grouping.code)
        self._deliver = self._tiers.made(deliver_block, self.grouping.code)
        self._one = self._chunk(np.zeros(1, np.uint32), np.zeros(1, np.int64))
        self._entry = Entry(self._bound(), self.grouping.code) if interpreted is False else None

    @property
    def largest_entries(self) -> int:
        """Return the most state entries so far of a grouping that counts them itself, else 0."""
        return int(self._largest[0])

    @property
    def largest_state(self) -> int | None:
        """Return the most state entries of this source so far, None where the grouping reports none."""
        entries = self.grouping.entries
        return self.grouping.most_entries or None if entries is None else int(self._largest[0])

    def _context(self, live: I64) -> Context:
        return self._rule.context(self.known.keys, live, self.capacity)

    def started(self, capacity: int) -> Any:
        """Return a state with room for so many keys, as it begins."""
        module, params = self.selection.module, self.selection.params
        return module.start(params, self._rule.context([], self._live, capacity))

    def _take(self, state: Any) -> None:
        """Go on with a state; rows of keys that are added are written into its arrays."""
        state, self._rows = own_rows(state, self._where)
        self.grouping.take(state)

    def go_on(self, state: Any, keys: Sequence[bytes | None], capacity: int, largest: int) -> None:
        """Go on with what another decider with the same options had come to; see `saved_state`."""
        self.known, self.capacity, self._largest[0] = KnownKeys(), capacity, largest
        self.known.add(keys)
        self._take(state)
        self._rebind()

    def _rebind(self) -> None:
        if self._entry is not None:
            self._entry.bind(self._bound())

    def _bound(self) -> Bound:
        grouping = self.grouping
        return Bound(grouping.hooks, Sources(
            self._ever, None, None, None, grouping.choices, grouping.entries, grouping.detector, grouping.room,
            self._largest,
        ))  # fmt: skip

    def add(self, keys: Sequence[bytes | None]) -> None:
        """Add distinct keys that are not known."""
        begin = len(self.known.keys)
        if begin + len(keys) > self.capacity:
            self._grow(begin + len(keys))
        self.known.add(keys)
        if self._rows and keys:
            fresh = self.selection.module.start(self.selection.params, self._rule.context(keys, self._live))
            put_rows(self._rows, self._where, begin, fresh)

    def ids(self, keys: Sequence[bytes | None]) -> NDArray[np.uint32]:
        """Return the ids of keys; new ones are added, in the order they come in."""
        place_of = self.known.ids
        try:
            return np.fromiter(map(place_of.__getitem__, keys), np.uint32, len(keys))
        except KeyError:
            self.add([key for key in dict.fromkeys(keys) if key not in place_of])
        return np.fromiter(map(place_of.__getitem__, keys), np.uint32, len(keys))

    def _grow(self, keys: int) -> None:
        while self.capacity < keys:
            self.capacity *= 2
        context = self._context(self._live)
        fresh = self.selection.module.start(self.selection.params, context)
        self._take(grown_state(self.grouping.state, self._where, fresh))
        self._rebind()

    def one(self, key: int, now: int) -> int:
        """Choose for a tuple of a known key."""
        if self._entry is None:
            self._one.key.flags.writeable = self._one.arrival.flags.writeable = True
            self._one.key[0], self._one.arrival[0] = key, now
            return int(self._run(self._one).worker[0])
        while True:
            worker = self._entry.decide(self._entry.address, None, self.source, key, now)
            if worker >= 0:
                return worker
            if worker != FULL:
                raise self._no_worker()
            self.grouping.grow(1)
            self._rebind()

    @property
    def fast(self) -> tuple[Any, int] | None:
        """Return the compiled function that decides one tuple, and where the state is, None if it is interpreted."""
        return None if self._entry is None else (self._entry.decide, self._entry.address)

    def many(self, keys: NDArray[np.uint32], now: I64) -> Decided:
        """Choose for tuples of known keys, one after the other, at times that do not go back."""
        return self._run(self._chunk(keys, now))

    def _chunk(self, keys: NDArray[np.uint32], now: I64) -> Chunk:
        source = np.full(len(keys), self.source, dtype=np.int32)
        return Chunk(0, self.options.sources, frozen(now), frozen(keys), None, frozen(source))

    def _run(self, chunk: Chunk) -> Decided:
        size = len(chunk.key)
        grouping = self.grouping
        hot = None if grouping.choices is None else np.zeros(size, dtype=np.int32)
        entries = None if grouping.detector is None else np.zeros(size, dtype=np.int64)
        choices = Choices(np.zeros(size, dtype=np.int32), hot, entries)
        begin = 0
        while begin < size:
            bound = self._bound()
            with grouping.blamed("a hook failed"):
                reason, begin = self._choose(bound.grouping, bound.sources, chunk, choices, Span(begin, size))
            if reason == FULL_STATE:
                grouping.grow(1)
                self._rebind()
            elif reason != CHOSEN:
                raise self._no_worker()
        return Decided(*choices)

    def finished(self, finishes: Finishes) -> None:
        """Deliver what workers report of tuples, in the order of the finishes."""
        if not self.grouping.has_feedback:
            return
        for worker in finishes.worker[(finishes.worker < 0) | (finishes.worker >= self._ever)].tolist():
            raise UsageError(f"worker {worker} finished a tuple, and is none of 0..{self._ever - 1}")
        for place in range(len(finishes.worker)):
            # Room is for tuples with all that comes of them, so it is asked for before each.
            self.grouping.grow(1)
            self._deliver(self.grouping.hooks, Finishes(*(column[place : place + 1] for column in finishes)))
        self._rebind()

    def change(self, live: Sequence[int], now: int) -> None:
        """Go on with other workers; ids are never reused, and new ones ascend."""
        before, after = set(self._live.tolist()), sorted(set(live))
        joined = tuple(worker for worker in after if worker not in before)
        if not after or any(worker < self._ever for worker in joined) or after[-1] >= MOST_WORKERS:
            raise UsageError(
                f"the live workers {after} follow {sorted(before)}", f"new workers have ids from {self._ever} on"
            )
        if not callable(getattr(type(self.grouping.state), "workers_changed", None)):
            raise UsageError(f"-g {self.selection.text}: this grouping has a fixed number of workers")
        self._live = np.array(after, dtype=np.int64)
        self._ever = max(self._ever, after[-1] + 1)
        self.grouping.change(WorkersChange(now, self._live, joined, tuple(sorted(before - set(after)))))
        self._take(self.grouping.state)
        self._rebind()

    def _no_worker(self) -> RunError:
        return RunError(f"{self.selection.text}: it chose a worker that does not exist")


def _check(options: ReplayOptions, source: int) -> None:
    if not 1 <= options.workers <= MOST_WORKERS:
        raise UsageError(f"{options.workers} workers are not between 1 and {MOST_WORKERS}")
    if not 1 <= options.sources <= MOST_SOURCES:
        raise UsageError(f"{options.sources} sources are not between 1 and {MOST_SOURCES}")
    check_seeds(options)
    check_kind(options.key_type)
    if not 0 <= source < options.sources:
        raise UsageError(f"source {source} is not one of {options.sources}: 0..{options.sources - 1}")
