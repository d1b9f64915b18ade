"""Runs `ingest spark`, from the options to the trace, in its own session or in the caller's."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamgroup.base.errors import DataError, StreamgroupError
from streamgroup.base.progress import Progress, Silent
from streamgroup.base.storage.storage_path import StoragePath
from streamgroup.ingest.make_trace import IngestResult, make_trace, staged_trace
from streamgroup.ingest.pipeline.check_and_filter_rows import Contract
from streamgroup.ingest.runners.spark_runner import SparkRunner
from streamgroup.ingest.sources.canonical_columns import load, prepare, row_error, silent_loggers
from streamgroup.ingest.sources.table_options import SparkSourceOptions
from streamgroup.ingest.sources.table_preview import TablePreview, preview_table
from streamgroup.ingest.sources.table_source import TableSource
from streamgroup.spark.executor_package import ensure_package
from streamgroup.spark.options import checked
from streamgroup.spark.session import Session, existing_session, start_session, terminable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["from_dataframe", "ingest_spark", "preview_spark"]

_LOOKING = "looking at the table"


def ingest_spark(
    options: SparkSourceOptions, progress: Progress | None = None, session: Session | None = None
) -> IngestResult:
    """Make a trace of what Spark loads.

    `session` is used if given, else one is opened and closed. UsageError for what cannot be loaded, wrong expressions
    and options, EnvironmentFault without Java, DataError when too many rows are rejected, or none is left. Nothing is
    left behind but the whole trace, or nothing at all.
    """
    progress = progress or Silent()
    options = options.with_files()
    with terminable(), ExitStack() as opened:
        Contract(options)
        out = opened.enter_context(staged_trace(options))
        if session is None:
            session = opened.enter_context(start_session(options, progress))
        return _make(lambda spark: load(spark, options), options, out, session, progress)


def preview_spark(options: SparkSourceOptions, progress: Progress | None = None) -> TablePreview:
    """Start Spark and show what some rows of a table become; nothing is written."""
    progress = progress or Silent()
    options = options.with_files()
    Contract(options)
    with terminable(), start_session(options, progress) as session, _row_errors(options):
        return session.run(lambda: preview_table(load(session.spark, options), options), progress, 1, _LOOKING)


def from_dataframe(
    df: "DataFrame", *, time: str, key: str | Sequence[str], output: str | Path | StoragePath, **options: Any
) -> IngestResult:
    """Make a trace of a DataFrame, in the session that it belongs to, which stays as it was; classic or Connect.

    `time` and `key` (several make a composite key) are Spark SQL expressions, a column's name being the simplest, as
    are `cost` (us), `value`, `weight` and `where` among the `options`. These are the flags of `ingest spark` with `_`
    for `-`: `time_format`, `timezone`, `null_keys`, `null_values`, `limit`, `since`, `until`, `head`, `sample_keys`,
    `max_rejects`, `split_words`, `stopwords`, `overwrite`. UsageError for a wrong one, DataError when too many rows are
    rejected or none is left. Nothing is left behind but the whole trace, or nothing at all.

    An interrupt (Ctrl-C) cancels the queries of the ingest on Spark Connect; on Spark Classic it cancels all queries of
    that session, those of other threads too.
    """
    keys = (key,) if isinstance(key, str) else tuple(key)
    asked = checked(SparkSourceOptions, {**options, "time": time, "key": keys, "output": output})
    asked = asked.with_files()
    Contract(asked)
    with staged_trace(asked) as out, existing_session(df.sparkSession) as session:
        return _make(lambda _: df, asked, out, session, Silent())


def _make(
    frame: Callable[[Any], "DataFrame"],
    options: SparkSourceOptions,
    out: StoragePath,
    session: Session,
    progress: Progress,
) -> IngestResult:
    ensure_package(session, progress)
    with _row_errors(options):
        prepared = session.run(lambda: prepare(frame(session.spark), options), progress, 1, _LOOKING)
        return make_trace(TableSource(prepared, options), options, out, SparkRunner(session, progress))


@contextmanager
def _row_errors(options: SparkSourceOptions) -> Iterator[None]:
    """Raise the failure of an expression on a row, which ends the query, as a DataError."""
    from pyspark.errors import PySparkException

    try:
        with silent_loggers():
            yield
    except (StreamgroupError, PySparkException) as error:
        # Constants are computed when the query is planned, on this side.
        cause = error if isinstance(error, PySparkException) else error.__cause__
        failed = None if isinstance(error, DataError) else row_error(options.source, str(cause))
        if failed is None:
            raise
        raise failed from cause
