"""A trace as one file for other tools: csv, jsonl, slb (`<seconds>\\t<key>` lines) or Parquet.

Each key is encoded once, the columns of a batch are joined in compiled code, and only the dictionary is held.
What a format cannot hold is refused, never bent: null keys, tabs and line breaks in keys by slb, keys that are not
UTF-8 by jsonl and Parquet. Only csv holds every key.
"""

import contextlib
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from streamgroup.base.errors import DataError, EnvironmentFault, UsageError
from streamgroup.base.spelling_hint import suggest
from streamgroup.base.storage.process_tag import partial_beside
from streamgroup.base.storage.storage_path import StoragePath, locate
from streamgroup.traces.hash_and_show_keys import key_text, not_utf8
from streamgroup.traces.read_batches import Batch
from streamgroup.traces.read_parts import TUPLE_COLUMNS
from streamgroup.traces.trace import Trace

__all__ = ["FORMATS", "export"]

# A piece that is written at once holds about this many bytes of keys: long keys must not fill the memory.
_PIECE_BYTES = 32 << 20
_EXTRA = TUPLE_COLUMNS[2:]
_KINDS = {"cost": pa.float32(), "parent": pa.int64()}


class _Lines(NamedTuple):
    """A text format: its first line, its key encoding, and how a tuple's columns become one line.

    `utf8`: keys that are not UTF-8 are refused.
    """

    header: bytes
    encode: Callable[[bytes | None], bytes]
    join: Callable[[Batch, pa.Array, tuple[str, ...]], pa.Array]
    utf8: bool = False


def export(trace: Trace, to: str, output: StoragePath | Path | BinaryIO, *, overwrite: bool = False) -> int:
    """Write all tuples of a trace as csv, jsonl, slb or parquet; return their number.

    csv has a header, timestamps in us, `key` and what else the tuples carry (cost, value, weight, parent); the null
    key is an empty field, the empty key `""`. A path gets the whole file or none, and directories made for it go
    again on a failure; UsageError when it exists, also if only by then (unless `overwrite`). An open binary file
    is written to as it is. DataError for a key the format cannot hold, UsageError for a path inside the trace.
    """
    if to not in FORMATS:
        raise UsageError(f"there is no export format {to!r}", suggest(to, FORMATS))
    write = FORMATS[to]
    if not isinstance(output, StoragePath | Path):
        return write(trace, output)
    place = locate(output)
    if place.is_dir():
        raise UsageError(f"{place} is a directory", "name a file")
    root = trace.path.resolved()
    if (place.parent.resolved() / place.name).lies_in(root) or place.resolved().lies_in(root):
        raise UsageError(f"{place} is inside the trace itself", "name a file outside of it")
    if place.is_local:
        return _export_local(trace, write, Path(place.text), overwrite=overwrite)
    if place.exists() and not overwrite:
        raise _exists(place)
    with place.writing() as file:
        return write(trace, file)


def _export_local(trace: Trace, write: Callable[[Trace, Any], int], output: Path, *, overwrite: bool) -> int:
    if output.exists() and not overwrite:
        raise _exists(output)
    if output.exists() and not output.is_file():
        raise UsageError(f"{output} is not a file", "name another output; without -o it goes to stdout")
    made = [folder for folder in output.parents if not folder.exists()]
    partial = partial_beside(output)
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        with partial.open("wb") as file:
            rows = write(trace, file)
        _publish(partial, output, overwrite=overwrite)
    except OSError as error:
        raise EnvironmentFault(f"cannot write {output}: {error.strerror}", "choose another output") from None
    finally:
        with contextlib.suppress(OSError):
            partial.unlink()
        with contextlib.suppress(OSError):  # the first that is not empty ends it: all went well
            for folder in made:
                folder.rmdir()
    return rows


def _exists(output: Path | StoragePath) -> UsageError:
    return UsageError(f"{output} exists already", "name another output, or add --overwrite")


def _publish(partial: Path, output: Path, *, overwrite: bool) -> None:
    """Move a complete file to its place; unless `overwrite`, never over one that was created meanwhile."""
    if not overwrite:
        try:
            os.link(partial, output)
        except FileExistsError:
            raise _exists(output) from None
        except OSError:
            # A file system without links: what takes the place first has it.
            try:
                output.open("xb").close()
            except FileExistsError:
                raise _exists(output) from None
        else:
            return
    partial.replace(output)


def _pieces(trace: Trace, size: NDArray[np.int64]) -> Iterator[Batch]:
    """Cut the trace's batches so that the keys of a piece, `size` bytes by id, take bounded memory."""
    for batch in trace.batches(trace.columns):
        assert batch.key_id is not None
        rows = len(batch.key_id)
        ends = np.cumsum(size[batch.key_id])
        start = 0
        while start < rows:
            done = int(ends[start - 1]) if start else 0
            stop = max(start + 1, int(np.searchsorted(ends, done + _PIECE_BYTES, side="right")))
            cut: list[Any] = [None if array is None else array[start:stop] for array in batch[1:]]
            yield Batch(batch.offset + start, *cut)
            start = stop


def _write_lines(lines: _Lines) -> Callable[[Trace, BinaryIO], int]:
    def write(trace: Trace, file: BinaryIO) -> int:
        extra = tuple(name for name in _EXTRA if name in trace.columns)
        if lines.utf8:
            _utf8(pa.array(trace.all_keys(), pa.large_binary()), "jsonl")
        keys = pa.array([lines.encode(key) for key in trace.all_keys()], pa.large_binary())
        if lines.header:
            file.write(b",".join([lines.header, *(name.encode() for name in extra)]) + b"\n")
        rows = 0
        for piece in _pieces(trace, _sizes(keys)):
            text = lines.join(piece, keys.take(pa.array(piece.key_id)), extra)
            file.write(_content(text))
            rows += len(text)
        return rows

    return write


def _sizes(keys: pa.LargeBinaryArray) -> NDArray[np.int64]:
    sizes: NDArray[np.int64] = pc.binary_length(keys).fill_null(0).to_numpy(zero_copy_only=False)
    return sizes.astype(np.int64, copy=False)


def _content(text: pa.LargeBinaryArray) -> memoryview:
    """Return the bytes of all elements one after the other: the data buffer of the array."""
    ends = np.frombuffer(text.buffers()[1], dtype=np.int64)
    return memoryview(text.buffers()[2])[int(ends[text.offset]) : int(ends[text.offset + len(text)])]


def _text(array: Any) -> pa.LargeBinaryArray:
    return pa.array(array).cast(pa.large_string()).cast(pa.large_binary())


def _join(*columns: Any) -> pa.LargeBinaryArray:
    """Concatenate arrays and constants, element by element."""
    parts = [pa.scalar(part, pa.large_binary()) if isinstance(part, bytes) else part for part in columns]
    return pc.binary_join_element_wise(*parts, pa.scalar(b"", pa.large_binary()))


def _numbers(values: NDArray[Any], absent: bytes) -> pa.LargeBinaryArray:
    """Write floats so that they read back the same; `absent` stands for NaN and the infinities."""
    text = _text(values)
    finite = np.isfinite(values)
    return text if finite.all() else pc.if_else(pa.array(finite), text, pa.scalar(absent, pa.large_binary()))


def _csv_key(key: bytes | None) -> bytes:
    if key is None:
        return b""
    if not key or any(char in key for char in (b'"', b",", b"\n", b"\r")):
        return b'"' + key.replace(b'"', b'""') + b'"'
    return key


def _csv_line(piece: Batch, keys: pa.Array, extra: tuple[str, ...]) -> pa.Array:
    columns: list[Any] = [_text(piece.timestamp), b",", keys]
    for name in extra:
        columns += [b",", _numbers(getattr(piece, name), b"")]
    return _join(*columns, b"\n")


def _json_key(key: bytes | None) -> bytes:
    return b'"key":' + json.dumps(key_text(key), ensure_ascii=False).encode()


def _utf8(keys: pa.LargeBinaryArray, to: str) -> pa.LargeBinaryArray:
    odd = not_utf8(keys)
    if odd:
        what = "1 key is" if len(odd) == 1 else f"{len(odd)} keys are"
        shown = (key_text(keys[odd[0]].as_py()) or "")[:50]
        raise DataError(f"{what} not UTF-8, which {to} cannot hold: {shown!r}", "export to csv keeps the bytes")
    return keys


def _json_line(piece: Batch, keys: pa.Array, extra: tuple[str, ...]) -> pa.Array:
    columns: list[Any] = [b'{"timestamp":', _text(piece.timestamp), b",", keys]
    for name in extra:
        columns += [b',"%s":' % name.encode(), _numbers(getattr(piece, name), b"null")]
    return _join(*columns, b"}\n")


def _slb_key(key: bytes | None) -> bytes:
    if key is None or any(char in key for char in (b"\t", b"\n", b"\r")):
        shown = "the null key" if key is None else f"the key {(key_text(key) or '')[:50]!r}"
        raise DataError(f"slb cannot hold {shown}", "export to csv instead")
    return key


def _slb_line(piece: Batch, keys: pa.Array, _: tuple[str, ...]) -> pa.Array:
    assert piece.timestamp is not None
    return _join(_text(piece.timestamp // 1_000_000), b"\t", keys, b"\n")


def _write_parquet(trace: Trace, file: BinaryIO) -> int:
    texts = _utf8(pa.array(trace.all_keys(), pa.large_binary()), "parquet").cast(pa.large_string())
    extra = [name for name in _EXTRA if name in trace.columns]
    fields = [pa.field("timestamp", pa.timestamp("us", tz="UTC")), pa.field("key", pa.large_string())]
    fields += [pa.field(name, _KINDS.get(name, pa.float64())) for name in extra]
    arrow_schema = pa.schema(fields)
    rows = 0
    with pq.ParquetWriter(file, arrow_schema, compression="zstd", store_schema=False) as writer:
        for piece in _pieces(trace, _sizes(texts)):
            ids = pa.array(piece.key_id)
            columns = [pa.array(piece.timestamp).cast(arrow_schema.field(0).type), texts.take(ids)]
            columns += [pa.array(getattr(piece, name)) for name in extra]
            writer.write_table(pa.Table.from_arrays(columns, schema=arrow_schema))
            rows += len(ids)
    return rows


FORMATS: dict[str, Callable[[Trace, BinaryIO], int]] = {
    "csv": _write_lines(_Lines(b"timestamp,key", _csv_key, _csv_line)),
    "jsonl": _write_lines(_Lines(b"", _json_key, _json_line, utf8=True)),
    "slb": _write_lines(_Lines(b"", _slb_key, _slb_line)),
    "parquet": _write_parquet,
}
