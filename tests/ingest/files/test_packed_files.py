"""Files that are packed, or joined, or no UTF-8 lines that end in line feeds."""

import bz2
import gzip
import io
import lzma
import random
import struct
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streamgroup.base.errors import DataError, EnvironmentFault
from streamgroup.ingest.files import compression
from streamgroup.ingest.make_reader import make_reader
from streamgroup.ingest.options import make_options
from streamgroup.ingest.parsing import lines
from tests.ingest.conftest import read
from tests.ingest.files.test_inputs_and_splits import zipped

Parse = Callable[..., Any]
CASES = Path(__file__).parents[2] / "data" / "cases"
QUIET = settings(
    deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
ROWS = b"time,key\n1,a\n2,b\n3,a\n"
MEMBERS = (("d/b.csv", b"key,time\nc,3\n"), ("d/a.csv", b"time,key\n1,a\n2,b"), ("d/c.csv", b""))


def zst(content: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(content)


def lz4(content: bytes) -> bytes:
    target = pa.BufferOutputStream()
    with pa.CompressedOutputStream(target, "lz4") as stream:
        stream.write(content)
    return target.getvalue().to_pybytes()


def tarred(*members: tuple[str, bytes]) -> bytes:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w") as archive:
        folder = tarfile.TarInfo("d")
        folder.type = tarfile.DIRTYPE
        archive.addfile(folder)
        for name, content in (*members, ("d/._a.csv", b"finder"), ("__MACOSX/a.csv", b"finder")):
            told = tarfile.TarInfo(name)
            told.size = len(content)
            archive.addfile(told, io.BytesIO(content))
    return target.getvalue()


def skipped(content: bytes = b"pzstd", kind: int = 0) -> bytes:
    return struct.pack("<II", 0x184D2A50 + kind, len(content)) + content


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, zst, lzma.compress, lz4])
def test_every_compression(parse: Parse, compress: Callable[[bytes], bytes]) -> None:
    plain = parse(ROWS, "csv")
    assert parse(compress(ROWS), "csv") == plain
    with pytest.raises(DataError, match="cut off or damaged"):
        parse(compress(ROWS * 500)[:-20], "csv", max_rejects="100%")


def test_packed_twice(parse: Parse) -> None:
    assert parse(gzip.compress(gzip.compress(ROWS)), "csv") == parse(ROWS, "csv")
    assert parse(gzip.compress(zst(tarred(("a", ROWS)))), "csv") == parse(ROWS, "csv")


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, zst, lzma.compress])
def test_zeros_behind_and_between_frames(parse: Parse, compress: Callable[[bytes], bytes]) -> None:
    packed = compress(ROWS[:12]) + bytes(512) + compress(ROWS[12:]) + bytes(1 << 15)
    assert parse(packed, "csv") == parse(ROWS, "csv")
    with pytest.raises(DataError, match="damaged"):
        parse(compress(ROWS) + bytes(3) + b"junk", "csv")


def test_frames_of_zstd_to_skip(parse: Parse) -> None:
    packed = skipped() + zst(ROWS[:12]) + skipped(b"", 7) + zst(ROWS[12:]) + skipped(b"x" * 40_000, 15)
    assert parse(packed, "csv") == parse(ROWS, "csv")


def test_a_long_window_of_zstd(parse: Parse) -> None:
    long = zstandard.ZstdCompressionParameters(window_log=31, enable_ldm=True)
    compression = zstandard.ZstdCompressor(compression_params=long).compressobj()
    packed = compression.compress(ROWS * 1000) + compression.flush()
    assert zstandard.get_frame_parameters(packed).window_size == 1 << 31
    assert parse(packed, "csv", max_rejects="100%") == parse(ROWS * 1000, "csv", max_rejects="100%")


@QUIET
@given(st.lists(st.binary(max_size=40), min_size=1, max_size=4), st.integers(1, 30))
def test_pieces_of_any_size(parts: list[bytes], size: int) -> None:
    packed = b"".join(map(gzip.compress, parts))
    stream = compression._decompress_frames(io.BytesIO(packed), compression._DECOMPRESSORS["gzip"])
    assert b"".join(iter(lambda: stream.read(size), b"")) == b"".join(parts)


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize(
    "compress", [bytes, gzip.compress, zst, bz2.compress, zipped], ids=["tar", "tar.gz", "tar.zst", "tar.bz2", "zip"]
)
def test_members_of_archives_by_name(parse: Parse, compress: Callable[..., bytes], nested: bool) -> None:
    members = [(name, gzip.compress(content) if nested and content else content) for name, content in MEMBERS]
    packed = compress(*members) if compress is zipped else compress(tarred(*members))
    found = parse(packed, "csv", name="x.dat")
    # Each has a header of its own, which may name the columns in another order.
    assert found.tuples == [(1_000_000, b"a"), (2_000_000, b"b"), (3_000_000, b"c")]
    assert (found.rows, found.filtered) == (5, {"header": 2})


@pytest.mark.parametrize("count", [2, 3, 40])
def test_compressed_tars_in_any_order_take_few_passes(
    parse: Parse, count: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    members = [(f"m{number:02d}", b"time,key\n%d,k%d\n" % (number, number)) for number in range(count)]
    opened: list[str] = []
    open_raw = compression.open_raw

    def counted(path: str) -> Any:
        opened.append(path)
        return open_raw(path)

    monkeypatch.setattr(compression, "open_raw", counted)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "held"))
    (tmp_path / "held").mkdir()
    expected = parse(tarred(*members), "csv")
    assert len(expected.tuples) == count
    shuffled = random.Random(1).sample(members, count)
    for order in (members, members[::-1], shuffled):
        opened.clear()
        assert parse(gzip.compress(tarred(*order)), "csv") == expected
        # The first bytes, the list of members, the first of them: of a tiny file to see whether it is empty, to lay it
        # out, and to read it, then with a last pass.
        assert len(opened) <= 4 + 3 + 4
    assert list((tmp_path / "held").iterdir()) == []


def test_a_full_disk_is_told_from_a_damaged_tar(parse: Parse, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(io.BytesIO):
        def write(self, _: Any) -> int:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(tempfile, "TemporaryFile", lambda **_: Full())
    members = [(f"m{number}", ROWS) for number in (3, 1, 2, 0)]
    with pytest.raises(EnvironmentFault, match=r"cannot unpack .*: No space left on device") as caught:
        parse(gzip.compress(tarred(*members)), "csv")
    assert "TMPDIR" in str(caught.value.hint)


def test_lines_are_counted_through_an_archive(parse: Parse) -> None:
    packed = tarred(("a", b"time,key\n1,a\nx,b\n"), ("b", b"time,key\n\nx,c\n3,c"), ("c", b"time,key\ny,d\n4,e"))
    assert parse(packed, "csv", max_rejects="100%").rejects == [
        (3, "time cannot be read"), (6, "time cannot be read"), (9, "time cannot be read")
    ]  # fmt: skip
    limited = parse(packed, "csv", max_rejects="100%", limit=5)
    assert (limited.rows, limited.tuples) == (5, [(1_000_000, b"a")])


def test_members_with_other_units_are_refused(parse: Parse) -> None:
    packed = tarred(("a", b"time,key\n1600000000,a\n"), ("b", b"time,key\n"), ("c", b"time,key\n1600000000000,a\n"))
    with pytest.raises(DataError, match="times of its files differ: s in the first, ms in c") as caught:
        parse(packed, "csv")
    assert "--time-format" in str(caught.value.hint)


def test_damaged_archives(parse: Parse) -> None:
    packed = tarred(("a", ROWS * 1000))
    for damaged in (packed[:5000], gzip.compress(packed)[:60], gzip.compress(packed[:5000])):
        with pytest.raises(DataError, match="cut off or damaged"):
            parse(damaged, "csv", max_rejects="100%")
    with pytest.raises(DataError, match="no file in it"):
        parse(tarred(), "csv")


@pytest.mark.parametrize(
    ("magic", "what"), [(b"7z\xbc\xaf\x27\x1c", "7-Zip"), (b"Rar!\x1a\x07\x01", "RAR"), (b"\x1f\x9d\x90", "compress")]
)
def test_packings_that_are_not_known(parse: Parse, magic: bytes, what: str) -> None:
    with pytest.raises(DataError, match=f"packed by {what}") as caught:
        parse(magic + b"x" * 100, "csv")
    assert caught.value.hint == "unpack it"


def test_carriage_returns_end_lines(parse: Parse, monkeypatch: pytest.MonkeyPatch) -> None:
    content = b"time,key\n" + b"".join(b"%d,k%d\n" % (row, row % 3) for row in range(50))
    plain = parse(content, "csv")
    old = content.replace(b"\n", b"\r")
    assert parse(old, "csv") == plain
    assert parse(gzip.compress(old), "csv") == plain
    monkeypatch.setattr(lines, "SPLIT_BYTES", 30)
    assert parse(old, "csv") == plain
    # A carriage return within a file of line feeds is a character.
    assert parse(b'time,key\n1,"a\rb"\n', "csv").tuples == [(1_000_000, b"a\rb")]


@pytest.mark.parametrize(
    "encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "gbk", "big5", "shift_jis", "euc-kr"]
)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_other_encodings(parse: Parse, encoding: str, end: str) -> None:
    text = end.join(["time,key", "1600000000,一", "1600000001,中,", "1600000002,a"])
    found = parse(text.encode(encoding), "csv", encoding=encoding, max_rejects="50%")
    assert found.tuples == [(1_600_000_000_000_000, "一".encode()), (1_600_000_002_000_000, b"a")]
    assert found.rejects == [(3, "wrong number of fields")]


@QUIET
@given(
    st.lists(st.text("ab一é\U0001f600 ;", max_size=5), min_size=1, max_size=9), st.sampled_from(["utf-16", "utf-16-be"])
)
def test_utf16_is_read_as_utf8_is(parse: Parse, keys: list[str], encoding: str) -> None:
    text = "time,key\n" + "".join(f"{row},{key}\n" for row, key in enumerate(keys))
    assert parse(text.encode(encoding), "csv", encoding=encoding) == parse(text.encode(), "csv")


def test_other_encodings_are_read_by_one_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "SPLIT_BYTES", 10)
    (tmp_path / "x").write_bytes(("time,key\n" + "1,a\n" * 40).encode("utf-16"))
    reader = make_reader(make_options(reader="csv", inputs=("x",), output="x", encoding="utf-16"))
    assert reader.plan(str(tmp_path / "x")) == [(0, None)]
    # Half a character at the end is one that cannot be read.
    (tmp_path / "x").write_bytes("1,a\n2,b".encode("utf-16-le") + b"x")
    assert read(tmp_path / "x", "text", delimiter=",", encoding="utf-16-le").tuples[1] == (
        2_000_000,
        "b\ufffd".encode(),
    )


@pytest.mark.parametrize(
    ("content", "what", "hint"),
    [
        (ROWS.decode().encode("utf-16"), "text in UTF-16", "--encoding utf-16"),
        (b"\xfe\xff" + ROWS.decode().encode("utf-16-be"), "text in UTF-16", "--encoding utf-16"),
        (ROWS.decode().encode("utf-32"), "text in UTF-32", "--encoding utf-32"),
        (ROWS.decode().encode("utf-16-le"), "zeros at every second byte", "--encoding utf-16-le"),
        (ROWS.decode().encode("utf-16-be"), "zeros at every second byte", "--encoding utf-16-be"),
        (bytes(range(256)) * 4 + bytes(1000), "not a text, 50% of its first bytes are zeros", "--encoding"),
        (b"PAR1\x15\x04\x15", "a Parquet file", "parquet reader"),
    ],
)
@pytest.mark.parametrize("reader", ["csv", "text", "jsonl", "cache-trace", "access-log"])
def test_what_is_no_text_in_utf8(parse: Parse, content: bytes, what: str, hint: str, reader: str) -> None:
    with pytest.raises(DataError, match=what) as caught:
        parse(content, reader)
    assert hint in str(caught.value.hint)


def test_marks_of_joined_files() -> None:
    options = {"header": False, "max_rejects": "100%"}
    for name, time, key in (("cat-time-first.csv", "1", "2"), ("cat-key-first.csv", "2", "1")):
        found = read(CASES / "39-cat-bom" / name, "csv", time=time, key=key, **options)
        assert (len(found.tuples), found.rejects) == (15, [])
        assert {key for _, key in found.tuples} == {b"k0", b"k1", b"k2"}
    found = read(CASES / "39-cat-bom" / "cat-header.csv", "csv", max_rejects="100%")
    assert (len(found.tuples), found.filtered) == (15, {"header": 1})
    assert found.rejects == [(7, "time cannot be read"), (13, "time cannot be read")]


def test_a_mark_where_a_split_begins(parse: Parse, monkeypatch: pytest.MonkeyPatch) -> None:
    part = b"\xef\xbb\xbf1600000000,a\n"
    for size in (5, len(part), 30):
        monkeypatch.setattr(lines, "SPLIT_BYTES", size)
        assert parse(part * 4, "csv", header=False, time="1", key="2").tuples == [(1_600_000_000_000_000, b"a")] * 4
    kept = parse(b"1,a\xef\xbb\xbf\n", "csv", header=False, time="1", key="2")
    assert kept.tuples == [(1_000_000, b"a\xef\xbb\xbf")]
