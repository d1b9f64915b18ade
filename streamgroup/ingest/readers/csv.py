"""Comma-separated values (RFC 4180) with a header: any delimiter, quoted fields."""

from typing import ClassVar

from pydantic import Field

from streamgroup.ingest.parsing.delimited import DelimitedOptions, DelimitedReader
from streamgroup.ingest.readers.protocol import Defaults, ReaderOptions

__all__ = ["Reader"]


class Options(DelimitedOptions):
    """Options of the csv reader."""

    escape: str | None = Field(
        default=None, pattern=r"^[!-~]$", description="in quotes, this makes a quote that follows a character: \\\\"
    )
    empty_is_null: bool = Field(default=False, description='an empty key is null, unless it is written ""')


class Reader(DelimitedReader):
    """CSV: a quote opens a field only at its start; a header may begin with `#`."""

    Options: ClassVar[type[ReaderOptions]] = Options
    about = "comma-separated values with a header (quotes as in RFC 4180)"
    defaults: ClassVar = Defaults(time=("timestamp", "time", "ts"), key=("key",))
    delimiter = b","
    quoting = True
    unused = ()
    header = True
