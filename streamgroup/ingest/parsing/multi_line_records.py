"""Records of several lines, separated by blank lines, within blocks of bytes."""

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from streamgroup.ingest.parsing import fields
from streamgroup.ingest.parsing.fields import Lines
from streamgroup.ingest.parsing.lines import Block

__all__ = ["TOO_LONG", "Records", "find_records", "nest"]

I64 = NDArray[np.int64]
Mask = NDArray[np.bool_]

TOO_LONG = f"record is longer than {fields.MAX_RECORD >> 20} MiB"


class Records(NamedTuple):
    """Records of a block: record i has the lines [first[i], last[i]) of `lines`, none of them blank.

    `too_long` marks those of which the rest follows in the next block. `physical` counts the lines, blank ones too,
    of the `consumed` bytes.
    """

    lines: Lines
    first: I64
    last: I64
    too_long: Mask
    physical: int
    consumed: int

    @property
    def number(self) -> I64:
        """The physical line at which each record begins, from 1."""
        return self.lines.number[self.first]

    def owners(self) -> I64:
        """Return the record of each line from the first record to the last."""
        return np.searchsorted(self.first, np.arange(len(self.lines.start)), "right") - 1

    def text(self, data: NDArray[np.uint8], record: int) -> bytes:
        """Return a record as it was written, without the end of its last line."""
        start, end = self.lines.start[self.first[record]], self.lines.end[self.last[record] - 1]
        return bytes(data[int(start) : int(end)].tobytes())


def find_records(block: Block, rows: int | None, begins: bytes | None = None) -> Records:
    """Find the records of a block, at most `rows`; one that the block cuts off is left for the next.

    A line that starts with `begins` begins a record even without a blank line before it. A record longer than
    MAX_RECORD is given up: what the block holds of it is a record marked as too long, what follows is another.
    """
    data = block.data
    lines = fields.find_lines(data)
    blank = fields.blank_lines(data, lines)
    filled = np.flatnonzero(~blank)
    lines, physical, consumed = lines.take(filled), len(blank), len(data)
    after_blank = np.diff(filled, prepend=-2) > 1
    starts = after_blank if begins is None else after_blank | fields.starts_with(data, lines, begins)
    first = np.flatnonzero(starts)
    last = np.append(first[1:], len(filled))[: len(first)]
    too_long = np.zeros(len(first), bool)
    if len(first) and not block.final and not blank[-1]:
        start = int(lines.start[first[-1]])
        if len(data) - start <= fields.MAX_RECORD:
            physical, consumed = int(filled[first[-1]]), start
            first, last, too_long = first[:-1], last[:-1], too_long[:-1]
        else:
            too_long[-1] = True
    too_long |= lines.end[last - 1] - lines.start[first] > fields.MAX_RECORD
    if rows is not None:
        first, last, too_long = first[:rows], last[:rows], too_long[:rows]
    kept = int(last[-1]) if len(last) else 0
    return Records(lines.take(slice(kept)), first, last, too_long, physical, consumed)


def nest(outer: I64, lists: pa.Array) -> pa.Array:
    """Join lists [outer[i], outer[i + 1]) into one, for each i."""
    bounds = lists.offsets.to_numpy()[outer] if pa.types.is_list(lists.type) else outer
    values = lists.values if pa.types.is_list(lists.type) else lists
    return pa.ListArray.from_arrays(pa.array(bounds, pa.int32()), values)
