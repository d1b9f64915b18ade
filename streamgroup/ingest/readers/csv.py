"""Comma-separated values (RFC 4180) with a header: any delimiter of one character, quoted fields."""

from typing import ClassVar

from streamgroup.ingest.delimited import DelimitedReader
from streamgroup.ingest.readers.protocol import Defaults

__all__ = ["Reader"]


class Reader(DelimitedReader):
    """CSV: a quote opens a field only at its start; a header may begin with `#`."""

    about = "comma-separated values with a header (quotes as in RFC 4180)"
    defaults: ClassVar = Defaults(time=("timestamp", "time", "ts"), key=("key",))
    delimiter = b","
    quoting = True
    header = True
