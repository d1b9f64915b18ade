"""Errors on the terminal, and their exit codes."""

import errno
import sys
import traceback
from typing import Any

import typer

from streamgroup.base.errors import GateError, StreamgroupError

__all__ = ["INTERRUPTED", "report_error"]

INTERRUPTED = 130

# The machine refuses: no space, a limit on the size of files, no permission, a read-only file system, a quota.
_ENVIRONMENT = {errno.ENOSPC, errno.EFBIG, errno.EACCES, errno.EPERM, errno.EROFS, errno.EDQUOT}


def report_error(error: BaseException, *, debug: bool) -> int:
    """Write an error to stderr (one line, and one that says how to mend it) and return the exit code."""
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    if debug and not isinstance(error, typer.TyperException):
        traceback.print_exception(error)
    message, hint, code = _explain(error, debug)
    for line in message.splitlines() if isinstance(error, GateError) else [_one_line(message)]:
        print(f"error: {line}", file=sys.stderr)  # noqa: T201
    if hint:
        print(f"hint: {hint}", file=sys.stderr)  # noqa: T201
    return code


def _explain(error: BaseException, debug: bool) -> tuple[str, str | None, int]:
    if isinstance(error, StreamgroupError):
        return error.message, _short(error.hint, debug), error.exit_code
    if isinstance(error, typer.TyperException):
        return _usage(error)
    if isinstance(error, MemoryError):
        return "not enough memory", "use a smaller trace, or a machine with more memory", 3
    if isinstance(error, OSError) and error.errno in _ENVIRONMENT:
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror}", "free some space, or check the permissions", 3
    if isinstance(error, OSError) and error.errno == errno.EBADF:
        return "stdin or stdout is closed", "leave it open, or name a file or /dev/null for it", 3
    if isinstance(error, UnicodeEncodeError) and "\udc80" <= error.object[error.start] <= "\udcff":
        return f"the name {error.object!r} is not UTF-8", "rename the file or directory", 2
    what = str(error)
    name = type(error).__name__
    hint = None if debug else "this is a fault of the program; run it with --debug to see where"
    return (f"{name}: {what}" if what else name), hint, 1


def _usage(error: typer.TyperException) -> tuple[str, str | None, int]:
    message = error.format_message()
    context = getattr(error, "ctx", None)
    if context is None:
        return message, None, error.exit_code
    parameter: Any = getattr(error, "param", None)
    source = context.get_parameter_source(parameter.name) if parameter is not None and parameter.name else None
    if source is not None and source.name == "ENVIRONMENT":
        message += f" (from {parameter.envvar})"
    elif source is not None and source.name == "DEFAULT_MAP":
        message += f" (from {context.meta.get('config')})"
    return message, f"see {context.command_path} --help", error.exit_code


def _short(hint: str | None, debug: bool) -> str | None:
    """Keep a hint on one line; of a log only the last, unless --debug."""
    lines = (hint or "").splitlines()
    if debug or len(lines) < 2:
        return hint
    return f"{lines[0]} {lines[-1].strip()}"


def _one_line(message: str) -> str:
    return " ".join(piece.strip() for piece in message.splitlines() if piece.strip())
