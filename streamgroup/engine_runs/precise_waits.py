"""Waits until a moment of a clock, asleep or awake, as precisely as the system allows."""

import ctypes
import time
from collections.abc import Callable

__all__ = ["sleep_until", "spin_until", "wake_promptly"]

# Option of `prctl`: how late the kernel may wake a thread to save power, in ns. It is 50 us otherwise.
_SET_TIMER_SLACK = 29
# Below this it is not slept but waited, in ns.
_SHORT = 20_000


def sleep_until(until: int, clock: Callable[[], int]) -> None:
    """Sleep until a moment of the clock; the last microseconds are waited."""
    left = until - clock()
    while left > 0:
        if left > _SHORT:
            time.sleep((left - _SHORT / 2) / 1e9)
        left = until - clock()


def spin_until(until: int, clock: Callable[[], int]) -> None:
    """Keep the core busy until a moment of the clock."""
    while clock() < until:
        pass


def wake_promptly() -> None:
    """Ask the kernel to wake this thread without the delay that saves power; without effect where it cannot."""
    try:
        ctypes.CDLL(None).prctl(_SET_TIMER_SLACK, 1, 0, 0, 0)
    except (OSError, AttributeError):
        # Not Linux.
        return
