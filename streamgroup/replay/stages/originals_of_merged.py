"""The originals of merged tuples: what happened to a merged tuple happened to each of them."""

from collections import deque
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamgroup.replay.accounting.event_accounting import Measuring
from streamgroup.replay.accounting.recorder import NEVER_AGAIN
from streamgroup.replay.stages.combiner import Members
from streamgroup.replay.tuple_arrays import OPEN, Events, each_column

__all__ = ["Originals"]

I64 = NDArray[np.int64]


class Originals:
    """Takes merged tuples in the order in which they left, and hands over originals in that of the stream.

    Another thread may call `expect` meanwhile. The first `warmup` originals are not measured.
    """

    def __init__(self, measuring: Measuring, warmup: int) -> None:
        self._measuring, self._warmup = measuring, warmup
        self._expected: deque[Members] = deque()
        # Original `first` + i is at i; those whose finish is OPEN have not come.
        self._first = 0
        self._events: Events | None = None
        self._paid = np.zeros(0, dtype=np.int64)

    def expect(self, members: Members) -> None:
        """Note the originals of merged tuples that will be taken."""
        self._expected.append(members)

    def take(self, begin: int, events: Events, again: I64) -> None:
        """Take merged tuples, the first of which is number `begin`; none was sent again."""
        del again
        end = begin + len(events.key)
        while self._expected and self._expected[0].unit[0] < end:
            members = self._expected[0]
            low, high = np.searchsorted(members.unit, [begin, end]).tolist()
            if low < high:
                self._put(Members(*(column[low:high] for column in members)), begin, events)
            if high < len(members.unit):
                break
            self._expected.popleft()
        self._hand_over()

    def finish(self, events: Events, tuples: int) -> None:
        """End the last window; `events` are none, `tuples` how many merged ones there were."""
        del tuples
        self._measuring.finish(events, self._first)

    def _put(self, members: Members, begin: int, events: Events) -> None:
        kept = self._room(events, int(members.seq.max()) + 1 - self._first)
        at, unit = members.seq - self._first, members.unit - begin
        columns: dict[str, Any] = kept._asdict()
        for name, column in columns.items():
            if name in ("source", "arrival"):
                column[at] = getattr(members, name)
            elif column is not None:
                column[at] = getattr(events, name)[unit]
        assert kept.start is not None
        # The first measured one of a merged tuple brings the time for which a worker was busy, the others none.
        measured = members.seq >= self._warmup
        before = np.append(False, measured[:-1] & (members.unit[1:] == members.unit[:-1]))
        self._paid[at] = np.where(measured & ~before, kept.start[at], kept.finish[at])

    def _room(self, like: Events, size: int) -> Events:
        """Return columns of at least a size."""
        old = 0 if self._events is None else len(self._events.finish)
        if self._events is None or old < size:
            new = 1 << max(size - 1, 1).bit_length()
            larger = each_column(like, lambda column: np.full(new, OPEN, dtype=np.int64).astype(column.dtype))
            if self._events is not None:
                for to, column in zip(larger, self._events, strict=True):
                    if to is not None and column is not None:
                        to[:old] = column
            self._events = larger
            self._paid = np.append(self._paid, np.zeros(new - old, dtype=np.int64))
        return self._events

    def _hand_over(self) -> None:
        """Hand over the originals before the first that has not come."""
        if self._events is None:
            return
        missing = np.flatnonzero(self._events.finish == OPEN)
        count = int(missing[0]) if len(missing) else len(self._events.finish)
        if count == 0:
            return

        def taken(column: NDArray[Any]) -> NDArray[Any]:
            part = column[:count].copy()
            part.flags.writeable = False
            column[:-count] = column[count:].copy()
            return part

        events, paid = each_column(self._events, taken), taken(self._paid)
        self._events.finish[-count:] = OPEN
        self._measuring.take(self._first, events, NEVER_AGAIN, paid)
        self._first += count
