"""`ingest spark` from the options to the trace, in a session of our own or in the caller's."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamgroup.ingest.progress import Progress, Silent
from streamgroup.ingest.session import open_session, terminable
from streamgroup.ingest.sources.options import SparkSourceOptions
from streamgroup.ingest.sources.preview import TablePreview, preview_table
from streamgroup.ingest.sources.spark import load, prepare
from streamgroup.ingest.spark_options import checked

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from streamgroup.ingest.run import IngestResult

__all__ = ["from_dataframe", "ingest_spark", "preview_spark"]


def ingest_spark(options: SparkSourceOptions, progress: Progress | None = None) -> "IngestResult":
    """Make a trace of what Spark loads, in a session that is opened and closed; errors as those of `ingest`."""
    from streamgroup.ingest.run import ingest_frame  # type: ignore[attr-defined]

    progress = progress or Silent()
    with terminable(), open_session(options.master, memory=options.driver_memory, conf=options.spark_conf) as session:
        prepared = session.run(
            lambda: prepare(load(_spark(session), options), options), progress, 1, "looking at the table"
        )
        result: IngestResult = ingest_frame(prepared, options, options.output, session, progress)
        return result


def preview_spark(options: SparkSourceOptions, progress: Progress | None = None) -> TablePreview:
    """Start Spark and show what some rows of a table become; nothing is written."""
    progress = progress or Silent()
    progress.start(1, "starting Spark")
    with terminable(), open_session(options.master, memory=options.driver_memory, conf=options.spark_conf) as session:
        return session.run(
            lambda: preview_table(load(_spark(session), options), options), progress, 1, "looking at the table"
        )


def _spark(session: Any) -> Any:
    from pyspark.sql import SparkSession

    return SparkSession(session.context)


def from_dataframe(
    df: "DataFrame", *, time: str, key: str | Sequence[str], output: str | Path, **options: Any
) -> "IngestResult":
    """Make a trace of a DataFrame, in the session that it belongs to, which stays as it was; classic or Connect.

    `time` and `key` (several make a composite key) are Spark SQL expressions, a column's name being the simplest, as
    are `cost` (us), `value`, `weight` and `where` among the `options`. These are the flags of `ingest spark` with `_`
    for `-`: `time_format`, `timezone`, `null_keys`, `null_values`, `limit`, `since`, `until`, `head`, `sample_keys`,
    `max_rejects`, `split_words`, `stopwords`, `overwrite`. UsageError for a wrong one, DataError when too many rows are
    rejected or none is left. Nothing is left behind but the whole trace, or nothing at all.
    """
    from streamgroup.ingest.run import ingest_frame  # type: ignore[attr-defined]

    keys = (key,) if isinstance(key, str) else tuple(key)
    asked = checked(SparkSourceOptions, {**options, "time": time, "key": keys, "output": output})
    result: IngestResult = ingest_frame(prepare(df, asked), asked, asked.output, df.sparkSession, Silent())
    return result
