"""Entry point: an interrupt while the program is being imported ends it as silently as a later one."""

import gc
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
        # Python ends a process by the signal, not by its exit code, after an interrupt in code that was compiled from a
        # string (as that of named tuples and dataclasses), even a caught one. Running any such code resets this.
        exec("")


def _open_closed_streams() -> None:
    """Let no other file become stdin, stdout or stderr, and so be closed or written to by what uses these by number.

    Python has looked at them before: they stay closed for what reads and prints.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            # The lowest number that is free is this one.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)


def _run() -> None:
    import signal  # imports enum: not before `main` can catch an interrupt

    _open_closed_streams()

    # Imports make many objects and no garbage: looking for it every 700 objects takes a tenth of a start.
    gc.set_threshold(100_000, 20, 20)
    is_default = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_default:
        # Nothing has begun, so there is nothing to clean up. An exception would not do: Python prints one that is
        # raised within a callback of its import system, and continues.
        signal.signal(signal.SIGINT, lambda *_: os._exit(_INTERRUPTED))
    from streamgroup.cli import app

    if is_default:
        from streamgroup.cli.interrupts import on_interrupt, watch_interrupts

        watch_interrupts()
        signal.signal(signal.SIGINT, on_interrupt)
    app.main()
