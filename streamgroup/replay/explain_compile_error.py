"""Explains what numba cannot compile of a grouping: the line of its file, and what may be written there."""

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

from numba.core.errors import NumbaError

from streamgroup.base.errors import UsageError
from streamgroup.replay.compile_grouping import NO_INT

__all__ = ["errors_with_lines"]


@contextlib.contextmanager
def errors_with_lines(source: Path) -> Iterator[None]:
    """Turn what numba cannot compile into a usage error that names the line of `source`, the file of the grouping."""
    try:
        yield
    except NumbaError as error:
        raise _error_with_line(error, source) from error


def _error_with_line(error: NumbaError, source: Path) -> UsageError:
    """Find, in numba's long message, the line of the grouping that it could not compile."""
    text, file = str(error), re.escape(source.name)
    if found := re.search(rf"{re.escape(NO_INT)} [^\n]+", text):
        return UsageError(f"{source}: {found[0].strip()}", "a worker is an int, as int(...) makes it of a float")
    place = re.search(rf" at \S*{file} \((\d+)\)", text) or re.search(rf'File "[^"]*{file}", line (\d+)', text)
    hint = "a hook may use numbers, its arrays and numba functions, and makes no arrays, strings or dictionaries"
    stages = re.findall(r"Failed in nopython mode pipeline[^\n]*\n+\s*([^\n]+)", text)
    cause = (stages[-1] if stages else text.strip().splitlines()[0]).strip(" -")
    if place is None:
        return UsageError(f"{source}: numba cannot compile its hooks: {cause}", hint)
    number = int(place[1])
    lines = source.read_text(errors="replace").splitlines()
    line = lines[number - 1].strip() if number <= len(lines) else ""
    return UsageError(f"{source}:{number}: numba cannot compile this line: {line} ({cause})", hint)
