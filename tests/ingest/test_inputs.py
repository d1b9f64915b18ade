import bz2
import gzip
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamgroup.base.errors import DataError, UsageError
from streamgroup.ingest.inputs import resolve
from streamgroup.ingest.options import make_options
from streamgroup.ingest.preview import preview

Parse = Callable[..., Any]
CONTENT = b"time,key\n" + b"".join(b"%d,k%d\n" % (n, n % 7) for n in range(5000))


def zst(content: bytes) -> bytes:
    return bytes(pa.Codec("zstd").compress(content, asbytes=True))


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, zst])
def test_compressed_inputs_are_known_by_their_bytes(parse: Parse, compress: Callable[[bytes], bytes]) -> None:
    plain = parse(CONTENT, "csv")
    assert len(plain.tuples) == 5000
    assert parse(compress(CONTENT), "csv", name="input.dat") == plain
    half = len(CONTENT) // 2
    assert parse(compress(CONTENT[:half]) + compress(CONTENT[half:]), "csv") == plain


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, zst])
def test_cut_and_damaged_inputs(parse: Parse, compress: Callable[[bytes], bytes]) -> None:
    packed = compress(os.urandom(200_000).hex().encode())
    with pytest.raises(DataError, match=r"input: the compressed data are cut off or damaged") as caught:
        parse(packed[: len(packed) // 2], "csv", header=False, time="1", key="1")
    assert caught.value.hint == "get the file again"
    if compress is zst:
        return  # frames without a checksum do not show every damage
    broken = packed[:1000] + b"\x00" * 200 + packed[1200:]
    with pytest.raises(DataError, match="damaged"):
        parse(broken, "csv", header=False, time="1", key="1")


def test_order_of_inputs(tmp_path: Path) -> None:
    for name in ("b10", "b2", "B", "a", "é"):
        (tmp_path / name).touch()
    (tmp_path / "dir").mkdir()
    found = resolve((f"{tmp_path}/b10", f"{tmp_path}/*"))
    assert [Path(file.path).name for file in found] == ["b10", "B", "a", "b10", "b2", "é"]


def test_inputs_that_are_none(tmp_path: Path) -> None:
    for given, message in (
        (f"{tmp_path}/x", "no file"),
        (f"{tmp_path}/*.x", "nothing matches"),
        (str(tmp_path), "directory"),
    ):
        with pytest.raises(UsageError, match=message):
            resolve((given,))


def test_a_name_with_brackets_is_a_name_if_it_exists(tmp_path: Path) -> None:
    (tmp_path / "a[1].csv").touch()
    assert len(resolve((f"{tmp_path}/a[1].csv",))) == 1


@pytest.mark.parametrize("reader", ["csv", "parquet"])
def test_a_name_that_is_not_utf8(tmp_path: Path, reader: str) -> None:
    path = tmp_path / os.fsdecode(b"bad\xff")
    if reader == "csv":
        path.write_bytes(b"time,key\n1,a\n")
    else:
        with path.open("wb") as file:
            pq.write_table(pa.table({"time": [1], "key": ["a"]}), file)
    for given in (str(path), f"{tmp_path}/bad*"):
        found = preview(make_options(reader=reader, inputs=(given,), output="unused"))
        assert [(row.timestamp, row.key) for row in found.tuples] == [(1_000_000, "a")]
