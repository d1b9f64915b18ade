"""A binary heap of messages in flight, ordered by due time.

Equal times go by source, then by creation, as everything in a replay does.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgroup.kernels.compiling.kernel_decorators import njit

__all__ = ["NEVER", "Messages", "doubled", "make_messages", "next_due", "pop", "push"]

# Later than any time there is.
NEVER = np.int64((1 << 63) - 1)
_DUE, _ORDER, _KEY, _WHAT = range(4)
# Messages that can be created in all: sources are 16 bits.
_CREATED_BITS = np.int64(46)


class Messages(NamedTuple):
    """`row` int64[room, 4]: time due, order at that time, key, what; `size` int64[2]: on their way, ever created."""

    row: NDArray[np.int64]
    size: NDArray[np.int64]


def make_messages(room: int) -> Messages:
    """Make a queue with room for that many messages, empty."""
    return Messages(np.zeros((room, 4), dtype=np.int64), np.zeros(2, dtype=np.int64))


def doubled(messages: Messages) -> Messages:
    """Return a queue with the same messages and twice the room."""
    return messages._replace(row=np.concatenate([messages.row, np.zeros_like(messages.row)]))


@njit(forceinline=True)
def next_due(messages: Any) -> Any:
    """Return the time at which the next message is due, NEVER if there is none."""
    return messages.row[0, _DUE] if messages.size[0] > 0 else NEVER


@njit(forceinline=True)
def _is_before(row: Any, one: Any, due: Any, order: Any) -> Any:
    return row[one, _DUE] < due or (row[one, _DUE] == due and row[one, _ORDER] < order)


@njit(forceinline=True)
def _put(row: Any, place: Any, due: Any, order: Any, key: Any, what: Any) -> None:
    row[place, _DUE] = due
    row[place, _ORDER] = order
    row[place, _KEY] = key
    row[place, _WHAT] = what


@njit(forceinline=True)
def push(messages: Any, due: Any, source: Any, key: Any, what: Any) -> None:
    """Send a message that is due at a time; there must be room."""
    row, sizes = messages.row, messages.size
    order = (np.int64(source) << _CREATED_BITS) + sizes[1]
    place = sizes[0]
    sizes[0] += 1
    sizes[1] += 1
    while place > 0:
        above = (place - 1) >> 1
        if _is_before(row, above, due, order):
            break
        _put(row, place, row[above, _DUE], row[above, _ORDER], row[above, _KEY], row[above, _WHAT])
        place = above
    _put(row, place, due, order, key, what)


@njit(forceinline=True)
def pop(messages: Any) -> Any:
    """Take the message that is due next: (key, what); there must be one."""
    row, sizes = messages.row, messages.size
    key, what = row[0, _KEY], row[0, _WHAT]
    size = sizes[0] - 1
    sizes[0] = size
    due, order = row[size, _DUE], row[size, _ORDER]
    place = np.int64(0)
    while 2 * place + 1 < size:
        below = 2 * place + 1
        if below + 1 < size and _is_before(row, below + 1, row[below, _DUE], row[below, _ORDER]):
            below += 1
        if not _is_before(row, below, due, order):
            break
        _put(row, place, row[below, _DUE], row[below, _ORDER], row[below, _KEY], row[below, _WHAT])
        place = below
    _put(row, place, due, order, row[size, _KEY], row[size, _WHAT])
    return key, what
