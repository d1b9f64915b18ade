"""Runs with a checkpoint that are killed between batches."""

import json
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

__all__ = ["committed", "killed_after"]


def committed(checkpoint: Path) -> int:
    """Count the batches that are committed."""
    try:
        return len(json.loads((checkpoint / "clock.json").read_text())["commits"])
    except OSError:
        return 0


def killed_after(command: Sequence[str], checkpoint: Path, batches: int) -> None:
    """Start a run of 12 batches, and kill it when so many are committed."""
    started = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 200
    while committed(checkpoint) < batches and time.monotonic() < until and started.poll() is None:
        time.sleep(0.05)
    assert started.poll() is None, started.communicate()[1]
    started.send_signal(signal.SIGKILL)
    started.communicate()
    assert batches <= committed(checkpoint) < 12
    # Until its JVM has noticed.
    time.sleep(5)
