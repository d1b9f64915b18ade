"""The live workers as they join, leave and crash, and when each was live."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from streamgroup.base.errors import RunError
from streamgroup.cluster.membership import Event, worker_of
from streamgroup.groupings.protocol import WorkersChange
from streamgroup.replay.tuple_arrays import NEVER

__all__ = ["Members"]

I64 = NDArray[np.int64]


class Members:
    """The workers of a run: `workers` at the start, and what `events` make of them.

    `alive` uint8[n] says which of the n workers there ever can be are live. `crashes` counts those still to come.
    """

    def __init__(self, events: Sequence[Event], workers: int, seed: int) -> None:
        self._events = list(events)
        self._seed = seed
        most = workers + sum(event.kind == "join" for event in events)
        self.alive: NDArray[np.uint8] = (np.arange(most) < workers).astype(np.uint8)
        self.ever = workers
        self._came = np.zeros(most, dtype=np.int64)
        self._went = np.full(most, NEVER, dtype=np.int64)
        self._left = np.zeros(most, dtype=bool)
        # From which tuple on which workers were live, and how many there had ever been.
        self._history: list[tuple[int, NDArray[np.uint8], int]] = [(0, self.alive.copy(), workers)]

    @property
    def most(self) -> int:
        """Count the workers that there can ever be."""
        return len(self.alive)

    @property
    def live(self) -> I64:
        """Return the ids of the live workers, ascending."""
        return np.flatnonzero(self.alive).astype(np.int64)

    @property
    def events(self) -> int:
        """Count the events that are still to come."""
        return len(self._events)

    @property
    def changes(self) -> bool:
        """Return whether anything changed so far."""
        return len(self._history) > 1

    @property
    def crashes(self) -> bool:
        """Return whether a crash is still to come."""
        return any(event.kind == "crash" for event in self._events)

    def next_time(self) -> int:
        """Return the time of the next event that has one, `NEVER` if none has."""
        return min((event.time_ns for event in self._events if event.time_ns is not None), default=NEVER)

    def next_index(self) -> int:
        """Return the tuple before which the next event comes that has one, -1 if none has."""
        return min((event.index for event in self._events if event.index is not None), default=-1)

    def indexes(self) -> list[int]:
        """Return the tuples before which events come."""
        return [event.index for event in self._events if event.index is not None]

    def due(self, now: int, index: int) -> list[Event]:
        """Take the events that are due at `now`, and before the tuple `index` (-1: those by time alone)."""
        found = [
            event
            for event in self._events
            if (event.time_ns is not None and event.time_ns <= now)
            or (event.index is not None and event.index <= index)
        ]
        self._events = [event for event in self._events if event not in found]
        return sorted(found, key=lambda event: event.number)

    def apply(self, event: Event, now: int, pointer: int) -> WorkersChange:
        """Let an event happen; RunError if it cannot, or no worker is left."""
        before = self._history[-1][0]
        assert pointer >= before, f"a change before tuple {pointer} after one before tuple {before}"
        joined: tuple[int, ...] = ()
        left: tuple[int, ...] = ()
        if event.kind == "join":
            joined = (self.ever,)
            self.alive[self.ever] = 1
            self._came[self.ever] = now
            self.ever += 1
        else:
            gone = worker_of(event, self.live.tolist(), self._seed)
            left = (gone,)
            self.alive[gone] = 0
            self._went[gone] = now
            self._left[gone] = event.kind == "leave"
        self._history.append((pointer, self.alive.copy(), self.ever))
        if not self.alive.any():
            raise RunError(
                f"no worker is left at {now / 1e9:g} s, before tuple {pointer}",
                f"let fewer than {self.ever} workers leave or crash",
            )
        return WorkersChange(now, self.live, joined, left)

    def at(self, tuples: I64) -> tuple[NDArray[np.bool_] | None, I64 | None]:
        """Return the workers live when tuples arrived (bool[k, ever]) and how many ever were; None: all, always."""
        if not self.changes:
            return None, None
        pointers = np.array([pointer for pointer, _, _ in self._history], dtype=np.int64)
        place = np.searchsorted(pointers, tuples, side="right") - 1
        alive = np.array([who for _, who, _ in self._history], dtype=bool)[place, : self.ever]
        return alive, np.array([count for _, _, count in self._history], dtype=np.int64)[place]

    def changes_in(self, first: I64, tuples: int) -> tuple[I64 | None, I64 | None]:
        """Return how many workers joined, and left or crashed, in each window: int64[k] each, None where none did.

        `first` int64[k] is the first tuple of each window, `tuples` where the last one ends. A change counts in the
        window of the tuple that it comes before; those before the first window and after the last tuple in none.
        """
        if not self.changes:
            return None, None
        ever = np.array([count for _, _, count in self._history], dtype=np.int64)
        pointers = np.array([pointer for pointer, _, _ in self._history[1:]], dtype=np.int64)
        window = np.searchsorted(first, pointers, side="right") - 1
        inside, joins = (window >= 0) & (pointers < tuples), np.diff(ever) > 0
        joined, left = (np.bincount(window[inside & which], minlength=len(first)) for which in (joins, ~joins))
        return joined.astype(np.int64), left.astype(np.int64)

    def crashed_at(self) -> I64:
        """Return when each worker crashed, `NEVER` for the others: int64[ever]."""
        return np.where(self._left, NEVER, self._went)[: self.ever]

    def alive_times(self, first: int, last: int, free: I64) -> tuple[I64, I64] | None:
        """Return from when to when each worker was live between `first` and `last`; None if nothing changed.

        A worker that left is live until it has served its queue (`free`).
        """
        if not self.changes:
            return None
        went = np.where(self._left, np.maximum(self._went, free), self._went)
        return (
            np.clip(self._came, first, last)[: self.ever],
            np.clip(went, first, last)[: self.ever],
        )
