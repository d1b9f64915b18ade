"""Hourly page views of Wikimedia's wikis: `domain title count bytes`, as in pageviews and pagecounts files."""

from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from streamgroup.ingest.parsing.event_counts.count_rows import Rows, decode_once, find_period
from streamgroup.ingest.parsing.event_counts.event_count_reader import CountColumns, CountedReader
from streamgroup.ingest.parsing.lines import Block
from streamgroup.ingest.readers.options import WikipediaPageviews
from streamgroup.ingest.readers.protocol import Defaults, Layout, Parsed

__all__ = ["Reader"]

_DOMAIN, _TITLE, _COUNT = range(3)
_COLUMNS = CountColumns(("domain", "title", "count", "bytes"), ("page",), "hour", ("page", "domain", "title"), _COUNT)


class Reader(CountedReader):
    """Page views: the key is domain and title with a blank between; the hour stands in the name of the file."""

    about = "hourly page views of Wikimedia: `domain title count bytes`; the hour is in the file's name"
    defaults: ClassVar = Defaults(time=("hour",), key=("page",))
    Options: ClassVar = WikipediaPageviews
    even = "hour"

    def look(self, head: Block, path: str) -> Layout:
        """Take the hour from the file's name."""
        del head
        period = find_period(path, ("hour",), {"hour": getattr(self.own, "hour", None)})
        return self.make_layout(path, _COLUMNS, period)

    def parse(self, block: Block, layout: Layout, rows: int | None) -> Parsed:
        """Cut lines at single blanks; rows that are not four fields, or of no domain, are rejected."""
        own: Any = self.own
        found, count = self.hourly(block, layout, rows, totals=own.totals)
        if not own.untitled:
            untitled = found.are(_TITLE, b"-")
            found.filter(untitled, "no title")
            count = count[~untitled]
        return self.tuples(found, layout, _key(found, layout.names[layout.key], decode=own.decode), count)


def _key(rows: Rows, name: str, *, decode: bool) -> pa.Array:
    if name == "domain":
        return rows.column(_DOMAIN)
    if name == "title":
        return decode_once(rows.column(_TITLE)) if decode else rows.column(_TITLE)
    if not decode:
        return rows.column(_DOMAIN, last=_TITLE)
    return pc.binary_join_element_wise(rows.column(_DOMAIN), decode_once(rows.column(_TITLE)), b" ")
