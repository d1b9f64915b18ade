"""A Spark session that fits into a command line tool: checked first, silent, gone without a trace afterwards."""

import contextlib
import logging
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from streamgroup.base.errors import EnvironmentFault, RunError, StreamgroupError
from streamgroup.base.staging import owner_is_alive, owner_tag
from streamgroup.ingest import faults
from streamgroup.ingest.aside import Aside, unhurried
from streamgroup.ingest.class_archive import ClassArchive, find_archive
from streamgroup.ingest.java import find_java, linked_home, spark_home
from streamgroup.ingest.progress import Progress

__all__ = ["Session", "open_session", "terminable"]

T = TypeVar("T")

_SCRATCH = "streamgroup-spark-"
# Seconds that the JVM is given to end when it writes an archive of its classes.
_LONGEST_END = 70
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


@contextlib.contextmanager
def terminable() -> Iterator[None]:
    """Let SIGTERM unwind as an interrupt does, so that nothing is left behind."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: Any) -> None:  # noqa: ARG001 (the shape of a handler)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


class Session(NamedTuple):
    """An open session: the SparkContext, its master, and the log of its JVM."""

    context: Any
    master: str
    log: Path

    @property
    def spark(self) -> Any:
        from pyspark.sql import SparkSession

        return SparkSession(self.context)

    @property
    def parallelism(self) -> int:
        """Give the number of tasks that run at a time."""
        return int(self.context.defaultParallelism)

    def run(self, function: Callable[[], T], progress: Progress, total: int, text: str) -> T:
        """Run a function that starts Spark jobs, telling how many tasks are done; errors come out mended.

        The jobs run on a thread of their own, and so does whoever asks how far they are, so that an interrupt is
        seen at once and never falls into a call to the JVM; it cancels the jobs.
        """
        context = self.context
        finished = [0]

        def work() -> T:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return function()

        def watch() -> None:
            while not job.done.wait(0.2):
                finished[0] = _finished(context)

        progress.start(total, text)
        job = Aside(work)
        Aside(watch)
        shown = 0
        try:
            while not job.done.wait(0.05):
                now = min(finished[0], total)
                if now > shown:
                    progress.advance(now - shown)
                    shown = now
        except BaseException:
            unhurried(context.cancelAllJobs)
            job.done.wait(5)
            raise
        if job.failure is not None:
            raise self.mended(job.failure) from job.failure
        progress.advance(total - shown)
        return job.outcome[0]

    def mended(self, error: BaseException) -> BaseException:
        """Give what an error of a job means, in a form for people; errors of ours as they were raised."""
        if isinstance(error, StreamgroupError) or not isinstance(error, Exception):
            return error
        known = faults.from_text(str(error))
        if known is not None:
            return known
        known = faults.cause_of(str(error)) or faults.cause_of(_read(self.log))
        if known is not None:
            return known
        return RunError(f"Spark failed: {faults.last_line(str(error))}", _tail(self.log))


def _finished(context: Any) -> int:
    tracker = context.statusTracker()
    done = 0
    with contextlib.suppress(Exception):
        for stage in tracker.getActiveStageIds():
            info = tracker.getStageInfo(stage)
            done = max(done, info.numCompletedTasks if info else 0)
    return done


def _read(log: Path) -> str:
    with contextlib.suppress(OSError):
        return log.read_text(errors="replace").strip()
    return ""


def _tail(log: Path, lines: int = 12) -> str:
    return "\n".join(["the end of Spark's log:", *_read(log).splitlines()[-lines:]])


def _reclaim(parent: Path) -> None:
    for entry in parent.glob(f"{_SCRATCH}*"):
        if not owner_is_alive(entry.name.removeprefix(_SCRATCH).rsplit(".", 1)[0]):
            shutil.rmtree(entry, ignore_errors=True)


def _quoted(option: str) -> str:
    """Write an option of the JVM so that Spark takes it for one, whatever blanks and quotes a path has."""
    return '"' + option.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _settings(
    master: str, memory: str, scratch: Path, archive: ClassArchive | None, extra: tuple[str, ...]
) -> dict[str, str]:
    package = str(Path(__file__).resolve().parents[2])
    path = os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH")]))
    log4j = scratch / "log4j2.properties"
    log4j.write_text(_LOG4J)
    java = [
        f"-Dlog4j2.configurationFile={log4j.as_uri()}",
        f"-Djava.io.tmpdir={scratch / 'tmp'}",
        f"-XX:ErrorFile={scratch / 'tmp' / 'crash.log'}",
        "-Duser.timezone=UTC",
        "-XX:+UseParallelGC",
        "-XX:+IgnoreUnrecognizedVMOptions",
        # The JVM only hands bytes around, so it is not worth compiling its code well: that takes longer.
        "-XX:TieredStopAtLevel=1",
        *([archive.option] if archive else []),
    ]
    settings = {
        "spark.app.name": "streamgroup",
        "spark.master": master,
        "spark.driver.memory": memory,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.local.dir": str(scratch / "local"),
        "spark.driver.extraJavaOptions": " ".join(map(_quoted, java)),
        "spark.executorEnv.PYTHONPATH": path,
        "spark.python.worker.reuse": "true",
    }
    if "STREAMGROUP_CACHE_DIR" in os.environ:
        settings["spark.executorEnv.STREAMGROUP_CACHE_DIR"] = os.environ["STREAMGROUP_CACHE_DIR"]
    if master.startswith("local"):
        settings["spark.driver.host"] = settings["spark.driver.bindAddress"] = "127.0.0.1"
    for pair in extra:
        name, _, value = pair.partition("=")
        if name == "spark.driver.extraJavaOptions":
            value = f"{settings[name]} {value}"
        settings[name] = value
    return settings


@contextlib.contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextlib.contextmanager
def open_session(master: str, *, memory: str = "2g", conf: tuple[str, ...] = ()) -> Iterator[Session]:
    """Start Spark, give the session, and stop it with its JVM, whatever happens in between.

    `master` is a Spark URL, `memory` the driver's heap. EnvironmentFault when Java is missing or Spark does
    not start. Everything it writes on this machine goes to one directory, removed here or by the next run.
    """
    java, _ = find_java()
    parent = Path(tempfile.gettempdir())
    _reclaim(parent)
    scratch = parent / f"{_SCRATCH}{owner_tag()}.{threading.get_ident()}"
    shutil.rmtree(scratch, ignore_errors=True)
    try:
        for name in ("", "local", "tmp", "work"):
            (scratch / name).mkdir()
    except OSError as error:
        raise EnvironmentFault(f"cannot write in {parent}: {error.strerror}", "set TMPDIR") from None
    try:
        # The jars of local-cluster lie elsewhere each time.
        plain = master.startswith("local") and not master.startswith("local-cluster")
        archive = find_archive(java, spark_home()) if plain else None
        settings = _settings(master, memory, scratch, archive, conf)
        environment = {
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "PYTHONPATH": settings["spark.executorEnv.PYTHONPATH"],
            "SPARK_LOCAL_DIRS": settings["spark.local.dir"],
            "SPARK_WORKER_DIR": str(scratch / "work"),
            "SPARK_LOG_DIR": str(scratch / "tmp"),
            "PYSPARK_SUBMIT_ARGS": "pyspark-shell",
            "TZ": "UTC",
        }
        if master.startswith("local"):
            environment["SPARK_LOCAL_IP"] = "127.0.0.1"
        if master.startswith("local-cluster"):
            environment["SPARK_HOME"] = str(linked_home(scratch / "home"))
        with _environment(environment):
            yield from _started(settings, master, scratch, archive)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _started(settings: dict[str, str], master: str, scratch: Path, archive: ClassArchive | None) -> Iterator[Session]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pyspark import SparkConf, SparkContext, java_gateway

    log = scratch / "spark.log"
    gateway: list[Any] = []
    context: list[Any] = []
    processes: list[Any] = []

    def launch_one(leave_out: str) -> None:
        conf = SparkConf(loadDefaults=False)
        for name, value in settings.items():
            conf.set(name, value.replace(_quoted(leave_out), "") if leave_out else value)
        with (
            log.open("wb") as sink,
            warnings.catch_warnings(),
            _recorded(java_gateway, processes, scratch / "tmp") as launch,
        ):
            warnings.simplefilter("ignore")
            gateway.append(launch(conf, {"stdout": sink, "stderr": sink}))
            context.append(SparkContext(gateway=gateway[0], conf=conf))

    def start() -> None:
        try:
            launch_one("")
        except Exception:
            if archive is None or archive.unfinished is not None or gateway:
                raise
            # A JVM that is not up at all may have been given a damaged archive.
            launch_one(archive.option)
            archive.discard()

    with _py4j_is_silent():
        # On a thread of its own: an interrupt in the middle must not lose the JVM that is being started.
        starting = Aside(start)
        whole = False
        try:
            starting.done.wait()
            if starting.failure is not None:
                told, failure = _read(log), starting.failure
                reason = faults.last_line(f"{told}\n{type(failure).__name__}: {failure}")
                fault = faults.cause_of(told) or EnvironmentFault(f"Spark does not start: {reason}", _tail(log))
                raise fault from failure
            yield Session(context[0], master, log)
            whole = True
        finally:
            if not starting.done.is_set():
                for process in processes:
                    process.kill()
                unhurried(starting.done.wait)
            for process in processes[: len(processes) - len(gateway)]:
                process.stdin.close()
            unhurried(lambda: _stop(context, gateway, SparkContext, archive, whole), _LONGEST_END)


@contextlib.contextmanager
def _recorded(module: Any, processes: list[Any], temporary: Path) -> Iterator[Any]:
    """Give PySpark's `launch_gateway`, which tells the process that it starts only when that is up.

    Killed meanwhile, it leaves a file, which goes where the next run finds it.
    """
    popen, before = module.Popen, tempfile.tempdir

    def start(*arguments: Any, **options: Any) -> Any:
        processes.append(popen(*arguments, **options))
        return processes[-1]

    module.Popen, tempfile.tempdir = start, str(temporary)
    try:
        yield module.launch_gateway
    finally:
        module.Popen, tempfile.tempdir = popen, before


@contextlib.contextmanager
def _py4j_is_silent() -> Iterator[None]:
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


def _stop(context: list[Any], gateway: list[Any], kind: Any, archive: ClassArchive | None, whole: bool) -> None:
    """Stop the session and end the JVM, so that a later session starts with its own memory and settings.

    After a run that failed or was interrupted nobody waits for the archive of its classes.
    """
    writes = archive is not None and archive.unfinished is not None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for open_context in context:
            with contextlib.suppress(Exception):
                open_context.stop()
        if not gateway:
            return
        with contextlib.suppress(Exception):
            gateway[0].shutdown()
    kind._gateway = kind._jvm = None
    process = gateway[0].proc
    if writes and not whole:
        process.kill()
    with contextlib.suppress(Exception):
        process.stdin.close()
    try:
        process.wait(_LONGEST_END - 10 if writes else 10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if archive is not None and process.returncode == 0:
        archive.keep()
