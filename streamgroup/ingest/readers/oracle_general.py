"""oracleGeneral, the binary format of libCacheSim: records of 24 bytes, mostly compressed by zstd."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any, ClassVar, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from streamgroup.base.errors import DataError
from streamgroup.base.storage.storage_path import locate
from streamgroup.ingest.files.byte_streams import Source, compression_of, open_sources
from streamgroup.ingest.parsing import lines
from streamgroup.ingest.parsing.times import resolve_format
from streamgroup.ingest.readers.options import OracleGeneral
from streamgroup.ingest.readers.protocol import Defaults, Layout, Parsed, Reject, Split, find_columns
from streamgroup.ingest.readers.protocol import Reader as Base

__all__ = ["Reader"]

# As libCacheSim writes it, without padding: seconds, id, bytes, and when the object comes next (as a place), or -1.
_RECORD = np.dtype([("time", "<u4"), ("id", "<u8"), ("size", "<u4"), ("next_access_vtime", "<i8")])
_NAMES = cast(tuple[str, ...], _RECORD.names)
_BLOCK = 128 << 10


class Reader(Base):
    """Requests to caches: `line` is the record, from 1; ids are unsigned."""

    Options: ClassVar = OracleGeneral
    joins: ClassVar[tuple[str, ...]] = ("key",)
    about = "oracleGeneral, the binary cache traces of libCacheSim (24-byte records)"
    defaults: ClassVar = Defaults(time=("time",), key=("id",))

    def plan(self, path: str) -> list[tuple[int, int | None]]:
        """Cut a file between records; one that is packed stays whole."""
        size = locate(path).size()
        step = max(lines.SPLIT_BYTES // _RECORD.itemsize, 1) * _RECORD.itemsize
        if size <= step or compression_of(path) is not None:
            return [(0, None)]
        return [(start, min(start + step, size)) for start in range(0, size, step)]

    def layout(self, path: str) -> Layout:
        """Check that a file is no text, and find the columns asked for; times are seconds by default."""
        with closing(cast(Any, open_sources(path))) as found:
            head = next(found).peek(_RECORD.itemsize * 100)
        if head and 0 not in head:
            raise DataError(f"{path}: no zero bytes at its beginning: not oracleGeneral", "cache-trace reads CSV")
        form = resolve_format("s" if self.options.time_format == "auto" else self.options.time_format)
        return Layout(names=_NAMES, **find_columns(self.options, self.defaults, _NAMES, path), time_format=form)

    def batches(self, split: Split, layout: Layout) -> Iterator[Parsed]:
        """Read the records of a split, at most so many at a time; one that is cut off at the end is rejected."""
        left, done = split.rows, 0
        with closing(cast(Any, open_sources(split.path, split.start))) as found:
            for source in found:
                size = None if split.end is None else (split.end - split.start)
                for data in _chunks(source, size):
                    parsed = self._parsed(data, layout, left, done)
                    yield parsed
                    done += parsed.rows
                    left = None if left is None else left - parsed.rows
                    if left is not None and left <= 0:
                        return

    @staticmethod
    def _parsed(data: bytes, layout: Layout, left: int | None, done: int) -> Parsed:
        whole = len(data) // _RECORD.itemsize
        rest = data[whole * _RECORD.itemsize :]
        records = np.frombuffer(data, _RECORD, whole)[:left]
        cut = bool(rest) and (left is None or left > whole)
        rows = len(records) + cut

        def numbers(number: int) -> Any:
            return pa.array(records[_NAMES[number]].astype(np.float64))

        def text(number: int) -> Any:
            column: NDArray[Any] = np.ascontiguousarray(records[_NAMES[number]])
            return pa.array(column).cast(pa.string()).cast(pa.binary())

        return Parsed(
            rows=rows,
            lines=rows,
            consumed=len(data),
            line=np.arange(done + 1, done + len(records) + 1),
            time=text(layout.time),
            key=layout.key_of(text),
            **layout.optional_of(numbers, text),
            text=lambda row: ",".join(map(str, records[row].tolist())).encode(),
            rejects=[Reject(done + rows, "record is cut off", rest.hex().encode())] if cut else [],
            filtered={},
        )


def _chunks(source: Source, size: int | None) -> Iterator[bytes]:
    """Yield the next `size` bytes (None: all) of a source in chunks of whole records, except the last."""
    most = _BLOCK * _RECORD.itemsize
    while size is None or size > 0:
        asked = most if size is None else min(size, most)
        if data := source.read(asked):
            yield data
        if len(data) < asked:
            return
        size = None if size is None else size - len(data)
