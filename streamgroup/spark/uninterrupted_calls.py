"""Background calls: an interrupt of the main thread cannot break them off in the middle."""

import contextlib
import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

__all__ = ["BackgroundCall", "complete"]

T = TypeVar("T")


class BackgroundCall(Generic[T]):
    """A call of a function on a thread of its own.

    `done` is set when the call has ended. `outcome` then holds its result, or `failure` its exception.
    """

    def __init__(self, function: Callable[[], T]) -> None:
        self.done = threading.Event()
        self.outcome: list[T] = []
        self.failure: BaseException | None = None
        self._function = function
        threading.Thread(target=self._call, daemon=True).start()

    def _call(self) -> None:
        try:
            self.outcome.append(self._function())
        except BaseException as error:  # noqa: BLE001 (kept for the thread that waits)
            self.failure = error
        finally:
            self.done.set()


def complete(function: Callable[[], object], seconds: float = 30) -> None:
    """Call a function that must run to its end, for at most `seconds`; its errors and interrupts are ignored."""
    call = BackgroundCall(function)
    until = time.monotonic() + seconds
    while not call.done.is_set() and time.monotonic() < until:
        with contextlib.suppress(KeyboardInterrupt):
            call.done.wait(until - time.monotonic())
