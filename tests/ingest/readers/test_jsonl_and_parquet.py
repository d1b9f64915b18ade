"""The readers jsonl and parquet, and options that hold for every reader."""

import datetime as dt
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamgroup.base.errors import DataError, UsageError
from streamgroup.base.modules_by_name import READERS, load, names
from streamgroup.ingest.make_reader import make_reader
from streamgroup.ingest.options import make_options
from streamgroup.ingest.preview import preview
from streamgroup.ingest.readers.protocol import Reader

Parse = Callable[..., Any]


def keys(rows: Any) -> list[bytes | None]:
    return [key for _, key in rows.tuples]


@pytest.mark.parametrize("name", names(READERS))
def test_every_reader_says_what_it_is(name: str) -> None:
    member = load(READERS, name, "reader").Reader
    assert issubclass(member, Reader)
    assert member.about
    assert member.__doc__
    assert member.defaults.time
    assert member.defaults.key
    for field in member.Options.model_fields.values():
        assert field.description


GIVEN: dict[str, list[Any]] = {
    "delimiter": ["\\t"],
    "header": [True, False],
    "multiline": [True],
    "encoding": ["latin-1"],
    "time_format": ["s"],
    "time": ["1"],
    "key": ["1"],
    "cost": ["1"],
    "value": ["1"],
    "weight": ["1"],
}
COLUMNS = {"key", "cost", "value", "weight"}
LINES = {"delimiter", "header", "multiline"}
COUNTS = LINES | {"time_format"}
UNUSED: dict[str, set[str]] = {
    "access_log": LINES,
    "amazon_reviews": LINES,
    "azure_functions": COUNTS | {"cost", "value", "weight"},
    "cache_trace": {"multiline"},
    "csv": set(),
    "jsonl": LINES,
    "memetracker": LINES | COLUMNS | {"time"},
    "oracle_general": LINES | {"encoding"},
    "parquet": LINES | {"encoding"},
    "posg_tweets": COLUMNS | {"multiline"},
    "slb": {"multiline"},
    "text": {"multiline"},
    "trades": set(),
    "tweets_csv": {"key"},
    "twitter": LINES | COLUMNS,
    "wikibench": {"multiline"},
    "wikipedia_clickstream": COUNTS,
    "wikipedia_pageviews": COUNTS,
    "wikipedia_pageviews_by_language": COUNTS,
}


@pytest.mark.parametrize("name", names(READERS))
def test_options_that_mean_nothing_to_a_reader_are_refused(name: str) -> None:
    for option, values in GIVEN.items():
        for value in values:
            asked = make_options(reader=name, inputs=("x",), output="x", **{option: value})
            if option not in UNUSED[name]:
                assert make_reader(asked).options
                continue
            with pytest.raises(UsageError, match=f"^reader {name} has no --{option.replace('_', '-')}$") as caught:
                make_reader(asked)
            assert caught.value.hint


def test_an_unknown_reader() -> None:
    with pytest.raises(UsageError, match="no reader 'cvs'") as caught:
        load(READERS, "cvs", "reader")
    assert "csv" in (caught.value.hint or "")


def test_jsonl_keeps_keys_as_written(parse: Parse) -> None:
    content = (
        b'{"time": 1, "key": "007"}\n{"time": 2.5, "key": 18446744073709551617}\n{"key": true, "time": "3"}\n'
        b'{"time": 4, "key": null}\n{"time": 5}\n{"time": 6, "key": "\\u00e9\\ud83d\\ude00"}\n'
    )
    rows = parse(content, "jsonl", null_keys="keep")
    assert rows.tuples == [
        (1_000_000, b"007"),
        (2_500_000, b"18446744073709551617"),
        (3_000_000, b"true"),
        (4_000_000, None),
        (5_000_000, None),
        (6_000_000, "é😀".encode()),
    ]


def test_jsonl_rejects_what_it_cannot_use(parse: Parse) -> None:
    lines = [
        b'{"time":1,"key":"a"}',
        b"{",
        b"",
        b"[1]",
        b'"x"',
        b'{"time":2,"key":1.5}',
        b'{"time":3,"key":["a"]}',
        b'{"key":"b"}',
        b'{"time":NaN,"key":"c"}',
        b'{"time":4,"key":"\xff"}',
        b'{"time":5,"key":"d"}',
    ]
    rows = parse(b"\n".join(lines), "jsonl")
    assert keys(rows) == [b"a", b"d"]
    assert sorted(rows.rejects) == [
        (2, "not JSON"),
        (4, "not a JSON object"),
        (5, "not a JSON object"),
        (6, "key, time, cost, value or weight is of a type that cannot serve"),
        (7, "key, time, cost, value or weight is of a type that cannot serve"),
        (8, "time cannot be read"),
        (9, "time cannot be read"),
        (10, "not UTF-8"),
    ]
    assert rows.filtered == {"blank": 1}


def test_jsonl_reaches_into_objects(parse: Parse) -> None:
    content = json.dumps({"at": "2020-11-20T04:32:46.000Z", "user": {"name": "x", "cost": 3}}).encode()
    rows = parse(content, "jsonl", time="at", key="user.name", cost="user.cost")
    assert (rows.tuples, rows.cost) == ([(1605846766_000000, b"x")], [3.0])
    missing = parse(content, "jsonl", time="at", key="user.nme")
    assert (missing.tuples, missing.filtered) == ([], {"null key": 1})
    assert missing.inferred[0] == "no field 'user.nme' in the first rows, which have at, user"
    with pytest.raises(UsageError, match=r"no column '7'.*at.*user"):
        parse(content, "jsonl", time="at", key="7")


def write(path: Path, **columns: Any) -> Path:
    pq.write_table(pa.table(columns), path, row_group_size=2)
    return path


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array([7, 2**63 + 1, 0], pa.uint64()), [b"7", b"9223372036854775809", b"0"]),
        (pa.array([-1, 0, 1], pa.int8()), [b"-1", b"0", b"1"]),
        (pa.array([True, False, True]), [b"true", b"false", b"true"]),
        (pa.array([b"\xff", b"", b"a"]), [b"\xff", b"", b"a"]),
        (pa.array(["a", "b", "a"]).dictionary_encode(), [b"a", b"b", b"a"]),
        (pa.array(["a", None, "c"], pa.large_string()), [b"a", None, b"c"]),
    ],
)
def test_parquet_keys(parse: Parse, tmp_path: Path, column: pa.Array, expected: list[bytes | None]) -> None:
    path = write(tmp_path / "x.parquet", time=[1, 2, 3], key=column)
    rows = parse(path.read_bytes(), "parquet", null_keys="keep")
    assert keys(rows) == expected


@pytest.mark.parametrize(
    "column",
    [pa.array([1.5]), pa.array([dt.date(2020, 1, 1)]), pa.array([dt.datetime(2020, 1, 1)]), pa.array([["a"]]),
     pa.array([{"a": 1}])],
)  # fmt: skip
def test_parquet_keys_that_must_be_cast(parse: Parse, tmp_path: Path, column: pa.Array) -> None:
    path = write(tmp_path / "x.parquet", time=[1], key=column)
    with pytest.raises(UsageError, match="'key' is") as caught:
        parse(path.read_bytes(), "parquet")
    assert caught.value.hint == "cast it"


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize(("zone", "naive"), [("UTC", 12), ("Asia/Tokyo", 3)])
def test_parquet_times(parse: Parse, tmp_path: Path, unit: str, zone: str, naive: int) -> None:
    column = pa.array([dt.datetime(2020, 1, 1, 12)]).cast(pa.timestamp(unit))
    path = write(tmp_path / "x.parquet", time=column, key=["a"])
    noon = int(dt.datetime(2020, 1, 1, naive, tzinfo=dt.UTC).timestamp()) * 1_000_000
    assert parse(path.read_bytes(), "parquet", timezone=zone).tuples == [(noon, b"a")]


def test_parquet_numbers_and_texts_as_times(parse: Parse, tmp_path: Path) -> None:
    columns = {"a": [1190146243.326, -1.0, 2.0], "b": ["1190146243.5", "x", None], "key": ["k"] * 3}
    path = write(tmp_path / "x.parquet", **columns)
    assert parse(path.read_bytes(), "parquet", time="a").tuples == [(1190146243_326000, b"k"), (2_000_000, b"k")]
    rows = parse(path.read_bytes(), "parquet", time="b", time_format="s")
    assert rows.tuples == [(1190146243_500000, b"k")]
    assert rows.rejects == [(2, "time cannot be read"), (3, "time cannot be read")]


def test_parquet_numbers_are_never_dates(parse: Parse, tmp_path: Path) -> None:
    for times in ([1.5, float("nan"), float("inf"), 1e30], [float("nan"), None, float("nan"), float("nan")]):
        path = write(tmp_path / "in", time=pa.array(times, pa.float64()), key=pa.array(list("abcd")))
        found = make_reader(make_options(reader="parquet", inputs=(str(path),), output="unused")).layout(str(path))
        assert found.time_format is not None
        assert found.time_format.name == "s"


def test_parquet_that_is_cut(parse: Parse, tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", time=[1, 2, 3], key=["a", "b", "c"])
    with pytest.raises(DataError, match="not a whole Parquet file"):
        parse(path.read_bytes()[:-5], "parquet")
    assert keys(parse(path.read_bytes(), "parquet", limit=2)) == [b"a", b"b"]


def test_preview(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("# time, key, c\n" + "".join(f"{n}, k{n}, 2\n" for n in range(30)) + "x, y, 2\n")
    seen = preview(make_options(reader="csv", inputs=(str(path),), output="unused", cost="c"))
    assert [row.key for row in seen.tuples] == [f"k{n}" for n in range(10)]
    assert seen.tuples[3] == (3_000_000, "k3", 2.0, None, None)
    assert seen.rejects == [(str(path), 32, "time cannot be read", "x, y, 2")]
    assert (seen.rows_read, seen.rows_rejected, seen.columns) == (32, 1, ["time", "key", "c"])
    assert seen.time_format == "s"
    assert any("blank follows" in note for note in seen.inferred)
