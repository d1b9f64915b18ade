"""Opens Spark sessions for commands: checked first, silent, interruptible, removed afterwards."""

import atexit
import contextlib
import re
import shutil
import signal
import tempfile
import threading
import time
import uuid
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from streamgroup.base.errors import EnvironmentFault, RunError, StreamgroupError
from streamgroup.base.progress import Progress
from streamgroup.base.storage.process_tag import owner_is_alive, owner_tag
from streamgroup.spark.classic import classic_session
from streamgroup.spark.connect import check_packages, connect_session
from streamgroup.spark.count_finished_tasks import finished_tasks
from streamgroup.spark.errors_from_tasks import error_in_text
from streamgroup.spark.explain_failure import cause_in_text, summary_line
from streamgroup.spark.find_java_and_spark import find_java
from streamgroup.spark.options import SparkOptions
from streamgroup.spark.read_driver_log import log_tail, log_text
from streamgroup.spark.uninterrupted_calls import BackgroundCall, complete

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Session", "check_environment", "existing_session", "open_session", "start_session", "terminable"]

T = TypeVar("T")

_SCRATCH = "streamgroup-spark-"
# Seconds that an interrupted query is given to end.
_CANCEL = 0.5
# Seconds between two looks at the progress.
_POLL = 0.05


@contextlib.contextmanager
def terminable() -> Iterator[None]:
    """Make SIGTERM unwind as an interrupt does, so that nothing is left behind."""
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
    """An open session: `spark` is the SparkSession, of Spark Classic or Spark Connect.

    `master` is the place where it runs, as it is shown. `log` has what the JVM prints, if that is ours. `scratch` is a
    directory of this machine that goes with the session.
    """

    spark: "SparkSession"
    master: str
    log: Path | None
    scratch: Path

    @property
    def remote(self) -> bool:
        """Report whether it is a session of Spark Connect."""
        return type(self.spark).__module__.startswith("pyspark.sql.connect")

    @property
    def parallelism(self) -> int:
        """Return the number of tasks that run at a time."""
        local = re.fullmatch(r"local\[(\d+)\]", self.master)
        return self.count_cores() if local is None else int(local[1])

    def count_cores(self) -> int:
        """Ask Spark for the number of tasks that run at a time; an exception of Spark's when it has stopped.

        No job is started: the plan of a range of numbers says into how many partitions it would be cut.
        """
        plan = self.spark.sql("EXPLAIN SELECT id FROM range(1)").collect()[0][0]
        return int(re.findall(r"splits=(?:Some\()?(\d+)", plan)[-1])

    def run(self, function: Callable[[], T], progress: Progress, total: int, text: str) -> T:
        """Call a function that starts Spark queries and return its result; report finished tasks as progress.

        The function runs on a thread of its own, so that an interrupt is seen at once and never falls into a call to
        the JVM. The interrupt cancels the queries that the function started on that thread. Errors are raised as
        `explain` returns them.
        """
        tag = f"streamgroup-{uuid.uuid4().hex}"

        def call() -> T:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.spark.addTag(tag)
                try:
                    return function()
                finally:
                    with contextlib.suppress(Exception):
                        self.spark.removeTag(tag)

        progress.start(total, text)
        finished = finished_tasks(self.spark, self.log, remote=self.remote)
        running = BackgroundCall(call)
        shown = 0
        try:
            while not running.done.wait(_POLL):
                now = min(finished.count(), total)
                if now > shown:
                    progress.advance(now - shown)
                    shown = now
        except BaseException:
            # Again, as the function may be between two queries.
            until = time.monotonic() + _CANCEL
            while not running.done.is_set() and time.monotonic() < until:
                complete(lambda: self.interrupt(tag), _CANCEL)
                running.done.wait(_POLL)
            raise
        finally:
            finished.close()
        if running.failure is not None:
            raise self.explain(running.failure) from running.failure
        progress.advance(total - shown)
        return running.outcome[0]

    def interrupt(self, tag: str) -> None:
        """Cancel the queries of the threads that added a tag; with Spark Classic, all queries of the session.

        Spark Classic makes the names of tags unique to a thread: only the thread that added one can interrupt it.
        """
        if self.remote:
            self.spark.interruptTag(tag)
        else:
            self.spark.interruptAll()

    def explain(self, error: BaseException) -> BaseException:
        """Return the error to show for one of a query; errors of ours as they were raised in the task."""
        if isinstance(error, StreamgroupError) or not isinstance(error, Exception):
            return error
        text = str(error)
        known = error_in_text(text) or cause_in_text(text) or cause_in_text(log_text(self.log))
        return known or RunError(f"Spark failed: {summary_line(text)}", log_tail(self.log))


def check_environment(options: SparkOptions) -> None:
    """Raise EnvironmentFault when this machine lacks what a session needs."""
    if options.remote is None:
        find_java()
    else:
        check_packages()


@contextlib.contextmanager
def open_session(options: SparkOptions) -> Iterator[Session]:
    """Open a session, and stop it afterwards, with its JVM if that is ours.

    EnvironmentFault when something is missing, when Spark does not start or the server does not answer; UsageError for
    settings that a remote session cannot change. Everything that it writes on this machine goes to one directory, which
    is removed at the end, or by the next run.
    """
    with _scratch_directory() as scratch:
        if options.remote is None:
            log = scratch / "spark.log"
            with classic_session(options, scratch, log) as spark:
                yield Session(spark, options.place, log, scratch)
        else:
            with connect_session(options.remote, options.spark_conf, scratch) as spark:
                yield Session(spark, options.place, None, scratch)


@contextlib.contextmanager
def start_session(options: SparkOptions, progress: Progress) -> Iterator[Session]:
    """Open a session for a command as `open_session` does, and report that Spark starts; errors come before that."""
    check_environment(options)
    progress.start(1, "starting Spark")
    with open_session(options) as session:
        yield session


@contextlib.contextmanager
def existing_session(spark: "SparkSession") -> Iterator[Session]:
    """Use a session that the caller has opened, which stays open.

    A package that was sent to executors stays in the scratch directory until this process ends: with Spark Classic,
    executors that start later fetch it from there.
    """
    with contextlib.ExitStack() as opened:
        scratch = opened.enter_context(_scratch_directory())
        session = Session(spark, spark.conf.get("spark.master", None) or "Spark Connect", None, scratch)
        try:
            yield session
        finally:
            if not session.remote and any(scratch.glob("*.zip")):
                atexit.register(opened.pop_all().close)


@contextlib.contextmanager
def _scratch_directory() -> Iterator[Path]:
    """Make a directory tagged with this process, and remove those of processes that have ended."""
    parent = Path(tempfile.gettempdir())
    for entry in parent.glob(f"{_SCRATCH}*"):
        if not owner_is_alive(entry.name.removeprefix(_SCRATCH).rsplit(".", 1)[0]):
            shutil.rmtree(entry, ignore_errors=True)
    try:
        scratch = Path(tempfile.mkdtemp(prefix=f"{_SCRATCH}{owner_tag()}.", dir=parent))
    except OSError as error:
        raise EnvironmentFault(f"cannot write in {parent}: {error.strerror}", "set TMPDIR") from None
    try:
        for name in ("local", "tmp", "work"):
            (scratch / name).mkdir()
        yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
