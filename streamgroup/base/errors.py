"""Errors that say what is wrong, where, and how to fix it, with their exit codes."""

__all__ = ["DataError", "EnvironmentFault", "GateError", "RunError", "StreamgroupError", "UsageError"]


class StreamgroupError(Exception):
    """A failure that a user can act on: one line of what and where, one of how to fix it.

    `hint` is shown on a line of its own. `exit_code` follows the table of the command line reference.
    """

    exit_code = 1

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class RunError(StreamgroupError):
    """The run itself failed (exit 1)."""


class UsageError(StreamgroupError):
    """Wrong options, an unknown name, or an output that exists already (exit 2)."""

    exit_code = 2


class EnvironmentFault(StreamgroupError):
    """The machine lacks something: Java, memory, disk, permission (exit 3)."""

    exit_code = 3


class DataError(StreamgroupError):
    """The data are not what they must be (exit 4)."""

    exit_code = 4


class GateError(StreamgroupError):
    """A `--fail-on` condition is true, or cannot be judged (exit 5): a line for each run or cell."""

    exit_code = 5
