"""The options of an ingest with their bounds, checked before anything is read."""

import contextlib
import re
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, JsonValue, PrivateAttr, field_validator, model_validator

from streamgroup.base.errors import DataError, UsageError
from streamgroup.base.storage.storage_path import locate
from streamgroup.ingest.parsing.condition_text import parse_where
from streamgroup.ingest.parsing.english_stopwords import STOPWORDS
from streamgroup.spark.options import SparkOptions, check_no_spark, checked

__all__ = [
    "DEFAULT_MAX_REJECTS",
    "ENGLISH",
    "CommonOptions",
    "IngestOptions",
    "make_options",
    "parse_max_rejects",
    "parse_share",
]

DEFAULT_MAX_REJECTS = "1%"
# Value of --stopwords for our own list instead of a file.
ENGLISH = "english"

_ENCODINGS = {
    "utf-8": "utf-8", "utf8": "utf-8", "utf-8-sig": "utf-8", "ascii": "utf-8", "us-ascii": "utf-8",
    "latin-1": "latin-1", "latin1": "latin-1", "iso-8859-1": "latin-1", "iso8859-1": "latin-1",
    "cp1252": "cp1252", "windows-1252": "cp1252", "utf-16": "utf-16", "utf16": "utf-16", "utf-16-le": "utf-16-le",
    "utf-16le": "utf-16-le", "utf-16-be": "utf-16-be", "utf-16be": "utf-16-be", "utf-32": "utf-32",
    "gb18030": "gb18030", "gbk": "gb18030", "gb2312": "gb18030", "big5": "big5",
    "shift_jis": "shift_jis", "shift-jis": "shift_jis", "euc-jp": "euc_jp", "euc-kr": "euc_kr",
}  # fmt: skip


_MAX_DELIMITER = 16


def _unescape(escape: str) -> str:
    return "\t" if escape == "t" else chr(int(escape[1:], 16))


class CommonOptions(SparkOptions):
    """The options of every ingest, whatever its source.

    `timezone` None is that of the format if it has one, else UTC. `limit` counts input rows, `head` tuples. `since` and
    `until` are ISO times, or numbers in the unit of `time_format`, [since, until). A text of `null_values` may be
    several with commas between. `stopwords` is `english` or a file. `max_rejects` is a number
    of rows or a percentage of the rows read. `driver_memory` is in Spark's notation.
    """

    output: Annotated[str, BeforeValidator(lambda value: locate(value).reference)]
    cost_unit: Literal["s", "ms", "us", "ns"] = "us"
    time_format: str = "auto"
    timezone: str | None = None
    split_words: bool = False
    stopwords: str | None = None
    null_keys: Literal["drop", "keep", "fail"] = "drop"
    null_values: tuple[str, ...] = ()
    limit: int | None = Field(default=None, ge=0)
    since: str | None = None
    until: str | None = None
    head: int | None = Field(default=None, ge=0)
    sample_keys: str | None = None
    max_rejects: str = DEFAULT_MAX_REJECTS
    overwrite: bool = False
    dry_run: bool = False

    # The content of files that options name, by their paths.
    _contents: dict[str, bytes] = PrivateAttr(default_factory=dict)

    @field_validator("stopwords", mode="before")
    @classmethod
    def _as_text(cls, value: Any) -> Any:
        return str(value) if isinstance(value, Path) else value

    @field_validator("null_values")
    @classmethod
    def _split_commas(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(text for texts in value for text in texts.split(","))

    @field_validator("max_rejects")
    @classmethod
    def _check_rejects(cls, value: str) -> str:
        parse_max_rejects(value)
        return value

    @model_validator(mode="after")
    def _check_not_zero(self) -> Self:
        for name, what in (("limit", "rows"), ("head", "tuples")):
            if getattr(self, name) == 0:
                raise DataError(f"--{name} 0 leaves no {what}", "leave it out")
        return self

    @field_validator("sample_keys")
    @classmethod
    def _check_share(cls, value: str | None) -> str | None:
        if value is not None:
            parse_share(value)
        return value

    def with_files(self, paths: Iterable[str] = ()) -> Self:
        """Return options with the content of files and of the file of stopwords: tasks may run on other machines.

        A file that cannot be read is left out: `file_content` raises the error.
        """
        made = self.model_copy()
        for path in {*paths, *(() if self.stopwords in (None, ENGLISH) else (str(self.stopwords),))}:
            with contextlib.suppress(OSError):
                made._contents = {**made._contents, path: made.file_content(path)}
        return made

    def file_content(self, path: str) -> bytes:
        """Return the content of a file that an option names; OSError when it cannot be read."""
        return self._contents[path] if path in self._contents else Path(path).read_bytes()

    def read_stopwords(self) -> frozenset[bytes]:
        """Return the stopwords as bytes: ours, or those of a file, one a line; UsageError when it cannot be read."""
        if self.stopwords is None:
            return frozenset()
        if self.stopwords == ENGLISH:
            # Readers that keep the case have words at the beginning of a sentence, or in a headline.
            return frozenset(form for word in STOPWORDS for form in (word, word.capitalize(), word.upper()))
        try:
            return frozenset(line.strip() for line in self.file_content(self.stopwords).splitlines()) - {b""}
        except OSError as error:
            raise UsageError(f"--stopwords {self.stopwords}: {error.strerror}") from None


class IngestOptions(CommonOptions):
    """All options of an ingest by a reader.

    `time`, `key`, `cost` (in `cost_unit`), `value` and `weight` name a column, or number it from 1; None takes the
    reader's default. A time or key may be of several columns with commas between, a column with a comma in its name is
    in quotes, and the time may be `none`. `where` are conditions that rows must meet (`parsing.where`).

    `if_missing` keeps a trace that is there, if it
    was made of the same inputs with the same options.
    """

    reader: str
    inputs: tuple[str, ...] = Field(min_length=1)
    time: str | None = None
    key: str | None = None
    cost: str | None = None
    value: str | None = None
    weight: str | None = None
    delimiter: str | None = None
    header: bool | None = None
    encoding: str = "utf-8"
    multiline: bool = False
    checksum: bool = True
    engine: Literal["spark", "local"] = "spark"
    where: str | None = None
    if_missing: bool = False
    reader_options: dict[str, JsonValue] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check_engine(self) -> Self:
        if self.engine == "local":
            check_no_spark({name: getattr(self, name) for name in self.model_fields_set})
        return self

    @field_validator("delimiter")
    @classmethod
    def _check_delimiter(cls, value: str | None) -> str | None:
        if value is None:
            return None
        value = re.sub(r"\\(t|x[0-9a-fA-F]{2})", lambda found: _unescape(found[1]), value)
        if not 1 <= len(value) <= _MAX_DELIMITER or set(value) & set('"\r\n'):
            raise ValueError(f"1 to {_MAX_DELIMITER} characters, none of them a quote or a line end; \\t is a tab")
        return value

    @field_validator("where")
    @classmethod
    def _check_where(cls, value: str | None) -> str | None:
        if value is not None:
            parse_where(value)
        return value

    @field_validator("encoding")
    @classmethod
    def _check_encoding(cls, value: str) -> str:
        if value.lower() not in _ENCODINGS:
            raise ValueError(f"{value!r} is not known here: {', '.join(dict.fromkeys(_ENCODINGS.values()))}")
        return _ENCODINGS[value.lower()]


def make_options(**values: Any) -> IngestOptions:
    """Make options, with a UsageError that names the option where pydantic would raise its own error."""
    return checked(IngestOptions, values)


def parse_max_rejects(text: str) -> tuple[int | None, Fraction]:
    """Read `--max-rejects`: (rows, 0) for a number, (None, share of the rows read) for a percentage."""
    match = re.fullmatch(r"\s*(\d+)\s*|\s*(\d+(?:\.\d+)?)\s*%\s*", text)
    if match is None or (match[2] and Fraction(match[2]) > 100):
        raise ValueError(f"{text!r} is neither a number of rows nor a percentage such as 1%")
    return (int(match[1]), Fraction(0)) if match[1] else (None, Fraction(match[2]) / 100)


def parse_share(text: str) -> float:
    """Read a share of the keys, `0.1` or `10%`, as a number above 0 and at most 1."""
    match = re.fullmatch(r"\s*(\d*\.?\d+)\s*(%?)\s*", text)
    share = float(match[1]) / (100 if match[2] else 1) if match else 0.0
    if not 0 < share <= 1:
        raise ValueError(f"{text!r} is not a share above 0 and at most 1, such as 0.1 or 10%")
    return share
