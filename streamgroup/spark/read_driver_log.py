"""The log of the driver's JVM, without Spark's progress bars."""

import contextlib
import re
from pathlib import Path

from streamgroup.base.redaction import without_secrets

__all__ = ["log_tail", "log_text"]

_PROGRESS = re.compile(r"\r(?:\[Stage [^\r\n]*| +)?")


def log_text(log: Path | None) -> str:
    """Return the log without progress bars; nothing if there is none."""
    with contextlib.suppress(OSError):
        if log is not None:
            return _PROGRESS.sub("", log.read_bytes().decode(errors="replace")).strip()
    return ""


def log_tail(log: Path | None, lines: int = 12) -> str | None:
    """Return the last lines of the log under a heading; None without a log."""
    text = log_text(log)
    return without_secrets("\n".join(["the end of Spark's log:", *text.splitlines()[-lines:]])) if text else None
