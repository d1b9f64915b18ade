"""Wikipedia clickstream: how often a reader came from one page to another in a month, `prev curr type n`."""

from typing import ClassVar

from streamgroup.base.errors import DataError
from streamgroup.ingest.parsing.event_counts.count_rows import Rows, find_period
from streamgroup.ingest.parsing.event_counts.event_count_reader import CountColumns, CountedReader
from streamgroup.ingest.parsing.lines import Block
from streamgroup.ingest.readers.options import WikipediaClickstream
from streamgroup.ingest.readers.protocol import Defaults, Layout, Parsed

__all__ = ["Reader"]

_KEYS = ("curr", "prev", "type")
_IDS = ("prev_id", "curr_id")
# By the number of fields: since 2016, of January 2015, and of February 2015.
_LAYOUTS = {
    4: CountColumns(("prev", "curr", "type", "n"), (), "month", _KEYS, 3),
    5: CountColumns(("prev_id", "curr_id", "n", "prev", "curr"), (), "month", (*_KEYS[:2], *_IDS), 2),
    6: CountColumns(("prev_id", "curr_id", "n", "prev", "curr", "type"), (), "month", (*_KEYS, *_IDS), 2),
}
_HEADER = {b"prev_id", b"curr_id", b"n", b"prev", b"curr", b"type", b"prev_title", b"curr_title"}


class Reader(CountedReader):
    """Clickstream: the key is the page that was visited, `curr`. There are no times but the month in the file's name.

    Each visit comes at a time drawn from the month, by seed, row and number of the visit: any split gives the same.
    """

    about = "Wikipedia clickstream of a month: `prev curr type n`, or the columns of 2015"
    defaults: ClassVar = Defaults(time=("month",), key=("curr",))
    Options: ClassVar = WikipediaClickstream
    aliases: ClassVar = {"prev_title": "prev", "curr_title": "curr"}

    def look(self, head: Block, path: str) -> Layout:
        """Find the layout by the first line's fields; the month is in the file's name."""
        period = find_period(path, ("month",), {"month": getattr(self.own, "month", None)})
        found = Rows(head, b"\t")
        found.blank()
        width = int(found.width[0]) if len(found.at) else 0
        if width not in _LAYOUTS:
            raise DataError(
                f"{path}: {width or 'no'} fields in the first line, not 4, 5 or 6 with tabs between",
                "is it a clickstream?",
            )
        pieces = found.text(0).split(b"\t")
        layout = self.make_layout(path, _LAYOUTS[width], period)
        inferred = f"columns are {', '.join(_LAYOUTS[width].fields)}"
        header = int(found.lines.number[found.at[0]]) if set(pieces) <= _HEADER else 0
        return layout._replace(header=header, inferred=(inferred,))

    def parse(self, block: Block, layout: Layout, rows: int | None) -> Parsed:
        """Cut lines at tabs; quotes are characters."""
        found = Rows(block, b"\t", rows)
        found.blank()
        if block.at_start and layout.header:
            found.filter(found.lines.number[found.at] == layout.header, "header")
        found.reject(found.width != layout.width, "wrong number of fields")
        count = self.count(found, _LAYOUTS[layout.width].counted)
        return self.tuples(found, layout, found.column(layout.key), count)
