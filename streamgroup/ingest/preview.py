"""The dry run: the tuples that an ingest would make of the head of its inputs, without Spark."""

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from functools import cache
from typing import Any, NamedTuple, cast

import numpy as np

from streamgroup.base.errors import DataError
from streamgroup.ingest.explain_rejected_rows import reject_text
from streamgroup.ingest.files import inputs_and_splits
from streamgroup.ingest.files.byte_streams import compression_of
from streamgroup.ingest.make_reader import make_reader
from streamgroup.ingest.options import IngestOptions
from streamgroup.ingest.parsing.column_list_text import NO_TIME
from streamgroup.ingest.parsing.delimited import BLANKS, DelimitedReader
from streamgroup.ingest.parsing.times import iso
from streamgroup.ingest.pipeline.check_and_filter_rows import Contract
from streamgroup.ingest.pipeline.expand_rows import Tuples, pieces
from streamgroup.ingest.readers.protocol import Layout, Reader

__all__ = ["ROWS", "Preview", "PreviewReject", "PreviewRow", "head_rows", "iso", "preview"]

# Tuples, and rejects, of a preview.
ROWS = 10
# Limits on the search for these: bytes, and seconds once there are enough tuples.
_BYTES = 64 << 20
_SECONDS = 2.0
# Tuples written out at a time.
_AT_ONCE = 1 << 12


class PreviewRow(NamedTuple):
    """A tuple as it would be: time in us since 1970, key (None: the null key), cost in us (the shortest number that
    makes it in 32 bits), value, weight.
    """

    timestamp: int
    key: str | None
    cost: float | None
    value: float | None
    weight: float | None


class PreviewReject(NamedTuple):
    """A rejected row: input, line in it (1-based), why, and its text."""

    file: str
    line: int
    reason: str
    text: str


class Preview(NamedTuple):
    """The first tuples and rejects, how many rows that took, and what was found in the first input.

    `columns` names its columns, `time`, `key`, `cost`, `value` and `weight` those used (None: none). `delimiter` is
    None, and `header` (the line of the header) 0, where there is none.
    """

    path: str
    compression: str | None
    columns: list[str]
    delimiter: str | None
    header: int
    time: str | None
    key: str | None
    cost: str | None
    value: str | None
    weight: str | None
    time_format: str
    inferred: list[str]
    tuples: list[PreviewRow]
    rejects: list[PreviewReject]
    rows_read: int
    rows_rejected: int
    filtered: dict[str, int]


def preview(options: IngestOptions) -> Preview:
    """Read the head of the inputs as an ingest would; the same errors as there, but for those of Spark.

    Stops when there are ten tuples and ten rejects, after 64 MiB, or with ten tuples after 2 s.
    """
    reader, contract = make_reader(options), Contract(options)
    layout_of = cache(reader.layout)
    files = inputs_and_splits.resolve_inputs(options.inputs)
    splits = inputs_and_splits.plan_splits(reader, files)
    layout = layout_of(splits[0].path)
    tuples: list[PreviewRow] = []
    rejects: list[PreviewReject] = []
    rows, rejected, consumed, begun = 0, 0, 0, time.perf_counter()
    filtered: Counter[str] = Counter()
    file = line = -1

    def enough() -> bool:
        if len(tuples) < ROWS:
            return consumed >= _BYTES
        return consumed >= _BYTES or len(rejects) >= ROWS or time.perf_counter() - begun >= _SECONDS

    for split in splits:
        left = None if options.limit is None else options.limit - rows
        if enough() or (left is not None and left <= 0):
            break
        if split.file != file:
            file, line = split.file, 0
        own = layout_of(split.path)
        lines = 0
        with closing(cast(Any, reader.batches(split._replace(rows=left), own))) as stream:
            for parsed in stream:
                found = contract.apply(parsed, own)
                rows += parsed.rows
                rejected += len(found.rejects)
                filtered.update(found.filtered)
                rejects += [
                    PreviewReject(files[file].given, line + reject.line, reject.reason, reject_text(reject.text))
                    for reject in found.rejects[: ROWS - len(rejects)]
                ]
                tuples += head_rows(found, ROWS - len(tuples))
                if options.time == NO_TIME:
                    tuples = [row._replace(timestamp=place) for place, row in enumerate(tuples)]
                lines += parsed.lines
                consumed += parsed.consumed
                if enough():
                    break
        # Rejects have their line in the split.
        line += lines
    if not rows:
        raise DataError(f"{files[splits[0].file].given}: no rows in it", "give a file that has some")
    return _make_preview(
        reader,
        layout,
        (files[splits[0].file].given, compression_of(splits[0].path)),
        tuples=tuples,
        rejects=rejects,
        rows_read=rows,
        rows_rejected=rejected,
        filtered=dict(filtered),
    )


def head_rows(found: Tuples, wanted: int) -> Iterator[PreviewRow]:
    """Yield the first tuples of a batch, at most `wanted`."""
    for piece in pieces(found, _AT_ONCE):
        if wanted <= 0:
            return
        stamps, keys = piece.timestamp[:wanted].tolist(), piece.key.slice(0, wanted).to_pylist()
        cost = None if piece.cost is None else piece.cost[:wanted].astype(str).astype(np.float64)
        carried = [
            [None] * len(stamps) if column is None else column[:wanted].tolist()
            for column in (cost, piece.value, piece.weight)
        ]
        wanted -= len(stamps)
        for stamp, key, *rest in zip(stamps, keys, *carried, strict=True):
            yield PreviewRow(stamp, None if key is None else key.decode(errors="replace"), *rest)


def _make_preview(reader: Reader, layout: Layout, source: tuple[str, str | None], **found: Any) -> Preview:
    def name(number: int, parts: tuple[int, ...] = ()) -> str | None:
        return ",".join(layout.names[at] for at in parts or (number,)) if number >= 0 else None

    delimiter = None
    if isinstance(reader, DelimitedReader):
        delimiter = "runs of blanks" if layout.delimiter == BLANKS else layout.delimiter.decode()
    return Preview(
        path=source[0],
        compression=source[1],
        columns=list(layout.names),
        delimiter=delimiter,
        header=layout.header,
        time=name(layout.time, layout.time_parts),
        key=name(layout.key, layout.key_parts),
        cost=name(layout.cost),
        value=name(layout.value),
        weight=name(layout.weight),
        time_format=layout.time_format.name if layout.time_format else "",
        inferred=list(layout.inferred),
        **found,
    )
