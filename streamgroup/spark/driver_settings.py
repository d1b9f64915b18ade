"""Settings and environment of a Spark driver that this process starts."""

import contextlib
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from streamgroup.spark.class_archive import ClassArchive
from streamgroup.spark.find_java_and_spark import linked_home
from streamgroup.spark.options import SparkOptions

__all__ = ["driver_environment", "driver_settings", "quoted", "restored_environment"]

_LOG4J = """\
status = error
appenders = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n%ex
rootLogger.level = warn
rootLogger.appenderRefs = console
rootLogger.appenderRef.console.ref = console
"""
# Variables that would turn a session of ours into one of Spark Connect, or lead PySpark to another JVM.
_MISLEADING = (
    "SPARK_REMOTE", "SPARK_LOCAL_REMOTE", "SPARK_API_MODE", "SPARK_CONNECT_MODE_ENABLED", "PYSPARK_GATEWAY_PORT",
    "PYSPARK_GATEWAY_SECRET",
)  # fmt: skip
_PREFIXES = ("SPARK_", "PYSPARK_")


def quoted(option: str) -> str:
    """Quote an option of the JVM, so that Spark takes it as one word, with any blanks and quotes in paths."""
    return '"' + option.replace("\\", "\\\\").replace('"', '\\"') + '"'


def driver_settings(options: SparkOptions, scratch: Path, archive: ClassArchive | None) -> dict[str, str]:
    """Return the settings of a driver whose files all go to `scratch`; `options.spark_conf` comes last."""
    package = str(Path(__file__).resolve().parents[2])
    log4j = scratch / "log4j2.properties"
    log4j.write_text(_LOG4J)
    java = [
        f"-Dlog4j2.configurationFile={log4j.as_uri()}",
        f"-Djava.io.tmpdir={scratch / 'tmp'}",
        f"-XX:ErrorFile={scratch / 'tmp' / 'crash.log'}",
        "-Duser.timezone=UTC",
        "-XX:+UseParallelGC",
        "-XX:+IgnoreUnrecognizedVMOptions",
        # The JVM only moves blocks of bytes. Optimizing its code takes longer than it saves.
        "-XX:TieredStopAtLevel=1",
        *([archive.option] if archive else []),
    ]
    settings = {
        "spark.app.name": "streamgroup",
        "spark.master": options.master,
        "spark.driver.memory": options.driver_memory,
        "spark.ui.enabled": "false",
        # Progress is read from the log: the DataFrame API has no other way to ask for it.
        "spark.ui.showConsoleProgress": "true",
        "spark.local.dir": str(scratch / "local"),
        "spark.driver.extraJavaOptions": " ".join(map(quoted, java)),
        "spark.executorEnv.PYTHONPATH": os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH")])),
        "spark.python.worker.reuse": "true",
    }
    if "STREAMGROUP_CACHE_DIR" in os.environ:
        settings["spark.executorEnv.STREAMGROUP_CACHE_DIR"] = os.environ["STREAMGROUP_CACHE_DIR"]
    if options.master.startswith("local"):
        settings["spark.driver.host"] = settings["spark.driver.bindAddress"] = "127.0.0.1"
    for pair in options.spark_conf:
        name, _, value = pair.partition("=")
        if name == "spark.driver.extraJavaOptions":
            value = f"{settings[name]} {value}"
        settings[name] = value
    return settings


def driver_environment(settings: Mapping[str, str], scratch: Path) -> dict[str, str]:
    """Return the environment of the driver, and of the Python processes that it starts."""
    master = settings["spark.master"]
    environment = {name: value for name, value in os.environ.items() if name not in _MISLEADING} | {
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYTHONPATH": settings["spark.executorEnv.PYTHONPATH"],
        "SPARK_LOCAL_DIRS": settings["spark.local.dir"],
        "SPARK_WORKER_DIR": str(scratch / "work"),
        "SPARK_LOG_DIR": str(scratch / "tmp"),
        "TZ": "UTC",
    }
    if master.startswith("local"):
        environment["SPARK_LOCAL_IP"] = "127.0.0.1"
    if master.startswith("local-cluster"):
        environment["SPARK_HOME"] = str(linked_home(scratch / "home"))
    return environment


@contextlib.contextmanager
def restored_environment(scratch: Path) -> Iterator[None]:
    """Hide variables that mislead PySpark; afterwards restore what PySpark changed: variables and `sys.path`."""
    before = {name: value for name, value in os.environ.items() if name.startswith(_PREFIXES)}
    for name in _MISLEADING:
        os.environ.pop(name, None)
    try:
        yield
    finally:
        for name in [name for name in os.environ if name.startswith(_PREFIXES) and name not in before]:
            del os.environ[name]
        os.environ.update(before)
        sys.path[:] = [entry for entry in sys.path if not entry.startswith(str(scratch))]
