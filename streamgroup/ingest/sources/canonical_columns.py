"""Selects the columns of an ingest (time, key, cost, value, weight) from any DataFrame, checked on the schema.

Everything that can be wrong with an expression or its type is found before a row is read. Rows are then
checked by the same contract as those of readers.
"""

import contextlib
import logging
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from streamgroup.base.errors import DataError, StreamgroupError, UsageError
from streamgroup.base.redaction import without_secrets
from streamgroup.ingest.parsing import numbers
from streamgroup.ingest.parsing.columns_as_text import as_texts
from streamgroup.ingest.parsing.times import KNOWN, NUMERIC, TimeFormat, guess_format, resolve_format
from streamgroup.ingest.readers.protocol import Layout
from streamgroup.ingest.sources.table_batches import PARTITION, Column, Table, key_columns
from streamgroup.ingest.sources.table_options import SparkSourceOptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Prepared", "canonical", "load", "prepare", "row_error", "silent_loggers"]

# Times that are looked at to guess their form.
_HEAD_ROWS = 1000
# Above this share of numbers that would have another unit than most, the unit is not guessed.
_OTHER_UNIT = 0.1
_SHOWN_COLUMNS = 40
_KEY_TYPES = {
    "string": "string", "binary": "bytes", "boolean": "boolean",
    "tinyint": "int", "smallint": "int", "int": "int", "bigint": "long",
}  # fmt: skip
_NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")
_ALLOWED = {
    "time": ("timestamp", "timestamp_ntz", "date", "string", *_NUMBERS),
    "key": tuple(_KEY_TYPES),
    "cost": _NUMBERS,
    "value": _NUMBERS,
    "weight": _NUMBERS,
}
_CASTS = {
    "time": "a timestamp, date, number or string",
    "key": "a string, binary, boolean or integer",
    "cost": "a number",
    "value": "a number",
    "weight": "a number",
}
# Errors of ANSI SQL by their names, with what Spark says of the value.
_ON_A_ROW = re.compile(
    r"\[(CAST_INVALID_INPUT|CAST_OVERFLOW|DIVIDE_BY_ZERO|\w*ARITHMETIC_OVERFLOW|CANNOT_PARSE_\w+|INVALID_ARRAY_INDEX\w*"
    r"|NUMERIC_VALUE_OUT_OF_RANGE\S*|DATETIME_OVERFLOW|USER_RAISED_EXCEPTION)\].*?(?=\.? SQLSTATE|\n|$)"
)
_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")


class Prepared(NamedTuple):
    """A table ready to be read: `frame` has the canonical columns, `table` goes to the tasks."""

    frame: "DataFrame"
    table: Table


def load(spark: "SparkSession", options: SparkSourceOptions) -> "DataFrame":
    """Load the source with Spark; nothing is read yet, except its schema.

    UsageError when there is no such path, table or source, or the query is wrong.
    """
    with _spark_errors(options.source):
        if options.sql is not None:
            frame = spark.sql(options.sql)
        else:
            reader = spark.read.options(**dict(pair.split("=", 1) for pair in options.option))
            if options.table is not None:
                frame = reader.table(options.table)
            else:
                if options.format is not None:
                    reader = reader.format(options.format)
                frame = reader.load(list(options.paths)) if options.paths else reader.load()
        # On Connect the names are looked up only now.
        _ = frame.schema
    return frame


def prepare(frame: "DataFrame", options: SparkSourceOptions) -> Prepared:
    """Check the expressions and their types, and guess the form of times that are numbers or strings.

    The guess takes one small query. UsageError names the option, what Spark says and the columns there are.
    """
    made = canonical(frame, options)
    kinds = {field.name: field.dataType.simpleString() for field in made.schema.fields}
    form = resolve_format(options.time_format)
    inferred: tuple[str, ...] = ()
    if kinds["time"] in ("timestamp", "timestamp_ntz", "date"):
        form = KNOWN
    elif form is None:
        form = _guess(made, options, numeric=_base_type(kinds["time"]) != "string")
        inferred = (f"times as {form.name}",)
    names = key_columns(options)
    keys = tuple(
        Column(text, _KEY_TYPES[_base_type(kinds[name])]) for name, text in zip(names, options.key, strict=True)
    )
    layout = Layout(
        tuple(name for name in made.columns if name != PARTITION), time=0, key=1, time_format=form, inferred=inferred
    )
    return Prepared(made, Table(options, layout, keys))


def canonical(frame: "DataFrame", options: SparkSourceOptions) -> "DataFrame":
    """Select the columns `time`, `key` (or `key_0`, ...), `partition`, and those asked for of `cost`, `value`,
    `weight`.

    `where` and `limit` are applied, and every type is checked: UsageError. A top-level column of exactly that name is
    meant where there is one; anything else is an expression.
    """
    from pyspark.sql import functions

    if frame.isStreaming:
        raise UsageError(f"{options.source} is a stream, which has no end", "load a batch: read, not readStream")
    columns = frame.columns
    if options.where is not None:
        with _spark_errors(f"--where {options.where}", columns):
            frame = frame.where(_column(columns, options.where))
            _ = frame.schema
    if options.limit is not None:
        frame = frame.limit(options.limit)
    wanted = [("time", "time", options.time)]
    wanted += [(name, "key", text) for name, text in zip(key_columns(options), options.key, strict=True)]
    carried = [(name, name, getattr(options, name)) for name in ("cost", "value", "weight")]
    chosen = []
    for name, option, text in wanted + [entry for entry in carried if entry[2] is not None]:
        what = f"--{option} {text}"
        with _spark_errors(what, columns):
            chosen.append(_column(columns, text).alias(name))
            # Beside all columns, an aggregate is an error of its own, as it would be beside the other expressions.
            kind = frame.select("*", chosen[-1]).schema[-1].dataType.simpleString()
        if _base_type(kind) not in _ALLOWED[option]:
            raise UsageError(
                f"{what} is {kind}: no {option} can be made of it",
                f"cast it to {_CASTS[option]}: --{option} 'CAST({_quoted(columns, text)} AS ...)'",
            )
    with _spark_errors("--time, --key", columns):
        made = frame.select(*chosen, functions.spark_partition_id().alias(PARTITION))
        _ = made.schema
    return made


def _base_type(kind: str) -> str:
    """Name a type without its precision or collation."""
    return re.split(r"[( <]", kind)[0]


def _quoted(columns: list[str], text: str) -> str:
    return f"`{text.replace('`', '``')}`" if text in columns and not re.fullmatch(r"[A-Za-z_]\w*", text) else text


def _column(columns: list[str], text: str) -> Any:
    from pyspark.sql import functions

    if text in columns:
        return functions.col(f"`{text.replace('`', '``')}`")
    return functions.expr(text)


def row_error(what: str, message: str) -> DataError | None:
    """Return a DataError if Spark reports that an expression failed on a row, else None."""
    found = _ON_A_ROW.search(message)
    if found is None:
        return None
    hint = "try_cast, try_divide and so on give null instead"
    return DataError(f"{what}: an expression fails on a row: {found[0]}", hint)


def _guess(made: "DataFrame", options: SparkSourceOptions, *, numeric: bool) -> TimeFormat:
    """Guess the form of times from 1,000 of them.

    UsageError where they are numbers of several units, DataError where the expression fails on a row.
    """
    with _spark_errors(options.source):
        head = made.select("time").where(made["time"].isNotNull()).limit(_HEAD_ROWS).toArrow()
    column = head.column("time").combine_chunks()
    texts = as_texts(column)
    form = guess_format(texts, numeric=numeric)
    if form.exponent is None:
        return form
    values, status = numbers.to_fixed(texts, 0)
    units = [
        guess_format(pa.array([str(value).encode()], pa.binary()), numeric=True).name
        for value in np.unique(values[status == numbers.OK]).tolist()
        if abs(value) >= 10**9
    ]
    found = {unit: units.count(unit) for unit in NUMERIC if units.count(unit) > _OTHER_UNIT * len(units)}
    if len(found) > 1:
        raise UsageError(
            f"--time {options.time}: the times look like {' and '.join(found)}", "give the unit with --time-format"
        )
    return form


@contextlib.contextmanager
def silent_loggers() -> Iterator[None]:
    """Keep PySpark from printing the plan of a query that fails, as JSON, before it raises."""
    from pyspark.logger import PySparkLogger

    loggers = [PySparkLogger.getLogger(name) for name in _LOGGERS]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)


@contextlib.contextmanager
def _spark_errors(what: str, columns: list[str] | None = None) -> Iterator[None]:
    """Raise Spark's errors of wrong expressions, tables or paths as UsageErrors that list the columns."""
    from pyspark.errors import PySparkException

    try:
        with silent_loggers():
            yield
    except StreamgroupError:
        raise
    except PySparkException as error:
        raise row_error(what, str(error)) or _usage_error(what, str(error), columns) from None
    except Exception as error:
        # What the JVM raises while a source is looked up, which is no exception of PySpark's own.
        if not hasattr(error, "java_exception"):
            raise
        message = str(error.java_exception.toString())
        raise row_error(what, message) or _usage_error(what, message, columns) from None


def _usage_error(what: str, message: str, columns: list[str] | None) -> UsageError:
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    first = without_secrets(lines[0] if lines else message)
    reason = re.sub(r"^([\w.$]+(Exception|Error): )+", "", re.split(r"\.? SQLSTATE", first)[0])
    hint = None
    if re.search("DATA_SOURCE_NOT|No FileSystem for scheme|ClassNotFoundException", message):
        hint = "is its package there? --spark-conf spark.jars.packages=GROUP:NAME:VERSION"
    elif columns is not None:
        more = ", ..." if len(columns) > _SHOWN_COLUMNS else ""
        hint = f"columns: {', '.join(columns[:_SHOWN_COLUMNS])}{more}"
    return UsageError(f"{what}: {reason}", hint)
