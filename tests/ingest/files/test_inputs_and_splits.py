"""Inputs resolved to files, and the splits into which tasks read them."""

import bz2
import gzip
import io
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hypothesis
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from streamgroup.base.errors import DataError, UsageError
from streamgroup.ingest.files import inputs_and_splits
from streamgroup.ingest.files.inputs_and_splits import resolve_inputs
from streamgroup.ingest.make_reader import make_reader
from streamgroup.ingest.options import make_options
from streamgroup.ingest.parsing import lines
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
    found = resolve_inputs((f"{tmp_path}/b10", f"{tmp_path}/*"))
    assert [Path(file.path).name for file in found] == ["b10", "B", "a", "b10", "b2", "é"]


def test_inputs_that_are_none(tmp_path: Path) -> None:
    for given, message in (
        (f"{tmp_path}/x", "no file"),
        (f"{tmp_path}/*.x", "nothing matches"),
        (f"{tmp_path}/{'x' * 300}", "no file"),
        (str(tmp_path), "directory"),
    ):
        with pytest.raises(UsageError, match=message):
            resolve_inputs((given,))


def test_a_name_with_brackets_is_a_name_if_it_exists(tmp_path: Path) -> None:
    (tmp_path / "a[1].csv").touch()
    assert len(resolve_inputs((f"{tmp_path}/a[1].csv",))) == 1


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


def zipped(*members: tuple[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", method) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return target.getvalue()


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_zip_file_is_read_as_the_file_in_it(parse: Callable[..., Any], method: int) -> None:
    content = b"time,key\n" + b"".join(b"%d,k%d\n" % (number, number % 7) for number in range(20_000))
    folder = ("data/", b"")
    packed = zipped(folder, ("data/x.csv", content), ("__MACOSX/data/._x.csv", b"finder"), method=method)
    assert parse(packed, "csv") == parse(content, "csv")
    broken = packed[:100] + b"\xff" * 40 + packed[140:]
    with pytest.raises(DataError, match="damaged"):
        parse(broken, "csv")
    for size in (4, 30, 1000, len(packed) - 1):
        with pytest.raises(DataError, match="input: the compressed data are cut off or damaged"):
            parse(packed[:size], "csv")


def test_zip_files_that_do_not_serve(parse: Callable[..., Any]) -> None:
    content = b"time,key\n1,a\n"
    with pytest.raises(DataError, match="no rows in it"):
        parse(zipped(*((str(number), b"") for number in range(6))), "csv")
    with pytest.raises(DataError, match="office program"):
        parse(zipped(("[Content_Types].xml", b"<?xml"), ("xl/workbook.xml", b"<?xml")), "csv")
    with pytest.raises(DataError, match="no file in it"):
        parse(zipped(), "csv")
    packed = bytearray(zipped(("a.csv", content)))
    for header, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        packed[packed.index(header) + flags] |= 1
    with pytest.raises(DataError, match=r"a\.csv in it is encrypted"):
        parse(bytes(packed), "csv")
    packed = bytearray(zipped(("a.csv", content)))
    for header, method in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
        packed[packed.index(header) + method] = 9
    with pytest.raises(DataError, match=r"input: .*compression") as caught:
        parse(bytes(packed), "csv")
    assert caught.value.hint == "unpack it"


@settings(
    max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@hypothesis.given(st.data())
def test_damaged_archives_end_in_an_error_of_ours(parse: Callable[..., Any], data: st.DataObject) -> None:
    content = b"time,key\n1,a\n2,b\n"
    compress = data.draw(st.sampled_from([zipped, gzip.compress, bz2.compress]))
    packed = bytearray(zipped(("a.csv", content)) if compress is zipped else compress(content))
    for place in data.draw(st.lists(st.integers(4, len(packed) - 1), max_size=4)):
        packed[place] = data.draw(st.integers(0, 255))
    try:
        rows = parse(bytes(packed), "csv")
    except (DataError, UsageError):
        return
    assert rows.rows == len(rows.tuples) + len(rows.rejects) + sum(rows.filtered.values())


def test_a_head_of_blank_lines_takes_no_larger_head(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "in.csv"
    path.write_text("time,key\n" + "\n" * 1500 + "".join(f"{1_600_000_000_000 + i},a\n" for i in range(200_000)))
    asked: list[int] = []
    head = lines._head

    def watched(source: Any, size: int, encoding: str) -> Any:
        asked.append(size)
        return head(source, size, encoding)

    monkeypatch.setattr(lines, "_head", watched)
    layout = make_reader(make_options(reader="csv", inputs=(str(path),), output=tmp_path / "x")).layout(str(path))
    assert layout.time_format is not None
    assert layout.time_format.name == "ms"
    assert asked == [lines.HEAD_BYTES]


def test_inputs_that_change_or_vanish_while_they_are_read(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_text("time,key\n1,a\n")
    files = inputs_and_splits.resolve_inputs((str(path),))
    inputs_and_splits.check_unchanged(files)
    with path.open("a") as file:
        file.write("2,b\n")
    with pytest.raises(DataError, match=r"in\.csv changed while it was read"):
        inputs_and_splits.check_unchanged(files)
    path.unlink()
    with pytest.raises(DataError, match=r"in\.csv vanished while it was read"):
        inputs_and_splits.check_unchanged(files)


def test_an_error_shows_no_control_characters_of_a_header(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_bytes(b"\x1b[31mtime\x07" + b"\x01" * 100_000 + b"\n1\n")
    with pytest.raises(UsageError, match="Found: 1") as caught:
        make_reader(make_options(reader="csv", inputs=(str(path),), output=tmp_path / "x")).layout(str(path))
    assert caught.value.message.isprintable()
    assert len(caught.value.message) < 300


@pytest.mark.parametrize("column", ["1", "2"])
def test_a_damaged_page_of_parquet_is_an_error_of_the_data(tmp_path: Path, column: str) -> None:
    path = tmp_path / "in.parquet"
    rows = pa.table({"time": [f"{n * 7919 % 100_003}" for n in range(20_000)], "key": ["a"] * 20_000})
    pq.write_table(rows, path, compression="snappy", use_dictionary=False)
    content = bytearray(path.read_bytes())
    content[2000:9000] = b"\xff" * 7000
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"in\.parquet: cannot be read"):
        preview(make_options(reader="parquet", inputs=(str(path),), output=tmp_path / "x", time="1", key=column))
