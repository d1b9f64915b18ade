"""The read task: one split of an input to segments and rejects in the scratch directory."""

import hashlib
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from streamgroup.base.discover import READERS, load
from streamgroup.ingest.contract import Contract
from streamgroup.ingest.options import ENGLISH, IngestOptions
from streamgroup.ingest.readers.protocol import Reader, Reject, Split
from streamgroup.ingest.segments import Scratch, Segment, SegmentWriter, temporary_name

__all__ = ["SplitStats", "digest_file", "located", "make_reader", "read_split"]

# What is kept of the text of a rejected row.
TEXT_BYTES = 1024
# Rejects held before they are written, as a row group of the split's file.
_FLUSH = 1 << 15
_REJECT_SCHEMA = pa.schema([("line", pa.int64()), ("reason", pa.string()), ("text", pa.string())])


class SplitStats(NamedTuple):
    """What came of one split: rows read, kept, rejected and filtered (by reason), lines, and its segments.

    `examples` holds the first reject of each reason: its line in the split, and its text. `time_format` names the
    format of the times.
    """

    split: int
    rows: int
    lines: int
    kept: int
    rejected: dict[str, int]
    filtered: dict[str, int]
    examples: dict[str, tuple[int, str]]
    segments: list[Segment]
    inferred: tuple[str, ...]
    time_format: str = ""


def make_reader(options: IngestOptions) -> Reader:
    """Find the reader by name and give it the options; UsageError for an unknown one."""
    reader: Reader = load(READERS, options.reader, "reader").Reader(options)
    return reader


def located(options: IngestOptions) -> IngestOptions:
    """Give options in which files have absolute paths: Spark's workers may run in directories of their own."""
    own = dict(options.reader_options)
    for name in load(READERS, options.reader, "reader").Reader.files:
        if own.get(name) is not None:
            own[name] = str(Path(str(own[name])).absolute())
    words = options.stopwords
    if words is not None and words != ENGLISH:
        words = str(Path(words).absolute())
    return options.model_copy(update={"stopwords": words, "reader_options": own})


def shown(text: bytes) -> str:
    """Give the text of a rejected row as it is kept: cut, with replacement characters."""
    return text[:TEXT_BYTES].decode(errors="replace")


class _RejectFile:
    """The rejects of a split: lines are counted from its start, the driver knows where it starts."""

    def __init__(self, scratch: Scratch, split: int) -> None:
        self._path = scratch.rejects(split)
        self._held: list[tuple[int, str, str]] = []
        self._temporary = temporary_name(self._path)
        self._writer: pq.ParquetWriter | None = None
        self.counts: Counter[str] = Counter()
        self.examples: dict[str, tuple[int, str]] = {}

    def add(self, rejects: list[Reject]) -> None:
        self.counts.update(reject.reason for reject in rejects)
        for reject in rejects:
            text = shown(reject.text)
            self.examples.setdefault(reject.reason, (reject.line, text))
            self._held.append((reject.line, reject.reason, text))
            if len(self._held) >= _FLUSH:
                self._flush()

    def _flush(self) -> None:
        if self._writer is None:
            self._writer = pq.ParquetWriter(self._temporary, _REJECT_SCHEMA, compression="lz4")
        columns = [
            pa.array(column, field.type)
            for column, field in zip(zip(*self._held, strict=True), _REJECT_SCHEMA, strict=True)
        ]
        self._writer.write_table(pa.table(columns, schema=_REJECT_SCHEMA))
        self._held = []

    def close(self) -> None:
        if self._held:
            self._flush()
        if self._writer is not None:
            self._writer.close()
            self._temporary.replace(self._path)


def read_split(options: IngestOptions, scratch: Scratch, split: Split) -> SplitStats:
    """Read one split into the scratch directory; what it returns does not grow with its rows."""
    reader, contract = make_reader(options), Contract(options)
    layout = reader.layout(split.path)
    writer = SegmentWriter(scratch, split.number)
    rejects = _RejectFile(scratch, split.number)
    filtered: Counter[str] = Counter()
    rows, lines, kept = 0, 0, 0
    for parsed in reader.batches(split, layout):
        tuples = contract.apply(parsed, layout)
        writer.add(tuples)
        rejects.add(tuples.rejects)
        filtered.update(tuples.filtered)
        rows += parsed.rows
        lines += parsed.lines
        kept += tuples.rows
    writer.close()
    rejects.close()
    return SplitStats(
        split.number,
        rows,
        lines,
        kept,
        dict(rejects.counts),
        dict(filtered),
        rejects.examples,
        writer.segments,
        layout.inferred,
        layout.time_format.name if layout.time_format else "",
    )


def digest_file(path: str) -> str:
    """Give the sha256 of a file in hex."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
