"""Sessions of Spark Connect: a client of a server that runs already."""

import contextlib
import importlib
import re
import socket
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from streamgroup.base.errors import EnvironmentFault, UsageError
from streamgroup.spark.driver_settings import restored_environment
from streamgroup.spark.explain_failure import summary_line
from streamgroup.spark.options import server_name
from streamgroup.spark.uninterrupted_calls import BackgroundCall, complete

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["check_packages", "connect_session"]

_PORT = 15002
# Seconds that a server is given to accept a connection, and then to answer.
_ACCEPT = 10
_ANSWER = 30
# Seconds that it takes at most to tell the server that a session has ended.
_RELEASE = 5
_QUICK_RELEASE = 1


def check_packages() -> None:
    """Raise EnvironmentFault when the packages that a client of Spark Connect needs are not installed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            importlib.import_module("pyspark.sql.connect.session")
    except ImportError as error:
        missing = getattr(error, "name", None) or summary_line(str(error))
        raise EnvironmentFault(
            f"Spark Connect needs packages that are not installed ({missing})", "pip install 'streamgroup[connect]'"
        ) from None


@contextlib.contextmanager
def connect_session(remote: str, conf: tuple[str, ...], scratch: Path) -> Iterator["SparkSession"]:
    """Open a session on a server and release it afterwards.

    `conf` are run-time settings as `spark.some.name=value`. EnvironmentFault without the packages or when the server
    does not answer, UsageError for a setting that a session cannot change.
    """
    check_packages()
    _check_reachable(remote)
    with restored_environment(scratch):
        spark = _client(remote)
        # The first call to the server.
        opening = BackgroundCall(lambda: spark.version)
        succeeded = False
        try:
            if not opening.done.wait(_ANSWER):
                raise EnvironmentFault(f"{server_name(remote)} does not answer as a Spark Connect server", _HINT)
            if opening.failure is not None:
                reason = summary_line(str(opening.failure))
                raise EnvironmentFault(f"cannot open a session on {server_name(remote)}: {reason}", _HINT)
            for pair in conf:
                _set(spark, *pair.split("=", 1))
            yield spark
            succeeded = True
        finally:
            if opening.done.is_set():
                complete(spark.stop, _RELEASE if succeeded else _QUICK_RELEASE)
            # One that is not closed tries for minutes to reach its server when the process ends.
            complete(spark.client.close, _QUICK_RELEASE)


_HINT = "is a Spark Connect server running there, and is --remote its address?"


def _client(remote: str) -> Any:
    """Make a session that has not called its server yet."""
    from pyspark.sql import SparkSession

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return SparkSession.builder.remote(remote).create()


def _check_reachable(remote: str) -> None:
    """Connect to the host and port once: the client itself would try again for minutes."""
    parts = urlsplit(remote.partition(";")[0])
    try:
        with socket.create_connection((parts.hostname or "", parts.port or _PORT), timeout=_ACCEPT):
            pass
    except OSError as error:
        reason = error.strerror or str(error)
        raise EnvironmentFault(f"cannot connect to {server_name(remote)}: {reason}", _HINT) from None


def _set(spark: "SparkSession", name: str, value: str) -> None:
    try:
        spark.conf.set(name, value)
    except Exception as error:  # noqa: BLE001 (of many classes; it names the reason)
        text = str(error)
        if re.search("CANNOT_MODIFY|STATIC|core", text):
            raise UsageError(
                f"--spark-conf {name}: a session on Spark Connect cannot change it",
                "with --remote, static settings belong to whoever starts the server; set run-time ones (spark.sql....)",
            ) from None
        raise UsageError(f"--spark-conf {name}={value}: {summary_line(text)}") from None
