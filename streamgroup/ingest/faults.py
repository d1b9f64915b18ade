"""Errors that cross from a Spark task to the driver as one line of text, and come out as what they were."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager

from streamgroup.base import errors
from streamgroup.base.errors import EnvironmentFault, StreamgroupError

__all__ = ["carried", "cause_of", "from_text", "last_line"]

_MARK = "streamgroup-fault "
# What Spark, Java and the system say when the surroundings fail them: what that means, and how to mend it.
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


class _CarriedError(RuntimeError):
    """One of our errors on its way through Spark."""


@contextmanager
def carried() -> Iterator[None]:
    """Let our errors leave a task in a form that `from_text` finds in Spark's account of the failure."""
    try:
        yield
    except StreamgroupError as error:
        content = json.dumps([type(error).__name__, error.message, error.hint])
        raise _CarriedError(f"{_MARK}{content}") from None


def from_text(text: str) -> StreamgroupError | None:
    """Find an error of ours in the text of an exception of Spark's."""
    match = re.search(re.escape(_MARK) + r"(\[.*\])", text)
    if match is None:
        return None
    name, message, hint = json.loads(match[1])
    kind: type[StreamgroupError] = getattr(errors, name)
    return kind(message, hint)


def cause_of(text: str) -> EnvironmentFault | None:
    """Find what failed around Spark in the text of an exception or a log."""
    for said, (what, hint) in _CAUSES.items():
        if said in text:
            return EnvironmentFault(f"{what} ({said})", hint)
    return None


def last_line(text: str) -> str:
    """Give the line of a long account that says most: the last one of a Python traceback, else the first."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    told = [line for line in lines if re.match(r"[\w.]*(Error|Exception|Fault)\b", line) and "Py4J" not in line]
    return (told or lines or ["no account of it"])[0][:500]
