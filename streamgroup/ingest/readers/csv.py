"""Comma-separated values (RFC 4180) with a header: any delimiter, quoted fields."""

from typing import ClassVar

from streamgroup.ingest.parsing.delimited import DelimitedReader
from streamgroup.ingest.readers.options import Csv
from streamgroup.ingest.readers.protocol import Defaults

__all__ = ["Reader"]


class Reader(DelimitedReader):
    """CSV: a quote opens a field only at its start; a header may begin with `#`."""

    Options: ClassVar = Csv
    about = "comma-separated values with a header (quotes as in RFC 4180)"
    defaults: ClassVar = Defaults(time=("timestamp", "time", "ts"), key=("key",))
    delimiter = b","
    quoting = True
    header = True
