"""What a read task leaves behind: segments of tuples with a dictionary of their own, bounded in size."""

import os
import secrets
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc as ipc
from numpy.typing import NDArray

from streamgroup.ingest.tuples import Tuples, pieces

__all__ = [
    "CARRIED",
    "LateRows",
    "Marked",
    "Scratch",
    "Segment",
    "SegmentWriter",
    "iterate",
    "map_array",
    "map_table",
    "temporary_name",
    "whole_file",
    "write_array",
    "write_table",
]

I64 = NDArray[np.int64]

# What tuples may carry beside time and key.
CARRIED = ("cost", "value", "weight")

# Tuples are written in pieces of so many, however many a batch of rows makes.
PIECE_TUPLES = 1 << 20
# A segment ends with the piece that takes it past any of these, so that its dictionary fits into memory
# anywhere.
MAX_TUPLES = 4 << 20
MAX_KEYS = 1 << 20
MAX_KEY_BYTES = 64 << 20

# How many keys of a segment the driver sees, and how much of each, to share all keys between tasks.
SAMPLES = 32
SAMPLE_BYTES = 256


class Scratch(NamedTuple):
    """Where the tasks of one ingest put what later steps need; on a cluster, a path that all machines
    share.
    """

    root: str

    def folder(self, name: str) -> Path:
        """Give a folder for one kind of files, made if missing."""
        path = Path(self.root) / name
        path.mkdir(parents=True, exist_ok=True)
        return path

    def tuples(self, segment: int) -> Path:
        """Give the file of a segment's tuples (timestamp, local number of the key, row, cost, value, weight)."""
        return self.folder("segments") / f"{segment:012d}.arrow"

    def dictionary(self, segment: int) -> Path:
        """Give the file of a segment's dictionary (key, count), in the order of keys, null first."""
        return self.folder("dictionaries") / f"{segment:012d}.arrow"

    def places(self, segment: int) -> Path:
        """Give the file that holds the place in a segment's dictionary for each of its local numbers."""
        return self.folder("local") / f"{segment:012d}.npy"

    def mapping(self, segment: int) -> Path:
        """Give the file that holds the key id for each local number of a segment."""
        return self.folder("mappings") / f"{segment:012d}.npy"

    def rejects(self, split: int) -> Path:
        """Give the file of a split's rejects."""
        return self.folder("rejects") / f"{split:08d}.parquet"


class Marked(NamedTuple):
    """How many rows of a segment are of some kind, and whether its first (row 0, even if continued) and last are."""

    rows: int
    first: bool
    last: bool


class Segment(NamedTuple):
    """A segment as the driver sees it: number (split x 2^20 + count), tuples, rows, keys, times in us.

    `late` tells of rows with a time before the latest one seen until then in the segment; `samples` are beginnings of
    some of its keys, in order; `key_bytes` is what its keys take in memory. A row counts in the segment in which it
    begins; row 0 of one that is `continued` began in the one before.
    """

    number: int
    tuples: int
    rows: int
    keys: int
    first: int
    last: int
    lowest: int
    highest: int
    late: Marked
    samples: tuple[bytes, ...] = ()
    continued: bool = False
    key_bytes: int = 0

    @property
    def in_order(self) -> bool:
        """Tell whether the segment's tuples are in time order."""
        return not self.late.rows


def temporary_name(path: Path) -> Path:
    """Name what will be `path`, hidden beside it: no two attempts share a name, on one machine or on several."""
    return path.parent / f".{path.name}.{socket.gethostname()}.{os.getpid()}.{secrets.token_hex(4)}"


def whole_file(path: Path, write: Any) -> None:
    """Let `write(temporary path)` make a file that appears whole, so that a task may be tried again."""
    temporary = temporary_name(path)
    try:
        write(temporary)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


class LateRows:
    """Counts the rows of a segment of which a tuple has a time before the latest one seen until then.

    Rows are numbered from 0 and may come in several stretches each.
    """

    def __init__(self, latest: int = -(2**63)) -> None:
        """Start after tuples of which `latest` is the latest time."""
        self.latest = latest
        self.found = Marked(0, first=False, last=False)
        self._row = -1

    def add(self, stamps: I64, row: I64) -> None:
        """Take the times and rows of a stretch of tuples, at least one."""
        latest = np.maximum(np.maximum.accumulate(stamps), self.latest)
        late = stamps < latest
        # Whether the first row of the stretch has been counted with the stretch before.
        counted = self.found.last and int(row[0]) == self._row
        if late.any():
            of_row = np.logical_or.reduceat(late, np.flatnonzero(np.diff(row, prepend=row[0] - 1)))
            rows = self.found.rows + int(of_row.sum()) - bool(counted and of_row[0])
            first = self.found.first or bool(of_row[0] and row[0] == 0)
            last = bool(of_row[-1]) or (counted and len(of_row) == 1)
            self.found = Marked(rows, first, last)
        else:
            self.found = self.found._replace(last=counted and int(row[-1]) == self._row)
        self.latest, self._row = int(latest[-1]), int(row[-1])


class SegmentWriter:
    """Collects the tuples of one split into segments: keys become local numbers.

    Each piece numbers its keys by itself, after those of the pieces before, so that a key may have several numbers: to
    look up every key among all that came before takes longer than to put the few pieces together at the end.
    """

    def __init__(self, scratch: Scratch, split: int) -> None:
        """Start with the first segment of a split."""
        self._scratch = scratch
        self._next = split << 20
        self.segments: list[Segment] = []
        self._reset()

    def _reset(self) -> None:
        self._keys: list[Any] = []
        self._counts: list[I64] = []
        self._numbers = self._key_bytes = 0
        self._tuples = self._rows = 0
        self._late = LateRows()
        self._continued = False
        self._bounds: tuple[int, int, int, int] | None = None
        self._sink: Any = None
        self._writer: Any = None

    def add(self, tuples: Tuples) -> None:
        """Take the tuples of a batch, in input order."""
        for piece in pieces(tuples, PIECE_TUPLES):
            self._add(piece)

    def _add(self, tuples: Tuples) -> None:
        local = self._encode(tuples.key)
        if not self._tuples:
            self._continued = tuples.continued
        # The number of the first row: a continued one has it from the piece before.
        base = self._rows + self._continued - tuples.continued
        row = tuples.row + base
        columns = {"timestamp": tuples.timestamp, "local": local, "row": row.astype(np.uint32)}
        columns |= {name: column for name in CARRIED if (column := getattr(tuples, name)) is not None}
        batch = pa.record_batch([pa.array(column) for column in columns.values()], names=list(columns))
        if self._writer is None:
            path = self._scratch.tuples(self._next)
            self._temporary = temporary_name(path)
            self._writer = ipc.new_file(str(self._temporary), batch.schema)
        self._writer.write_batch(batch)
        stamps = tuples.timestamp
        self._late.add(stamps, row)
        lowest = int(stamps.min())
        first = int(stamps[0])
        if self._bounds:
            first, lowest = self._bounds[0], min(lowest, self._bounds[2])
        self._bounds = (first, int(stamps[-1]), lowest, self._late.latest)
        self._tuples += len(stamps)
        self._rows += tuples.rows
        if self._tuples >= MAX_TUPLES or self._numbers >= MAX_KEYS or self._key_bytes >= MAX_KEY_BYTES:
            self.close()

    def _encode(self, key: Any) -> NDArray[np.uint32]:
        known = pa.types.is_dictionary(key.type)
        encoded = key if known else key.dictionary_encode(null_encoding="encode")
        names, indices = encoded.dictionary, encoded.indices.to_numpy()
        local: NDArray[np.uint32] = indices.astype(np.uint32) + np.uint32(self._numbers)
        self._keys.append(names)
        self._counts.append(np.bincount(indices, minlength=len(names)))
        self._numbers += len(names)
        self._key_bytes += names.nbytes
        return local

    def _write_dictionary(self) -> tuple[int, int, tuple[bytes, ...]]:
        """Write the dictionary of all pieces; give how many keys it has, their bytes, and samples of them."""
        encoded = pa.concat_arrays(self._keys).dictionary_encode(null_encoding="encode")
        keys, code = encoded.dictionary, encoded.indices.to_numpy()
        counts = np.zeros(len(keys), np.int64)
        np.add.at(counts, code, np.concatenate(self._counts))
        order = pc.array_sort_indices(keys, null_placement="at_start")
        ordered = keys.take(order)
        place = np.empty(len(keys), np.uint32)
        place[order.to_numpy()] = np.arange(len(keys), dtype=np.uint32)
        write_array(self._scratch.places(self._next), place[code])
        write_table(self._scratch.dictionary(self._next), {"key": ordered, "count": counts[order.to_numpy()]})
        step = max(1, len(keys) // SAMPLES)
        samples = ordered.take(pa.array(range(step // 2, len(keys), step))).to_pylist()
        return len(keys), keys.nbytes, tuple(sample[:SAMPLE_BYTES] for sample in samples if sample is not None)

    def close(self) -> None:
        """Finish the segment under way."""
        if self._writer is None:
            return
        assert self._bounds is not None
        self._writer.close()
        self._temporary.replace(self._scratch.tuples(self._next))
        keys, key_bytes, samples = self._write_dictionary()
        self.segments.append(
            Segment(
                self._next,
                self._tuples,
                self._rows,
                keys,
                *self._bounds,
                self._late.found,
                samples,
                self._continued,
                key_bytes,
            )
        )
        self._next += 1
        self._reset()


def write_array(path: Path, array: NDArray[Any]) -> None:
    """Write an array, which `map_array` gives back without copying; the file appears whole."""

    def write(temporary: Path) -> None:
        with temporary.open("wb") as file:
            np.save(file, array)

    whole_file(path, write)


def map_array(path: Path) -> NDArray[Any]:
    """Map a file of `write_array` into memory."""
    array: NDArray[Any] = np.load(path, mmap_mode="r")
    return array


def write_table(path: Path, columns: dict[str, Any]) -> None:
    """Write columns as one record batch, which `map_table` gives back without copying; the file appears whole."""
    table = pa.record_batch([pa.array(column) for column in columns.values()], names=list(columns))

    def write(temporary: Path) -> None:
        with ipc.new_file(str(temporary), table.schema) as writer:
            writer.write_batch(table)

    whole_file(path, write)


def map_table(path: Path) -> pa.RecordBatch:
    """Map a file of `write_table` into memory: only what is touched is read."""
    return ipc.open_file(pa.memory_map(str(path))).get_batch(0)


def iterate(scratch: Scratch, segment: int, start: int = 0, stop: int | None = None) -> Iterator[pa.RecordBatch]:
    """Read the tuples [start, stop) of a segment batch by batch."""
    at = 0
    with pa.memory_map(str(scratch.tuples(segment))) as source:
        reader = ipc.open_file(source)
        for number in range(reader.num_record_batches):
            batch = reader.get_batch(number)
            low = max(start - at, 0)
            high = batch.num_rows if stop is None else min(stop - at, batch.num_rows)
            if low < high:
                yield batch.slice(low, high - low)
            at += batch.num_rows
            if stop is not None and at >= stop:
                return
