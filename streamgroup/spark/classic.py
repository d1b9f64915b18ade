"""Sessions of Spark Classic: starts a silent driver JVM, and removes all that it leaves."""

import contextlib
import logging
import os
import socketserver
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from streamgroup.base.errors import EnvironmentFault
from streamgroup.spark.class_archive import ClassArchive, find_archive
from streamgroup.spark.driver_process import Connection, DriverProcess, exclusive_gateway
from streamgroup.spark.driver_settings import driver_environment, driver_settings, quoted, restored_environment
from streamgroup.spark.explain_failure import cause_in_text, summary_line
from streamgroup.spark.find_java_and_spark import find_java, spark_home
from streamgroup.spark.options import SparkOptions
from streamgroup.spark.read_driver_log import log_tail, log_text
from streamgroup.spark.uninterrupted_calls import BackgroundCall, complete

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["classic_session"]

# Seconds that the JVM is given to end, also when it writes a class-data archive.
_END = 10
_ARCHIVE_END = 60
# Settings, besides that of the event log, whose code is called when a session ends in order.
_LISTENERS = ("spark.extraListeners", "spark.plugins", "spark.sql.queryExecutionListeners", "spark.metrics.conf")
# Seconds that a failed or interrupted run on a cluster may take to report its end to the master.
_QUICK_END = 2


@contextlib.contextmanager
def classic_session(options: SparkOptions, scratch: Path, log: Path) -> Iterator["SparkSession"]:
    """Start a driver whose files go to `scratch` and whose output goes to `log`; stop it afterwards.

    EnvironmentFault without Java, when Spark does not start, or when a session is open in this process already.
    """
    java, _ = find_java()
    # local-cluster has its jars at another path each time, and the archive depends on the path.
    plain = options.master.startswith("local") and not options.master.startswith("local-cluster")
    archive = find_archive(java, spark_home()) if plain else None
    with _silent_py4j(), restored_environment(scratch), exclusive_gateway():
        driver = _Driver(options, scratch, log, archive)
        # In the background: an interrupt must not lose the JVM that is being started.
        starting = BackgroundCall(driver.start)
        succeeded = False
        try:
            starting.done.wait()
            if starting.failure is not None:
                raise _start_failure(starting.failure, log) from starting.failure
            yield starting.outcome[0]
            succeeded = True
        finally:
            if not starting.done.is_set():
                driver.process.kill()
                complete(starting.done.wait)
            if succeeded:
                complete(driver.stop, _END + _ARCHIVE_END)
            else:
                complete(driver.stop_quickly, _QUICK_END + _END)


class _Driver:
    """A driver process with the session that is open on it."""

    def __init__(self, options: SparkOptions, scratch: Path, log: Path, archive: ClassArchive | None) -> None:
        self._settings = driver_settings(options, scratch, archive)
        self._log = log
        self._archive = archive
        self._local = options.master.startswith("local")
        self._spark: SparkSession | None = None
        environment = driver_environment(self._settings, scratch)
        # What PySpark reads in this process.
        os.environ.update({name: environment[name] for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")})
        self.process = DriverProcess(Path(environment.get("SPARK_HOME", spark_home())), environment, scratch)

    def start(self) -> "SparkSession":
        """Start the JVM, then the session."""
        self.process.start(self._settings, self._log)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # While the JVM starts.
            from pyspark.sql import SparkSession

            _silence_servers()
            os.environ.update(self._connect().environment())
            self._spark = SparkSession.builder.getOrCreate()
        return self._spark

    def _connect(self) -> Connection:
        try:
            return self.process.connection()
        except EnvironmentFault:
            if self._archive is None or self._archive.unfinished is not None:
                raise
            # The archive may be damaged.
            name = "spark.driver.extraJavaOptions"
            options = self._settings[name].replace(quoted(self._archive.option), "")
            self.process.start({**self._settings, name: options}, self._log)
            connection = self.process.connection()
            self._archive.discard()
            return connection

    @property
    def has_more_to_write(self) -> bool:
        """Report whether a JVM whose work is done must end in order, which takes over a second; not if it has ended."""
        assert self._spark is not None
        try:
            conf = self._spark.conf.getAll
        except Exception:  # noqa: BLE001 (of many classes)
            return False
        listens = conf.get("spark.eventLog.enabled") == "true" or any(name in conf for name in _LISTENERS)
        return self._writes_archive or listens or not self._local

    @property
    def _writes_archive(self) -> bool:
        return self._archive is not None and self._archive.unfinished is not None

    def stop_quickly(self) -> None:
        """Kill the JVM; on a cluster, after a short time to report to its master."""
        if not self._local:
            complete(self._stop_session, _QUICK_END)
        self.process.kill()
        # So that PySpark forgets it.
        self._stop_session()

    def stop(self) -> None:
        """End the JVM: in order where it has more to write, else at once."""
        if not self.has_more_to_write:
            self.stop_quickly()
            return
        self._stop_session()
        self.process.stop(_ARCHIVE_END if self._writes_archive else _END)
        if self._archive is not None and self.process.returncode == 0:
            self._archive.keep()

    def _stop_session(self) -> None:
        if self._spark is None:
            return
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # Where the JVM has ended, the first call fails before PySpark forgets the session.
            for _ in range(2):
                with contextlib.suppress(Exception):
                    self._spark.stop()
                    break


def _start_failure(failure: BaseException, log: Path) -> EnvironmentFault:
    text = log_text(log)
    known = cause_in_text(text)
    if known is not None:
        return known
    reason = summary_line(f"{text}\n{type(failure).__name__}: {failure}")
    return EnvironmentFault(f"Spark does not start: {reason}", log_tail(log))


def _silence_servers() -> None:
    """Keep servers of PySpark in this process from printing a traceback when the JVM ends in the middle of a message.

    Sums of tasks are sent to them. We use none, so nothing is lost. It is not undone: their threads may notice the end
    of the JVM after the session is closed.
    """
    from pyspark import accumulators

    for server in vars(accumulators).values():
        if isinstance(server, type) and issubclass(server, socketserver.BaseServer):
            server.handle_error = lambda *_: None  # type: ignore[method-assign]


@contextlib.contextmanager
def _silent_py4j() -> Iterator[None]:
    """Keep py4j from printing calls that an interrupt or the end of the JVM cut short.

    Part of it logs to the root logger, which without a handler would be given one that prints.
    """
    loggers = [logging.getLogger("py4j"), *([] if logging.root.handlers else [logging.root])]
    handler = logging.NullHandler()
    for logger in loggers:
        logger.addHandler(handler)
    before, loggers[0].propagate = loggers[0].propagate, False
    try:
        yield
    finally:
        loggers[0].propagate = before
        for logger in loggers:
            logger.removeHandler(handler)
