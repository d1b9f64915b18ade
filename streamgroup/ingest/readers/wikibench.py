"""WikiBench access traces (Urdaneta, Pierre, van Steen, Computer Networks 2009): `counter time url flag`."""

from typing import ClassVar

from streamgroup.ingest.parsing.delimited import DelimitedReader
from streamgroup.ingest.readers.protocol import Defaults

__all__ = ["Reader"]


class Reader(DelimitedReader):
    """WikiBench: times are seconds with a fraction (2007) or ISO without a zone (2010), in UTC.

    The counter follows the order in which the servers wrote, which is not the order of the times.
    """

    about = "WikiBench access traces: `counter time url flag`"
    defaults: ClassVar = Defaults(time=("time",), key=("url",))
    delimiter = b" "
    names = ("counter", "time", "url", "flag")
