"""How the threads of an ingest in this process learn that it was interrupted, or that another thread failed."""

import threading

__all__ = ["Stopped", "check_stopped", "listen"]

_thread = threading.local()


class Stopped(BaseException):
    """Ends the work of a thread whose results nobody waits for."""


def listen(stop: threading.Event) -> None:
    """Let `check_stopped` of this thread look at an event."""
    _thread.stop = stop


def check_stopped() -> None:
    """Raise Stopped where work is to end: for steps with seconds between two blocks. Without effect in Spark."""
    stop: threading.Event | None = getattr(_thread, "stop", None)
    if stop is not None and stop.is_set():
        raise Stopped
