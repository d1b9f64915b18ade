"""Work on a thread of its own, so that an interrupt never falls into the middle of it."""

import contextlib
import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

__all__ = ["Aside", "unhurried"]

T = TypeVar("T")


class Aside(Generic[T]):
    """A function on a thread of its own: `done` is set when it has ended, with its outcome or its failure."""

    def __init__(self, function: Callable[[], T]) -> None:
        self.done = threading.Event()
        self.outcome: list[T] = []
        self.failure: BaseException | None = None
        self._function = function
        threading.Thread(target=self._work, daemon=True).start()

    def _work(self) -> None:
        try:
            self.outcome.append(self._function())
        except BaseException as error:  # noqa: BLE001 (handed to the thread that waits)
            self.failure = error
        finally:
            self.done.set()


def unhurried(function: Callable[[], object], seconds: float = 30) -> None:
    """Do something that must be done, whatever it raises and however often the user interrupts meanwhile."""
    aside = Aside(function)
    until = time.monotonic() + seconds
    while not aside.done.is_set() and time.monotonic() < until:
        with contextlib.suppress(KeyboardInterrupt):
            aside.done.wait(until - time.monotonic())
