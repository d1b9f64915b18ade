"""Counts the finished tasks of running queries, in Spark Classic and in Spark Connect."""

import contextlib
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["FinishedTasks", "finished_tasks"]

_BAR = re.compile(r"\[Stage \d+:[^\]\r\n]*\((\d+) \+ \d+\) / \d+\]")


class FinishedTasks(Protocol):
    """Counts finished tasks until it is closed."""

    def count(self) -> int:
        """Return the number of finished tasks of the running stage that has most."""
        ...

    def close(self) -> None:
        """Stop counting."""
        ...


def finished_tasks(spark: "SparkSession", log: Path | None, *, remote: bool) -> FinishedTasks:
    """Return the counter for a session: of what the server reports, or of what the JVM prints to `log`."""
    if remote:
        return _RemoteTasks(spark)
    return _LoggedTasks(log) if log is not None else _UnknownTasks()


class _UnknownTasks:
    """Counts nothing: a session of Spark Classic that others opened prints where they want."""

    def count(self) -> int:
        return 0

    def close(self) -> None:
        pass


class _LoggedTasks:
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

    def close(self) -> None:
        """Do nothing: the log is not kept open."""


class _RemoteTasks:
    """Number of finished tasks of the stage of a session that has most, as the server reports them."""

    def __init__(self, spark: "SparkSession") -> None:
        self._spark = spark
        self._finished = 0
        # A handler is any callable; its type says otherwise.
        self._handler = cast(Any, self._report)
        spark.registerProgressHandler(self._handler)

    def _report(self, stages: Iterable[Any] | None, inflight_tasks: int, operation_id: str | None, done: bool) -> None:
        del inflight_tasks, operation_id, done
        self._finished = max((stage.num_completed_tasks for stage in stages or ()), default=self._finished)

    def count(self) -> int:
        """Return the number as of the last report."""
        return self._finished

    def close(self) -> None:
        """Receive no more reports."""
        self._spark.removeProgressHandler(self._handler)
