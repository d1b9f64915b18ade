"""The binary cache traces of libCacheSim."""

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard

from streamgroup.base.errors import DataError
from streamgroup.base.storage.storage_path import locate
from streamgroup.ingest.parsing import lines
from streamgroup.ingest.readers import oracle_general
from tests.ingest.conftest import read

Parse = Callable[..., Any]
CASE = Path(__file__).parents[2] / "data" / "cases" / "28-oracle-general"


def records(content: bytes) -> list[tuple[int, ...]]:
    """Take records apart one by one."""
    return [struct.unpack("<IQIq", content[at : at + 24]) for at in range(0, len(content), 24)]


@pytest.mark.parametrize("name", ["kv.oracleGeneral", "kv.oracleGeneral.zst"])
def test_records(name: str) -> None:
    found = read(CASE / name, "oracle-general", cost="size")
    expected = records((CASE / "kv.oracleGeneral").read_bytes())
    assert len(expected) == 200
    assert found.tuples == [(time * 1_000_000, str(key).encode()) for time, key, _, _ in expected]
    assert found.cost == [size for _, _, size, _ in expected]
    assert len({key for _, key in found.tuples}) == 9


def test_splits_blocks_and_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    path = CASE / "kv.oracleGeneral"
    whole = read(path, "oracle-general", value="next_access_vtime")
    monkeypatch.setattr(lines, "SPLIT_BYTES", 1000)
    monkeypatch.setattr(oracle_general, "_BLOCK", 7)
    assert read(path, "oracle-general", value="next_access_vtime") == whole
    for limit in (1, 7, 41, 43, 199, 500):
        assert read(path, "oracle-general", limit=limit).tuples == whole.tuples[:limit]


def test_a_file_of_an_object_store() -> None:
    pytest.importorskip("fsspec")
    place = locate("memory://oracle/kv")
    with place.writing() as file:
        file.write((CASE / "kv.oracleGeneral").read_bytes())
    try:
        assert read(place.where, "oracle-general") == read(CASE / "kv.oracleGeneral", "oracle-general")
    finally:
        place.parent.remove_tree()


def test_ids_are_unsigned_and_bytes_are_no_line_ends(parse: Parse) -> None:
    content = struct.pack("<IQIq", 13, 2**64 - 1, 13, -1) + struct.pack("<IQIq", 14, 0x0D0D0D0D, 0, 5)
    found = parse(content, "oracle-general", key="id,size")
    assert found.tuples == [(13_000_000, b'["18446744073709551615","13"]'), (14_000_000, b'["218959117","0"]')]
    assert parse(content, "oracle-general", time_format="ms").tuples[0][0] == 13_000


def test_a_record_that_is_cut_off(parse: Parse) -> None:
    content = struct.pack("<IQIq", 13, 7, 1, -1) * 3
    for packed in (content[:-5], zstandard.compress(content[:-5])):
        found = parse(packed, "oracle-general", max_rejects="50%")
        assert (len(found.tuples), found.rejects, found.rows) == (2, [(3, "record is cut off")], 3)


def test_texts_and_binary_files_are_told_apart(parse: Parse) -> None:
    with pytest.raises(DataError, match="not oracleGeneral") as caught:
        parse(b"# time, object, size, next_access_vtime\n1, 2, 3, 4\n", "oracle-general")
    assert caught.value.hint == "cache-trace reads CSV"
    for name in ("kv.oracleGeneral", "kv.oracleGeneral.zst"):
        with pytest.raises(DataError, match="not a text") as caught:
            read(CASE / name, "cache-trace")
        assert "oracle-general" in str(caught.value.hint)
