"""Explains a failure of Spark, Java or the system around them by the text of its exception or log."""

import re

from streamgroup.base.errors import EnvironmentFault
from streamgroup.base.redaction import without_secrets

__all__ = ["cause_in_text", "summary_line"]

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
