"""Segments: runs of tuples of bounded size, each with a dictionary of its own, as read tasks write them."""

import json
import zlib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from streamgroup.base.errors import RunError
from streamgroup.ingest.pipeline.arrow_blocks import Row, block
from streamgroup.ingest.pipeline.expand_rows import Tuples, pieces

__all__ = [
    "CARRIED",
    "CHANGED",
    "SPLIT_BITS",
    "LateRows",
    "MarkedRows",
    "Segment",
    "SegmentWriter",
    "check_unchanged_segment",
    "read_segment",
    "row_numbers",
    "segment_blocks",
]

# Hint when the input has other rows when it is read again.
CHANGED = "keep the input as it is until the end; of a query without an order, store the rows first"

I64 = NDArray[np.int64]
U32 = NDArray[np.uint32]

# Columns that tuples may have besides time and key; `nth` becomes their parent.
CARRIED = ("cost", "value", "weight", "nth")

# A segment's number is that of its split, and behind it in so many bits the number within the split.
SPLIT_BITS = 20
# Tuples of a block, however many a batch of rows makes.
BLOCK_TUPLES = 1 << 20
# A segment ends with the block that takes it past any of these, so that its dictionary fits into memory anywhere.
MAX_TUPLES = 4 << 20
MAX_KEYS = 1 << 20
MAX_KEY_BYTES = 64 << 20

# How many keys of a segment the driver sees, and how much of each, to cut all keys into ranges.
SAMPLES = 32
SAMPLE_BYTES = 256


class MarkedRows(NamedTuple):
    """How many rows of a segment are of some kind, and whether its first (row 0, even if continued) and last are."""

    rows: int
    first: bool
    last: bool


class Segment(NamedTuple):
    """A segment as the driver sees it: number (split x 2^SPLIT_BITS + count), tuples, rows, keys, times in us.

    `late` counts rows with a time before the latest one seen until then in the segment; `samples` are beginnings of
    some of its keys, in order; `key_bytes` is what its keys take in memory. A row counts in the segment in which it
    begins; row 0 of one that is `continued` began in the one before. `digest` is one of the dictionary: a segment that
    was lost and made again must have the same.
    """

    number: int
    tuples: int
    rows: int
    keys: int
    first: int
    last: int
    lowest: int
    highest: int
    late: MarkedRows
    samples: tuple[bytes, ...] = ()
    continued: bool = False
    key_bytes: int = 0
    digest: int = 0

    @property
    def in_order(self) -> bool:
        """Report whether the segment's tuples are in time order."""
        return not self.late.rows

    def as_json(self) -> str:
        """Write the segment for the `stats` of its row."""
        samples = [sample.decode("latin-1") for sample in self.samples]
        return json.dumps(self._replace(samples=samples))  # type: ignore[arg-type]


def read_segment(row: Row) -> Segment:
    """Read the segment of a row of kind `segment`."""
    segment = Segment(*json.loads(row.stats or ""))
    samples = tuple(str(sample).encode("latin-1") for sample in segment.samples)
    return segment._replace(late=MarkedRows(*segment.late), samples=samples)


class LateRows:
    """Counts the rows of a segment of which a tuple has a time before the latest one seen until then.

    Rows are numbered from 0 and may come in several blocks each.
    """

    def __init__(self, latest: int = -(2**63)) -> None:
        """Start after tuples of which `latest` is the latest time."""
        self.latest = latest
        self.found = MarkedRows(0, first=False, last=False)
        self._row = -1

    def add(self, stamps: I64, row: I64) -> None:
        """Take the times and rows of some tuples, at least one."""
        latest = np.maximum(np.maximum.accumulate(stamps), self.latest)
        late = stamps < latest
        # Whether the first row has been counted with the tuples before.
        counted = self.found.last and int(row[0]) == self._row
        if late.any():
            of_row = np.logical_or.reduceat(late, np.flatnonzero(np.diff(row, prepend=row[0] - 1)))
            rows = self.found.rows + int(of_row.sum()) - bool(counted and of_row[0])
            first = self.found.first or bool(of_row[0] and row[0] == 0)
            last = bool(of_row[-1]) or (counted and len(of_row) == 1)
            self.found = MarkedRows(rows, first, last)
        else:
            self.found = self.found._replace(last=counted and int(row[-1]) == self._row)
        self.latest, self._row = int(latest[-1]), int(row[-1])


class SegmentWriter:
    """Makes the blocks of the segments of one split: keys become local numbers.

    Each block numbers its keys by itself, after those of the blocks before, so that a key may have several numbers: to
    look up every key among all before it takes longer than to merge the few blocks at the end.
    """

    def __init__(self, split: int) -> None:
        """Start with the first segment of a split."""
        self._next = split << SPLIT_BITS
        self._reset()

    def _reset(self) -> None:
        self._keys: list[Any] = []
        self._counts: list[I64] = []
        self._numbers = self._key_bytes = 0
        self._tuples = self._rows = self._blocks = 0
        self._late = LateRows()
        self._continued = False
        self._bounds: tuple[int, int, int, int] | None = None

    def add(self, tuples: Tuples) -> Iterator[pa.RecordBatch]:
        """Yield the blocks of a batch of tuples, in input order."""
        for piece in pieces(tuples, BLOCK_TUPLES):
            yield self._block(piece)
            if self._tuples >= MAX_TUPLES or self._numbers >= MAX_KEYS or self._key_bytes >= MAX_KEY_BYTES:
                yield from self.close()

    def _block(self, tuples: Tuples) -> pa.RecordBatch:
        local = self._encode(tuples.key)
        if not self._tuples:
            self._continued = tuples.continued
        # The number of the first row: a continued one has it from the block before.
        base = self._rows + self._continued - tuples.continued
        stamps, row = tuples.timestamp, tuples.row + base
        columns: dict[str, Any] = {"timestamp": stamps, "local": local}
        if int(row[-1]) != base + len(row) - 1:
            columns["row"] = row.astype(np.uint32)
        columns |= {name: column for name in CARRIED if (column := getattr(tuples, name)) is not None}
        made = block("tuples", columns, segment=self._next, place=self._blocks, stats=str(base))
        self._late.add(stamps, row)
        first, lowest = int(stamps[0]), int(stamps.min())
        if self._bounds:
            first, lowest = self._bounds[0], min(lowest, self._bounds[2])
        self._bounds = (first, int(stamps[-1]), lowest, self._late.latest)
        self._tuples += len(stamps)
        self._rows += tuples.rows
        self._blocks += 1
        return made

    def _encode(self, key: Any) -> U32:
        known = pa.types.is_dictionary(key.type)
        encoded = key if known else key.dictionary_encode(null_encoding="encode")
        names, indices = encoded.dictionary, encoded.indices.to_numpy()
        local: U32 = indices.astype(np.uint32) + np.uint32(self._numbers)
        self._keys.append(names)
        self._counts.append(np.bincount(indices, minlength=len(names)))
        self._numbers += len(names)
        self._key_bytes += names.nbytes
        return local

    def close(self) -> Iterator[pa.RecordBatch]:
        """Yield the dictionary of the current segment, the place in it of each local number, and its statistics."""
        if self._bounds is None:
            return
        encoded = pa.concat_arrays(self._keys).dictionary_encode(null_encoding="encode")
        keys, code = encoded.dictionary, encoded.indices.to_numpy()
        counts = np.zeros(len(keys), np.int64)
        np.add.at(counts, code, np.concatenate(self._counts))
        yield from segment_blocks(
            Segment(
                self._next,
                self._tuples,
                self._rows,
                len(keys),
                *self._bounds,
                self._late.found,
                continued=self._continued,
                key_bytes=keys.nbytes,
            ),
            keys,
            counts,
            code,
        )
        self._next += 1
        self._reset()


def segment_blocks(segment: Segment, keys: pa.Array, counts: I64, code: Any) -> Iterator[pa.RecordBatch]:
    """Yield the other blocks of a segment: dictionary (key bytes ascending, null first), places, statistics.

    `keys` are distinct, with their counts; `code[i]` is the index among them of the key with local number i.
    """
    order = pc.array_sort_indices(keys, null_placement="at_start")
    ordered = keys.take(order)
    place = np.empty(len(keys), np.uint32)
    place[order.to_numpy()] = np.arange(len(keys), dtype=np.uint32)
    number, counts = segment.number, counts[order.to_numpy()]
    digest = _digest(ordered, counts)
    yield block("dictionary", {"key": ordered, "count": counts}, segment=number, stats=str(digest))
    yield block("places", {"place": place[code]}, segment=number, stats=str(digest))
    step = max(1, len(keys) // SAMPLES)
    samples = ordered.take(pa.array(range(step // 2, len(keys), step))).to_pylist()
    cut = tuple(sample[:SAMPLE_BYTES] for sample in samples if sample is not None)
    yield block("segment", segment=number, stats=segment._replace(samples=cut, digest=digest).as_json())


def _digest(keys: pa.Array, counts: I64) -> int:
    digest = zlib.crc32(counts.astype("<i8").tobytes())
    for column in (keys.is_null(), pc.fill_null(pc.binary_length(keys), 0), pc.fill_null(keys, b"")):
        flat = pa.concat_arrays([column])
        for buffer in flat.buffers()[1:]:
            digest = zlib.crc32(buffer or b"", digest)
    return digest


def check_unchanged_segment(row: Row, digests: Mapping[int, int]) -> None:
    """Raise RunError if the digest in a row differs from that of the segment when its statistics were collected."""
    if digests.get(row.segment) != int(row.stats or 0):
        raise RunError("the input gave other rows when a part of it was read again", CHANGED)


def row_numbers(row: Row, columns: pa.RecordBatch) -> I64:
    """Return the row in the segment of each tuple of a block of kind `tuples`."""
    if "row" in columns.schema.names:
        numbers: I64 = columns.column("row").to_numpy().astype(np.int64)
        return numbers
    return np.arange(columns.num_rows) + int(row.stats or 0)
