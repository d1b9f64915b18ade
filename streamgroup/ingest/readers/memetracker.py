"""MemeTracker (Leskovec, Backstrom, Kleinberg, KDD 2009), `quotes_YYYY-MM.txt`: pages with phrases and links."""

from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from streamgroup.base.errors import DataError
from streamgroup.ingest.options import IngestOptions
from streamgroup.ingest.parsing import fields
from streamgroup.ingest.parsing.lines import HEAD_ROWS, Block, LineReader
from streamgroup.ingest.parsing.multi_line_records import TOO_LONG, find_records, nest
from streamgroup.ingest.parsing.split_words import words
from streamgroup.ingest.readers.options import Memetracker
from streamgroup.ingest.readers.protocol import Defaults, Layout, Parsed, Reject

__all__ = ["Reader"]

_LINES = (b"P\t", b"T\t", b"Q\t", b"L\t")
_PAGE, _TIME, _PHRASE, _LINK = range(4)


class Reader(LineReader):
    """MemeTracker: a page is a record, a P line with the T, Q and L lines below it.

    A page without phrases has no words; what is filtered then is the page.
    """

    Options: ClassVar = Memetracker
    about = "MemeTracker: P (page), T (time), Q (phrase) and L (link) lines; words of the phrases as keys"
    defaults: ClassVar = Defaults(time=("time",), key=("words",))
    instead = "choose what the keys are with --keys"

    def __init__(self, options: IngestOptions) -> None:
        """Check the options; UsageError says which is wrong."""
        super().__init__(options)
        own: Any = self.own
        self._keys: str = own.keys

    @property
    def splittable(self) -> bool:
        """Records are of several lines."""
        return False

    def look(self, head: Block, path: str) -> Layout:
        """Check that there are P lines; DataError names the file of phrase clusters if it is that one."""
        lines = fields.find_lines(head.data)
        if not fields.starts_with(head.data, lines, _LINES[_PAGE]).any():
            clusters = any(_is_mention(lines.text(head.data, line)) for line in range(min(len(lines.start), HEAD_ROWS)))
            if clusters:
                raise DataError(
                    f"{path}: this is the file of phrase clusters (clust-*.txt), whose lines are nested by tabs",
                    "this reader takes the raw phrase files, quotes_YYYY-MM.txt.gz",
                )
            raise DataError(f"{path}: no line of it begins with P and a tab", "give a file quotes_YYYY-MM.txt.gz")
        return Layout(names=("time", self._keys), time=0, key=1)

    def parse(self, block: Block, layout: Layout, rows: int | None) -> Parsed:
        """Find the lines of each letter in the records of a block."""
        del layout
        data = block.data
        found = find_records(block, rows, begins=_LINES[_PAGE])
        lines, owner = found.lines, found.owners()
        kind = np.full(len(lines.start), -1)
        for number, prefix in enumerate(_LINES):
            kind[fields.starts_with(data, lines, prefix)] = number
        counts = np.zeros((len(found.first), len(_LINES) + 1), np.int64)
        np.add.at(counts, (owner, kind), 1)
        faults = dict.fromkeys(np.flatnonzero(counts[:, _TIME] != 1).tolist(), "record has no time, or two")
        faults |= dict.fromkeys(np.flatnonzero(counts[:, -1] > 0).tolist(), "a line is not P, T, Q or L")
        faults |= dict.fromkeys(np.flatnonzero(kind[found.first] != _PAGE).tolist(), "record does not begin with P")
        faults |= dict.fromkeys(np.flatnonzero(found.too_long).tolist(), TOO_LONG)
        good = np.ones(len(found.first), bool)
        good[list(faults)] = False
        keep = np.flatnonzero(good)

        def column(number: int) -> pa.Array:
            taken = np.flatnonzero((kind == number) & good[owner])
            return fields.column(block.buffer, lines.start[taken] + 2, lines.end[taken])

        def lists(values: pa.Array, number: int) -> pa.Array:
            return nest(np.concatenate([[0], np.cumsum(counts[keep, number])]), values)

        if self._keys == "pages":
            key = column(_PAGE)
        elif self._keys == "links":
            key = lists(column(_LINK), _LINK)
        else:
            phrases = column(_PHRASE)
            key = lists(words(phrases) if self._keys == "words" else phrases, _PHRASE)
        rejects = [Reject(int(found.number[record]), faults[record], found.text(data, record)) for record in faults]
        return Parsed(
            rows=len(found.first),
            lines=found.physical,
            consumed=found.consumed,
            line=found.number[keep],
            time=column(_TIME),
            key=key,
            cost=None,
            value=None,
            text=lambda entry: found.text(data, int(keep[entry])),
            rejects=sorted(rejects, key=lambda reject: reject.line),
            filtered={},
        )


def _is_mention(line: bytes) -> bool:
    """Report whether a line is of the deepest level of a cluster file: two tabs, time, number, B or M, address."""
    pieces = line.split(b"\t")
    return len(pieces) >= 5 and pieces[:2] == [b"", b""] and pieces[4] in (b"B", b"M")
