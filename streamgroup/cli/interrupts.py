"""Interrupts (Ctrl-C): an exception where Python runs, the end of the process where compiled code does not return."""

import os
import select
import signal
import threading
import time
from types import FrameType

from streamgroup.base.storage.process_tag import remove_partials
from streamgroup.cli.error_output import INTERRUPTED

__all__ = ["on_interrupt", "watch_interrupts"]

# How long compiled code may keep Python from noticing an interrupt, and what comes sooner than which is no second one.
_PATIENCE_S = 5.0
_REPEATED_S = 1.0
_noticed = threading.Event()


def on_interrupt(number: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt, but not within a callback of the import system, where it would be lost: soon after."""
    _noticed.set()
    if _in_import_callback(frame):
        again = threading.Timer(0.001, os.kill, (os.getpid(), number))
        again.daemon = True
        again.start()
        return
    raise KeyboardInterrupt


def _in_import_callback(frame: FrameType | None) -> bool:
    """Return whether Python is in such a callback, or in what that calls: this handler, where a signal comes twice."""
    while frame is not None:
        if frame.f_code.co_name == "cb" and "importlib" in frame.f_code.co_filename:
            return True
        frame = frame.f_back
    return False


def watch_interrupts() -> None:
    """End the process at an interrupt that Python does not notice for some seconds, and at a second one.

    Python calls a handler between two of its own instructions: not while it waits for compiled code, which a grouping
    of a user may keep running for ever. What is half written is removed.
    """
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    threading.Thread(target=_watch, args=(reader,), name="streamgroup-interrupts", daemon=True).start()


def _watch(reader: int) -> None:
    first: float | None = None
    while True:
        waits = first is not None and not _noticed.is_set()
        ready, _, _ = select.select([reader], [], [], _PATIENCE_S if waits else None)
        now = time.monotonic()
        if not ready:
            # Spark has a handler of its own.
            if not _noticed.is_set() and signal.getsignal(signal.SIGINT) is on_interrupt:
                break
            _noticed.set()
        elif signal.SIGINT in os.read(reader, 64):
            if first is not None and now - first > _REPEATED_S:
                break
            first = first or now
    remove_partials()
    os._exit(INTERRUPTED)
