"""Where a process begins: an interrupt while the program is still being imported ends it as silently as a later one."""

import os
import sys

__all__ = ["main"]

_INTERRUPTED = 130


def main() -> None:
    """Import the command line and run it."""
    try:
        _run()
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)
    finally:
        # An interrupt within code that is run from a string (named tuples are made so) counts for Python as unhandled
        # even when it was caught, and the process is ended by the signal; the next such code takes that back.
        exec("")


def _run() -> None:
    import signal  # with it comes enum: not before `main` can catch an interrupt

    early = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if early:
        # Nothing is begun yet, so nothing is to be undone. An exception would not do: Python prints one that is raised
        # within a callback of its import system, and goes on.
        signal.signal(signal.SIGINT, lambda *_: os._exit(_INTERRUPTED))
    from streamgroup.cli import app

    if early:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    app.main()
