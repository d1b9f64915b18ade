"""Where the tasks of a run on one machine meet: files in the directory of the run, and the clock that all share.

It is the monotonic clock of the machine, the same in all processes.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

__all__ = ["Start", "agreed_start", "announce", "write_whole"]

_PAUSE_S = 0.005


class Start(NamedTuple):
    """When the first arrival can be, in ns on the clock; from the first task that was ready to the last, in ns."""

    at: int
    ready_spread: int


def write_whole(path: Path, data: bytes) -> None:
    """Write a file that others see whole or not at all."""
    unfinished = path.with_name(f"{path.name}.unfinished")
    unfinished.write_bytes(data)
    unfinished.rename(path)


def announce(directory: Path, name: str) -> None:
    """Say that a task is ready."""
    write_whole(directory / f"{name}.ready", str(time.perf_counter_ns()).encode())


def agreed_start(directory: Path, tasks: int, lead_ns: int, pause: Callable[[float], None] = time.sleep) -> Start:
    """Wait until so many tasks are ready; all get the same start, `lead_ns` after the last of them."""
    while True:
        found = list(directory.glob("*.ready"))
        if len(found) >= tasks:
            ready = [int(path.read_bytes()) for path in found]
            return Start(max(ready) + lead_ns, max(ready) - min(ready))
        pause(_PAUSE_S)
