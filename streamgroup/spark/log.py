"""What the JVM of a driver prints: log lines, and between them Spark's own progress bars."""

import contextlib
import re
from pathlib import Path

__all__ = ["FinishedTasks", "log_tail", "log_text"]

_BAR = re.compile(r"\[Stage \d+:[^\]\r\n]*\((\d+) \+ \d+\) / \d+\]")
_PROGRESS = re.compile(r"\r(?:\[Stage [^\r\n]*| +)?")


def log_text(log: Path | None) -> str:
    """Return the log without progress bars; nothing if there is none."""
    with contextlib.suppress(OSError):
        if log is not None:
            return _PROGRESS.sub("", log.read_text(errors="replace")).strip()
    return ""


def log_tail(log: Path | None, lines: int = 12) -> str | None:
    """Return the last lines of the log under a heading; None without a log."""
    text = log_text(log)
    return "\n".join(["the end of Spark's log:", *text.splitlines()[-lines:]]) if text else None


class FinishedTasks:
    """Number of finished tasks of the running stage that has most, by the bars that are added to a log."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._read = log.stat().st_size
        self._finished = 0

    def count(self) -> int:
        """Read what was added, and return the number as of the last bar."""
        with contextlib.suppress(OSError), self._log.open("rb") as file:
            file.seek(self._read)
            added = file.read()
            self._read += len(added)
            for line in reversed(added.decode(errors="replace").split("\r")):
                if found := _BAR.findall(line):
                    self._finished = max(map(int, found))
                    break
        return self._finished
