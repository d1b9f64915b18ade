"""The input of SLBSimulator (Nasir et al., ICDE 2015): `<seconds> TAB <key>` lines."""

from typing import ClassVar

from streamgroup.ingest.parsing.delimited import DelimitedReader
from streamgroup.ingest.readers.protocol import Defaults

__all__ = ["Reader"]


class Reader(DelimitedReader):
    """SLB: the key is the whole rest of the line; with `--split-words` each of its words is a tuple.

    The original stops for good at the first blank or one-field line; here the one is filtered, the other
    rejected.
    """

    joins: ClassVar[tuple[str, ...]] = ()
    about = "`<seconds> TAB <key>` lines, or `<seconds> TAB <words>` with --split-words"
    defaults: ClassVar = Defaults(time=("time",), key=("key",))
    delimiter = b"\t"
    names = ("time", "key")
    key_to_end = True
