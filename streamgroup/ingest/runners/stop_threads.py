"""Stops the threads of a local ingest when it is interrupted, or when another thread fails."""

import threading

__all__ = ["Stopped", "check_stopped", "stop_on"]

_thread = threading.local()


class Stopped(BaseException):
    """Ends the work of a thread whose results are no longer needed."""


def stop_on(stop: threading.Event) -> None:
    """Make `check_stopped` of this thread depend on an event."""
    _thread.stop = stop


def check_stopped() -> None:
    """Raise Stopped when work is to end; for steps with seconds between two blocks. No effect in Spark."""
    stop: threading.Event | None = getattr(_thread, "stop", None)
    if stop is not None and stop.is_set():
        raise Stopped
