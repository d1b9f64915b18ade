"""Plain text: fields between tabs or runs of blanks, no header, quotes are ordinary characters."""

from typing import ClassVar

from streamgroup.ingest.parsing.delimited import DelimitedReader
from streamgroup.ingest.readers.protocol import Defaults

__all__ = ["Reader"]


class Reader(DelimitedReader):
    """Text: tabs if the first line has one, else runs of blanks (not counting those at its ends).

    With `--split-words` and blanks, the words are all that follows the fields before the key.
    """

    about = "fields between tabs or runs of blanks, no header, no quoting"
    defaults: ClassVar = Defaults(time=("1",), key=("2",))
    delimiter = None
