"""Errors through Spark: ours travel from tasks to the driver as a line of text; others are explained by their text."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager

from streamgroup.base import errors
from streamgroup.base.errors import EnvironmentFault, StreamgroupError
from streamgroup.base.redaction import without_secrets

__all__ = ["cause_in_text", "error_in_text", "errors_as_text", "summary_line"]

_MARK = "streamgroup-fault "
# Messages of Spark, Java and the system about their surroundings: what they mean, and what to do.
_DISK = ("the disk is full", "make room beside the output and in TMPDIR, or put them on a larger disk")
_MEMORY = ("the machine has less memory than Spark asks for", "lower --driver-memory")
_MASTER = ("the master does not answer", "is it up, and is --master its address?")
_CAUSES = {
    "OutOfMemoryError": ("Spark ran out of memory", "give it more with --driver-memory"),
    "No space left on device": _DISK,
    "Disk quota exceeded": _DISK,
    "File too large": _DISK,
    "Could not reserve enough space": _MEMORY,
    "insufficient memory for the Java Runtime": _MEMORY,
    "All masters are unresponsive": _MASTER,
    "Failed to connect to master": _MASTER,
    "UnknownHostException": ("the host of the master is not known", "is --master its address?"),
}


class _MarkedError(RuntimeError):
    """One of our errors on its way through Spark."""


@contextmanager
def errors_as_text() -> Iterator[None]:
    """Raise our errors within a task in a form that `error_in_text` finds in Spark's message about the task."""
    try:
        yield
    except StreamgroupError as error:
        content = json.dumps([type(error).__name__, error.message, error.hint])
        raise _MarkedError(f"{_MARK}{content}") from None


def error_in_text(text: str) -> StreamgroupError | None:
    """Return the error of ours that is in the text of one of Spark's exceptions."""
    match = re.search(re.escape(_MARK) + r"(\[.*\])", text)
    if match is None:
        return None
    name, message, hint = json.loads(match[1])
    kind: type[StreamgroupError] = getattr(errors, name)
    return kind(message, hint)


def cause_in_text(text: str) -> EnvironmentFault | None:
    """Return what failed around Spark, by the text of an exception or a log."""
    for phrase, (message, hint) in _CAUSES.items():
        if phrase in text:
            return EnvironmentFault(f"{message} ({phrase})", hint)
    return None


def summary_line(text: str) -> str:
    """Return the most informative line of a long message: the first that names a Python exception, else the first."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    named = [line for line in lines if re.match(r"[\w.]*(Error|Exception|Fault)\b", line) and "Py4J" not in line]
    return without_secrets((named or lines or ["no message"])[0])[:500]
