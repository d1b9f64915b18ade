"""Reads splits of the input into segments, rejects and statistics."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import pyarrow as pa

from streamgroup.base.errors import DataError
from streamgroup.base.storage.storage_path import locate
from streamgroup.ingest.explain_rejected_rows import reject_text
from streamgroup.ingest.files.compression import open_raw
from streamgroup.ingest.make_reader import make_reader
from streamgroup.ingest.options import IngestOptions
from streamgroup.ingest.pipeline.arrow_blocks import Row, block
from streamgroup.ingest.pipeline.check_and_filter_rows import Contract
from streamgroup.ingest.pipeline.expand_rows import Tuples
from streamgroup.ingest.pipeline.tuple_segments import SegmentWriter
from streamgroup.ingest.readers.protocol import Layout, Parsed, Reject, Split

__all__ = ["SplitStats", "blocks_of", "read_split_stats", "read_task"]

# Rejects of a block.
_REJECTS = 1 << 15


class SplitStats(NamedTuple):
    """The results of one split: rows read, kept, rejected and filtered (by reason), lines, and what was inferred.

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
    inferred: tuple[str, ...]
    time_format: str = ""


def read_split_stats(row: Row) -> SplitStats:
    """Read the statistics of a row of kind `split`."""
    return SplitStats(*json.loads(row.stats or ""))


def read_task(options: IngestOptions, tasks: list[list[Split | str]], number: int) -> Iterator[pa.RecordBatch]:
    """Do the jobs of a task: read a split, or digest the file of a path (a row of kind `digest`)."""
    for job in tasks[number]:
        path = job if isinstance(job, str) else job.path
        try:
            if isinstance(job, str):
                yield block("digest", stats=json.dumps([path, digest_of(path)]))
            else:
                yield from _read_split(options, job)
        except FileNotFoundError:
            if locate(path).exists():
                raise
            hint = "keep inputs until the end; on a cluster, where all machines find them"
            raise DataError(f"{path} vanished while it was read", hint) from None


def digest_of(path: str) -> str:
    """Return the sha256 of a file."""
    with open_raw(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read_split(options: IngestOptions, split: Split) -> Iterator[pa.RecordBatch]:
    reader, contract = make_reader(options), Contract(options)
    layout = reader.layout(split.path)
    yield from blocks_of(reader.batches(split, layout), contract, layout, split.number)


def blocks_of(parsed: Iterable[Parsed], contract: Contract, layout: Layout, split: int) -> Iterator[pa.RecordBatch]:
    """Yield the blocks of a parsed split; memory is that of a segment, however many rows there are."""
    writer, rejects = SegmentWriter(split), _Rejects(split)
    filtered: Counter[str] = Counter()
    rows, lines, kept = 0, 0, 0
    for batch in parsed:
        tuples: Tuples = contract.apply(batch, layout)
        yield from writer.add(tuples)
        yield from rejects.add(tuples.rejects)
        filtered.update(tuples.filtered)
        rows += batch.rows
        lines += batch.lines
        kept += tuples.rows
    yield from writer.close()
    yield from rejects.close()
    form = layout.time_format.name if layout.time_format else ""
    stats = SplitStats(
        split, rows, lines, kept, dict(rejects.counts), dict(filtered), rejects.examples, layout.inferred, form
    )
    yield block("split", segment=split, stats=json.dumps(stats))


class _Rejects:
    """The rejects of a split; lines are counted from its start."""

    def __init__(self, split: int) -> None:
        self._split = split
        self._pending: list[tuple[int, str, str]] = []
        self._written = 0
        self.counts: Counter[str] = Counter()
        self.examples: dict[str, tuple[int, str]] = {}

    def add(self, rejects: list[Reject]) -> Iterator[pa.RecordBatch]:
        self.counts.update(reject.reason for reject in rejects)
        for reject in rejects:
            text = reject_text(reject.text)
            self.examples.setdefault(reject.reason, (reject.line, text))
            self._pending.append((reject.line, reject.reason, text))
            if len(self._pending) >= _REJECTS:
                yield from self.close()

    def close(self) -> Iterator[pa.RecordBatch]:
        if not self._pending:
            return
        columns: Any = zip(("line", "reason", "text"), zip(*self._pending, strict=True), strict=True)
        # `place` is the number of rejects of the split before these.
        yield block(
            "rejects", {name: list(values) for name, values in columns}, segment=self._split, place=self._written
        )
        self._written += len(self._pending)
        self._pending = []
