"""The base of readers of rows with a count of events in a period: expanded to tuples, or with the count as weight."""

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from streamgroup.base.errors import UsageError
from streamgroup.ingest.parsing.event_counts.count_rows import MAX_COUNT, Period, Rows, even_offsets, random_offsets
from streamgroup.ingest.parsing.lines import Block, LineReader
from streamgroup.ingest.readers.options import CountedOptions, ReaderOptions
from streamgroup.ingest.readers.protocol import Each, Layout, Parsed, find_column

__all__ = ["CountColumns", "CountedReader"]

I64 = NDArray[np.int64]

_UTC = pa.timestamp("us", "UTC")


class CountColumns(NamedTuple):
    """The columns of a layout: names of the `fields` of a row, of what is made of them, and of the time (last).

    `keys` are those that can be the key; `counted` is the number of the field with the count.
    """

    fields: tuple[str, ...]
    made: tuple[str, ...]
    time: str
    keys: tuple[str, ...]
    counted: int


class CountedReader(LineReader):
    """Rows that stand for `count` events each."""

    Options: ClassVar[type[ReaderOptions]] = CountedOptions

    instead = "times come from the period, fields from the format"
    # The value of `spread` for even steps.
    even: ClassVar[str] = "even"
    # Other names of columns.
    aliases: ClassVar[dict[str, str]] = {}

    def make_layout(self, path: str, columns: CountColumns, period: Period, extra: tuple[str, ...] = ()) -> Layout:
        """Find the columns asked for; UsageError when one of them cannot serve."""
        opts, names = self.options, (*columns.fields, *columns.made, columns.time)

        def find(what: str, wanted: str | None, defaults: tuple[str, ...], allowed: tuple[str, ...]) -> int:
            wanted = self.aliases.get(wanted, wanted) if wanted is not None else None
            number = find_column(wanted, defaults, names, what, path)
            if number >= 0 and names[number] not in allowed:
                raise UsageError(f"{path}: column {wanted!r} cannot be the {what}", f"use {', '.join(allowed)}")
            return number

        count = (columns.fields[columns.counted],)
        return Layout(
            names=names,
            time=find("time", opts.time, (columns.time,), (columns.time,)),
            key=find("key", opts.key, self.defaults.key, columns.keys),
            cost=find("cost", opts.cost, (), columns.fields),
            value=find("value", opts.value, (), columns.fields),
            weight=find("weight", opts.weight, count if self._by_weight else (), columns.fields),
            width=len(columns.fields),
            extra=(period.kind, str(period.start), str(period.length), *extra),
        )

    @property
    def _by_weight(self) -> bool:
        return getattr(self.own, "counts", "expand") == "weight"

    @staticmethod
    def period(layout: Layout) -> Period:
        """Return the period of a layout that `make_layout` made."""
        return Period(layout.extra[0], int(layout.extra[1]), int(layout.extra[2]))

    def tuples(self, rows: Rows, layout: Layout, key: Any, count: I64) -> Parsed:
        """Return the good rows, each with its count (above 0), as tuples."""
        period = self.period(layout)
        parsed = self.parsed(rows, layout, key, np.full(len(key), period.start))
        times = self.times(rows, period.start, period.length, np.ones_like(count) if self._by_weight else count)
        if times is None:
            return parsed if self._by_weight else parsed._replace(repeat=count)
        if self._by_weight:
            entry = np.arange(len(key))
            return parsed._replace(time=pa.array(times(entry, np.zeros_like(entry)), _UTC))
        return parsed._replace(
            repeat=count,
            each=lambda entry, place: Each(times(entry, place)),
            ascending=getattr(self.own, "spread", "none") == self.even,
            span=(period.start, period.start + period.length),
        )

    def times(self, rows: Rows, start: int, length: int, count: I64) -> Callable[[I64, I64], I64] | None:
        """Return a function from entry and place (0, 1, ...) to the time of that tuple; None: all at the start."""
        spread, seed = getattr(self.own, "spread", "none"), int(getattr(self.own, "seed", 0))
        if spread == "none" or (spread == self.even and self._by_weight):
            return None
        if spread == self.even:
            return lambda entry, place: start + even_offsets(place, count[entry], length)
        low, high = rows.hashes()
        return lambda entry, place: start + random_offsets((low[entry], high[entry]), place, length, seed)

    def hourly(self, block: Block, layout: Layout, rows: int | None, *, totals: bool) -> tuple[Rows, I64]:
        """Cut lines `domain title count bytes`; give the good ones and their counts."""
        found = Rows(block, b" ", rows)
        found.blank()
        found.reject(found.width != layout.width, "wrong number of fields")
        # Wikis without a code of their own are written so.
        found.reject(~found.is_domain(0) & ~found.are(0, b'""'), "not a domain")
        found.reject(~found.whole(3)[1], "bytes are not a whole number")
        count = self.count(found, 2)
        if not totals:
            total = found.ends_with(0, b".mw")
            found.filter(total, "total of a project")
            count = count[~total]
        return found, count

    def count(self, rows: Rows, column: int) -> I64:
        """Read the counts: a row without one, or with one too large, is rejected; one of 0 is filtered."""
        values, good = rows.whole(column)
        rows.reject(~good, "count is not a whole number")
        values = values[good]
        large = values > MAX_COUNT
        rows.reject(large, "count is too large")
        values = values[~large]
        rows.filter(values == 0, "count is 0")
        return values[values > 0]

    @staticmethod
    def parsed(rows: Rows, layout: Layout, key: Any, start: I64) -> Parsed:
        """Return the good rows as one tuple each, at the times `start`."""

        def column(number: int) -> Any:
            # From the right, as rows may lack a field in the middle.
            return rows.column(number + rows.width - layout.width)

        return Parsed(
            rows=rows.records,
            lines=rows.physical,
            consumed=rows.consumed,
            line=rows.lines.number[rows.at],
            time=pa.array(start, _UTC),
            key=key,
            **layout.optional_of(column),
            text=rows.text,
            rejects=rows.rejects,
            filtered=dict(rows.filtered),
        )
