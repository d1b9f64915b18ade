"""Errors of ours on their way from Spark's tasks to the driver, as a marked line of text in Spark's exceptions."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager

from streamgroup.base import errors
from streamgroup.base.errors import StreamgroupError

__all__ = ["error_in_text", "errors_as_text"]

_MARK = "streamgroup-fault "


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
