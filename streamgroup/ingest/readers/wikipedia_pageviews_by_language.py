"""Page views by project or language: hourly projectviews, and pageview complete with its counts by hour or day."""

from collections import Counter
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from streamgroup.base.errors import DataError, UsageError
from streamgroup.ingest.parsing import fields
from streamgroup.ingest.parsing.event_counts.count_rows import (
    HOUR,
    MAX_COUNT,
    Rows,
    even_offsets,
    find_period,
    random_offsets,
)
from streamgroup.ingest.parsing.event_counts.counts_as_letters import Slots, read_letters
from streamgroup.ingest.parsing.event_counts.event_count_reader import CountColumns, CountedReader
from streamgroup.ingest.parsing.lines import HEAD_ROWS, Block
from streamgroup.ingest.parsing.multi_line_records import TOO_LONG
from streamgroup.ingest.readers.options import WikipediaPageviewsByLanguage
from streamgroup.ingest.readers.protocol import Defaults, Each, Layout, Parsed

__all__ = ["Reader"]

I64 = NDArray[np.int64]
Mask = NDArray[np.bool_]

_KEYS = ("domain", "language", "page", "title")
_MADE = ("page", "language")
_HOURLY = CountColumns(("domain", "title", "count", "bytes"), _MADE, "hour", _KEYS, 2)
_WITH_ID = CountColumns(
    ("domain", "title", "page_id", "device", "total", "hours"), _MADE, "hour", (*_KEYS, "device"), 4
)
_WITHOUT_ID = CountColumns(("domain", "title", "device", "total", "hours"), _MADE, "hour", (*_KEYS, "device"), 3)
_LAYOUTS = {4: _HOURLY, 5: _WITHOUT_ID, 6: _WITH_ID}
_INFERRED = {4: "rows are counts of an hour", 5: "rows lack a page id", 6: "rows have a page id"}
_DEVICES = (b"desktop", b"mobile-web", b"mobile-app")
_SLOTS = {"day": 24, "month": 31}


class Reader(CountedReader):
    """Page views by project: the key is the domain (`en.m`, `en.wikipedia`), or the language, what is before its dot.

    A record that line feeds in its title break into several lines is rejected, once; no part of it becomes a key.
    """

    about = "page views by project or language: projectviews, and pageview complete by hour (`A1B2..X1`) or day"
    defaults: ClassVar = Defaults(time=("hour",), key=("domain",))
    Options: ClassVar = WikipediaPageviewsByLanguage

    @property
    def splittable(self) -> bool:
        """A title may hold line feeds."""
        return False

    def look(self, head: Block, path: str) -> Layout:
        """Find the layout that most of the first rows have; the period is in the file's name."""
        width = _width(head)
        if not width:
            raise DataError(
                f"{path}: no row of page views in its first lines", "is it projectviews or pageview complete?"
            )
        own = self._own
        given = {"hour": own.hour, "day": own.day, "month": own.month}
        kinds = ("hour",) if width == len(_HOURLY.fields) else ("day", "month")
        wrong = [kind for kind, text in given.items() if text is not None and kind not in kinds]
        if wrong:
            raise UsageError(f"{path}: its rows are of no {wrong[0]}", f"give --{' or --'.join(kinds)}")
        period = find_period(path, kinds, {kind: given[kind] for kind in kinds})
        inferred = [_INFERRED[width]]
        if period.kind != "hour":
            inferred.append("letters are hours" if period.kind == "day" else "letters are days")
        layout = self.make_layout(path, _LAYOUTS[width], period)
        return layout._replace(inferred=tuple(inferred))

    @property
    def _own(self) -> Any:
        return self.own

    def parse(self, block: Block, layout: Layout, rows: int | None) -> Parsed:
        """Cut lines at single blanks; what is no row as it should be is rejected."""
        if layout.width == len(_HOURLY.fields):
            return self._hourly(block, layout, rows)
        return self._lettered(block, layout, rows)

    def _hourly(self, block: Block, layout: Layout, rows: int | None) -> Parsed:
        found, count = self.hourly(block, layout, rows, totals=self._own.totals)
        return self.tuples(found, layout, _key(found, layout), count)

    def _lettered(self, block: Block, layout: Layout, rows: int | None) -> Parsed:
        period, own = self.period(layout), self._own
        found = Rows(block, b" ")
        found.join(*_broken(found, layout.width), rows)
        found.blank()
        lacking = (found.width == len(_WITHOUT_ID.fields)) & (layout.width == len(_WITH_ID.fields))
        found.reject((found.width != layout.width) & ~lacking, "wrong number of fields")
        lacking = found.width != layout.width
        found.reject(~found.is_domain(0) | (lacking & ~_dotted(found)), "not a domain")
        if not own.without_page_id:
            found.reject(found.width != layout.width, "page id is missing")
        if layout.width == len(_WITH_ID.fields):
            wrong = ~found.whole(2)[1] & ~found.are(2, b"null") & (found.width == layout.width)
            found.reject(wrong, "page id is neither a number nor null")
        device = found.width - 3
        known = np.logical_or.reduce([found.are(device, name) for name in _DEVICES])
        found.reject(~known, "not a device")
        total, whole = found.whole(found.width - 2)
        found.reject(~whole, "count is not a whole number")
        large = total[whole] > MAX_COUNT
        found.reject(large, "count is too large")
        total = total[whole][~large]
        slots = _SLOTS[period.kind] if period.kind == "day" else period.length // (24 * HOUR)
        letters, good = read_letters(block.data, *found.bounds(found.width - 1), slots)
        sums = np.diff(np.append(0, np.cumsum(letters.number))[letters.first])
        found.reject(~good, f"not counts by {'hour' if period.kind == 'day' else 'day'}")
        uneven = sums[good] != total[good]
        found.reject(uneven, "total is not the sum of its counts")
        kept = np.flatnonzero(good)[~uneven]
        found.filter(total[kept] == 0, "count is 0")
        letters = letters.of(kept[total[kept] > 0])
        start = np.full(len(found.at), period.start)
        parsed = self.parsed(found, layout, _key(found, layout), start)
        return self._spread(parsed, found, letters, layout)

    def _spread(self, parsed: Parsed, rows: Rows, letters: Slots, layout: Layout) -> Parsed:
        """Expand each row into its tuples: one a view, or one a letter with the count as weight."""
        period, own = self.period(layout), self._own
        unit = HOUR if period.kind == "day" else 24 * HOUR
        ends = np.cumsum(letters.number)
        before = np.append(0, ends)[letters.first]
        hashes = rows.hashes() if own.spread == "draw" else None
        begins = period.start + letters.slot * unit

        def draw(entry: I64, place: I64) -> I64:
            return (
                0 * place
                if hashes is None
                else random_offsets((hashes[0][entry], hashes[1][entry]), place, unit, own.seed)
            )

        def views(entry: I64, place: I64) -> Each:
            number = before[entry] + place
            letter = np.searchsorted(ends, number, "right")
            if own.spread != "even":
                return Each(begins[letter] + draw(entry, place))
            count = letters.number[letter]
            return Each(begins[letter] + even_offsets(number - (ends[letter] - count), count, unit))

        def weights(entry: I64, place: I64) -> Each:
            letter = letters.first[entry] + place
            weight = letters.number[letter].astype(np.float64) if self.options.weight is None else None
            return Each(begins[letter] + draw(entry, place), weight)

        parsed = parsed._replace(span=(period.start, period.start + period.length))
        if own.counts == "weight":
            return parsed._replace(repeat=np.diff(letters.first), each=weights, ascending=True)
        return parsed._replace(repeat=np.diff(before), each=views, ascending=own.spread != "draw")


def _width(head: Block) -> int:
    """Return the most common number of fields among first rows that look like page views; 0 when there is none."""
    found = Rows(head, b" ", HEAD_ROWS)
    found.blank()
    found.at = found.at[(found.width >= min(_LAYOUTS)) & (found.width <= max(_LAYOUTS))]
    bounds = found.bounds(found.width - 1)
    hourly = (found.width == len(_HOURLY.fields)) & found.whole(found.width - 1)[1]
    lettered = (found.width > len(_HOURLY.fields)) & read_letters(head.data, *bounds, _SLOTS["month"])[1]
    widths = Counter(found.width[hourly | lettered].tolist())
    return int(widths.most_common(1)[0][0]) if widths else 0


def _broken(rows: Rows, width: int) -> tuple[list[tuple[int, int, str]], int]:
    """Find records that line feeds break: a line of domain and text, lines of text, one that ends as a row does.

    Gives (first line, last line, reason) of each, and the line from which on the next block must look again.
    """
    records: list[tuple[int, int, str]] = []
    count = rows.cut.count
    odd = np.flatnonzero(count != width)
    data, lines = rows.block.data, rows.lines
    first = last = -1
    for line in odd.tolist():
        if first >= 0 and line == last + 1 and count[line] == 1:
            last = line
            continue
        if first >= 0 and line == last + 1 and count[line] > 2 and _is_tail(rows, line):
            records.append((first, line, "record goes over several lines"))
            first = -1
            continue
        first = line if count[line] == 2 and _is_head(rows, line) else -1
        last = line
    stop = len(lines.start)
    if first >= 0 and last == stop - 1 and not rows.block.final:
        if len(data) - int(lines.start[first]) < fields.MAX_RECORD:
            return records, first
        records.append((first, last, TOO_LONG))
    return records, stop


def _is_head(rows: Rows, line: int) -> bool:
    place = rows.cut.first[line]
    domain = rows.block.data[int(rows.cut.start[place]) : int(rows.cut.end[place])].tobytes()
    return b"." in domain and domain.replace(b".", b"").replace(b"-", b"").replace(b"_", b"").isalnum()


def _is_tail(rows: Rows, line: int) -> bool:
    *_, device, total, letters = rows.line(line).split(b" ")
    return device in _DEVICES and total.isdigit() and letters[:1] != b"" and letters[-1:].isdigit()


def _dotted(rows: Rows) -> Mask:
    start, end = rows.bounds(0)
    return _first_dot(rows.block.data, start, end) < end


def _first_dot(data: NDArray[np.uint8], start: I64, end: I64) -> I64:
    dots = np.append(np.flatnonzero(data == ord(".")), len(data))
    first: I64 = np.minimum(dots[np.searchsorted(dots, start)], end)
    return first


def _key(rows: Rows, layout: Layout) -> Any:
    name = layout.names[layout.key]
    if name == "page":
        return rows.column(0, last=1)
    if name == "language":
        start, end = rows.bounds(0)
        return fields.column(rows.block.buffer, start, _first_dot(rows.block.data, start, end))
    if name == "device":
        start, end = rows.bounds(rows.width - 3)
        return fields.column(rows.block.buffer, start, end)
    return rows.column(layout.key)
