"""Options of `ingest spark`: what to load, and the expressions of time, key, cost, value and weight."""

import re
from typing import Any

from pydantic import Field, field_validator, model_validator

from streamgroup.base.errors import UsageError
from streamgroup.base.redaction import shown_url, without_secrets
from streamgroup.ingest.options import CommonOptions
from streamgroup.spark.options import checked

__all__ = ["FRAME", "SparkSourceOptions", "make_source_options"]

# Name in messages for a DataFrame of the caller.
FRAME = "the DataFrame"


class SparkSourceOptions(CommonOptions):
    """All options of `ingest spark`.

    Spark loads `paths` in `format` (None: its default, Parquet) with `option` (K=V), or the table `table`, or what the
    query `sql` returns; none of them where the DataFrame is there already. `where` (a condition), `time`, `key`, `cost`
    (us), `value` and `weight` are Spark SQL expressions, a column's name being the simplest; several of `key` make a
    composite key.
    """

    paths: tuple[str, ...] = ()
    format: str | None = None
    option: tuple[str, ...] = ()
    table: str | None = None
    sql: str | None = None
    where: str | None = None
    time: str
    key: tuple[str, ...] = Field(min_length=1)
    cost: str | None = None
    value: str | None = None
    weight: str | None = None

    @field_validator("option")
    @classmethod
    def _check_pairs(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for pair in value:
            if not re.match(r"[^=\s]+=", pair):
                raise ValueError(f"{pair!r} is not NAME=VALUE")
        return value

    @field_validator("time", "key", "cost", "value", "weight", "where", mode="after")
    @classmethod
    def _check_expressions(cls, value: Any) -> Any:
        for text in value if isinstance(value, tuple) else (value,):
            if text is not None and not text.strip():
                raise ValueError("an empty text is no expression")
        return value

    @model_validator(mode="after")
    def _check_words(self) -> "SparkSourceOptions":
        if len(self.key) > 1 and (self.split_words or self.stopwords is not None):
            raise UsageError(
                "--split-words and --stopwords take a key of one text, not several --key", "give one --key"
            )
        return self

    @property
    def source(self) -> str:
        """Name what is loaded, as it was given but without passwords, for messages."""
        if self.table is not None:
            return without_secrets(f"--table {self.table}")
        if self.sql is not None:
            return "--sql"
        return " ".join(map(shown_url, self.paths)) or (f"--format {self.format}" if self.format else FRAME)


def make_source_options(**values: Any) -> SparkSourceOptions:
    """Make the options of `ingest spark`; UsageError names the option that is wrong, or what is to be loaded twice."""
    options = checked(SparkSourceOptions, values)
    given = [
        name
        for name, there in (
            ("paths", options.paths or (options.format and options.table is None and options.sql is None)),
            ("--table", options.table is not None),
            ("--sql", options.sql is not None),
        )
        if there
    ]
    if len(given) != 1:
        what = " and ".join(given)
        raise UsageError(
            f"{what} exclude each other" if given else "nothing to load",
            "give one of: paths (or a --format that needs none), --table NAME, --sql QUERY",
        )
    if options.format is not None and "paths" not in given:
        raise UsageError(f"--format means nothing with {given[0]}", "leave it out")
    if options.option and given[0] == "--sql":
        raise UsageError("--option means nothing with --sql", "write the options into the query")
    return options
