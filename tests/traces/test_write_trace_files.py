"""The writer: bytes depend on rows alone, borders are fixed, what no trace may hold is refused."""

import hashlib
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgroup.base.errors import DataError
from streamgroup.traces import layout
from streamgroup.traces.costs_in_ns import cost_ns
from streamgroup.traces.fingerprint import fingerprint
from streamgroup.traces.hash_and_show_keys import hash_keys
from streamgroup.traces.trace import open_trace
from streamgroup.traces.tuple_blocks import Columns, KeyColumns
from streamgroup.traces.write_trace_files import join_stats, write_keys, write_keys_part, write_part
from tests.traces_by_hand import write_tuples

ROWS = 2_500_000


def _columns(rows: int, seed: int = 0) -> Columns:
    random = np.random.default_rng(seed)
    return Columns(
        np.cumsum(random.integers(0, 50, rows)) - 1000,
        random.integers(0, 1000, rows).astype(np.uint32),
        random.random(rows).astype(np.float32),
        random.random(rows),
    )


def _cut(columns: Columns, borders: list[int]) -> Iterator[Columns]:
    for low, high in zip([0, *borders], [*borders, len(columns.timestamp)], strict=True):
        yield Columns(*(None if array is None else array[low:high] for array in columns))


def _naive_fingerprint(columns: Columns, keys: list[bytes | None]) -> str:
    """The definition of the format, word by word."""
    outer = hashlib.sha256()
    for first in range(0, len(columns.timestamp), 2**20):
        block = hashlib.sha256()
        for name, code in (
            ("timestamp", "q"),
            ("key_id", "I"),
            ("cost", "f"),
            ("value", "d"),
            ("weight", "d"),
        ):
            array = getattr(columns, name)
            if array is not None:
                some = array[first : first + 2**20].tolist()
                block.update(struct.pack(f"<{len(some)}{code}", *some))
        outer.update(block.digest())
    for key in keys:
        if key is None:
            outer.update(b"\xff\xff\xff\xff")
        else:
            outer.update(struct.pack("<I", len(key)))
            outer.update(key)
    return outer.hexdigest()


def test_bytes_do_not_depend_on_chunking_and_borders_are_where_the_format_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layout, "PART_ROWS", 2 << 20)
    columns = _columns(ROWS)
    whole = write_tuples(tmp_path / "a", [columns])
    odd = write_tuples(tmp_path / "b", _cut(columns, [1, 1, 700_001, 1 << 20, 2_200_000]))
    assert whole == odd
    assert whole.rows == ROWS
    names = ["part-00000.parquet", "part-00001.parquet"]
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == names
    for name in names:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    # One part at a time, as parallel tasks do it, makes the same files and the same statistics.
    parts = list(_cut(columns, [2 << 20]))
    single = [write_part(tmp_path / f"{i}.parquet", [part]) for i, part in enumerate(parts)]
    assert join_stats(single) == whole
    assert (tmp_path / "1.parquet").read_bytes() == (tmp_path / "a" / names[1]).read_bytes()
    footer = pq.read_metadata(tmp_path / "a" / names[0])
    assert [footer.row_group(i).num_rows for i in range(footer.num_row_groups)] == [1 << 20, 1 << 20]
    assert footer.row_group(0).column(0).compression == "ZSTD"
    table = pq.read_table(tmp_path / "a")
    assert table.schema.types == [pa.int64(), pa.uint32(), pa.float32(), pa.float64()]
    assert np.array_equal(table.column("timestamp").to_numpy(), columns.timestamp)
    keys: list[bytes | None] = [b"a", None, b"", b"\xff\x00"]
    assert fingerprint(whole.block_digests, keys) == _naive_fingerprint(columns, keys)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 40), max_size=6), st.integers(0, 40))
def test_any_chunking_gives_one_file(tmp_path_factory: pytest.TempPathFactory, cuts: list[int], rows: int) -> None:
    place = tmp_path_factory.mktemp("w")
    columns = _columns(rows)
    whole = write_part(place / "a", [columns])
    assert write_part(place / "b", _cut(columns, sorted(min(cut, rows) for cut in cuts))) == whole
    assert (place / "a").read_bytes() == (place / "b").read_bytes()


def test_fingerprint_of_a_trace_is_the_definition(by_writer: Callable[..., Path]) -> None:
    rows = [(-7, b"x"), (-7, None), (0, b"x"), (5, b""), (5, b"\xfe")]
    trace = open_trace(by_writer(rows, cost=[1.5, 0.0, 2.25, 3.0, 1e-3]))
    ids = np.array([0, 1, 0, 2, 3], np.uint32)
    columns = Columns(np.array([-7, -7, 0, 5, 5]), ids, np.array([1.5, 0, 2.25, 3, 1e-3], np.float32))
    expected = _naive_fingerprint(columns, [b"x", None, b"", b"\xfe"])
    assert trace.manifest.fingerprint == expected
    (trace.path.local / "trace.json").write_text('{"format_version": 1}')
    assert open_trace(trace.path).fingerprint() == expected


def test_an_empty_stream_still_has_its_files(tmp_path: Path) -> None:
    stats = write_tuples(tmp_path / "tuples", [])
    assert stats == (0, [], None, None, None)
    assert pq.read_table(tmp_path / "tuples").schema.names == ["timestamp", "key_id"]
    assert write_keys(tmp_path / "keys", []) == 0
    assert pq.read_table(tmp_path / "keys").num_rows == 0


@pytest.mark.parametrize("bad", [-1.0, float("nan"), float("inf")])
def test_a_cost_that_is_no_service_time_is_refused(tmp_path: Path, bad: float) -> None:
    chunk = Columns(np.array([1, 2]), np.zeros(2, np.uint32), np.array([1, bad], np.float32))
    with pytest.raises(DataError, match="tuple 1: cost"):
        write_tuples(tmp_path, [chunk])


def test_time_that_goes_back_is_refused_also_between_chunks_and_parts(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="tuple 2 is earlier"):
        write_part(tmp_path / "p", [Columns(np.array([5, 6, 4]), np.zeros(3, np.uint32))])
    late = [write_part(tmp_path / "a", [Columns(np.array([5]), np.zeros(1, np.uint32))])] * 2
    late[1] = late[1]._replace(first_timestamp=4)
    with pytest.raises(DataError, match="tuple 1 is earlier"):
        join_stats(late)


def test_a_part_holds_no_more_than_its_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "PART_ROWS", 3)
    with pytest.raises(ValueError, match="more than 3 rows"):
        write_part(tmp_path / "p", [_columns(4)])


def test_costs_are_summed_in_whole_ns_half_to_even_and_without_overflow() -> None:
    assert cost_ns(np.array([0.0005, 0.0015, 0.25], np.float32)) == sum(
        round(float(np.float32(x)) * 1000) for x in (0.0005, 0.0015, 0.25)
    )
    assert cost_ns(np.array([0.0625 * 8 / 1000 + 0, 2.0], np.float32)) == 2000 + round(float(np.float32(0.0005)) * 1000)
    huge = np.array([3e38, 3e38], np.float32)
    assert cost_ns(huge) == 2 * int(float(huge[0]) * 1000)
    assert cost_ns(np.array([], np.float32)) == 0


def test_a_key_that_is_not_utf8_keeps_its_bytes(tmp_path: Path) -> None:
    keys = pa.array([b"ok", b"\xff\xfe", None], pa.binary())
    columns = KeyColumns(keys, np.array([3, 2, 1]), *hash_keys(keys))
    with pytest.raises(ValueError, match="key_bytes"):
        write_keys_part(tmp_path / "p.parquet", 0, columns)
    write_keys_part(tmp_path / "p.parquet", 7, columns, key_bytes=True)
    rows = pq.read_table(tmp_path / "p.parquet").to_pylist()
    assert [(row["key_id"], row["key"], row["key_bytes"]) for row in rows] == [
        (7, "ok", None),
        (8, "\ufffd\ufffd", b"\xff\xfe"),
        (9, None, None),
    ]


def test_the_dictionary_is_cut_by_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "KEY_PART_ROWS", 3)
    keys = [b"%d" % i for i in range(7)]
    lo, hi = hash_keys(keys)
    counts = np.arange(7, 0, -1)
    whole = KeyColumns(pa.array(keys, pa.binary()), counts, lo, hi)
    pieces = [KeyColumns(keys[i : i + 2], counts[i : i + 2], lo[i : i + 2], hi[i : i + 2]) for i in (0, 2, 4, 6)]
    assert write_keys(tmp_path / "a", [whole]) == write_keys(tmp_path / "b", pieces) == 7
    for part in ("part-00000.parquet", "part-00001.parquet", "part-00002.parquet"):
        assert (tmp_path / "a" / part).read_bytes() == (tmp_path / "b" / part).read_bytes()
    assert pq.read_table(tmp_path / "a").column("key_id").to_pylist() == list(range(7))
