"""The reader of trades, and the zip files of Lean."""

import datetime as dt
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from streamgroup.base.errors import DataError, UsageError
from streamgroup.ingest.options import make_options
from streamgroup.ingest.preview import preview
from tests.ingest.conftest import Rows, read
from tests.ingest.naive_ingest import NOT_LINES

Parse = Callable[..., Any]
QUIET = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])

# Milliseconds since midnight, price in 1/10,000, size, exchange, condition, suspicious; the last two lines are alike.
LEAN = (
    b"34200000,139400,500,P,20002020,0\n34200001,139550,100,D,20,0\n57600000,139500,7,Q,20,1\n57600000,139500,7,Q,20,1"
)
NAMES = b"Time,Symbol,Price,Volume\n"


def keys(rows: Any) -> list[bytes | None]:
    return [key for _, key in rows.tuples]


def us(*moment: int) -> int:
    return int(dt.datetime(*moment, tzinfo=dt.UTC).timestamp()) * 1_000_000


def read_at(folder: Path, place: str, content: bytes, **options: Any) -> Rows:
    path = folder / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return read(path, "trades", **options)


def test_the_layout_of_lean(tmp_path: Path) -> None:
    rows = read_at(tmp_path, "abc/20131007_trade.csv", LEAN)
    begin, end = us(2013, 10, 7, 13, 30), us(2013, 10, 7, 20)
    assert rows.tuples == [(begin, b"abc"), (begin + 1000, b"abc"), (end, b"abc"), (end, b"abc")]
    assert (rows.value, rows.weight) == ([13.94, 13.955, 13.95, 13.95], [500.0, 100.0, 7.0, 7.0])
    assert rows.inferred == (
        "the symbol is that of the path",
        "value is price",
        "weight is size",
        "the layout of Lean, its day in the path, clocks of America/New_York",
    )
    assert keys(read_at(tmp_path, "abc/20131007_trade.csv", LEAN, key="exchange")) == [b"P", b"D", b"Q", b"Q"]
    assert read_at(tmp_path, "abc/20131007_trade.csv", LEAN, value="size").value == [500.0, 100.0, 7.0, 7.0]


@pytest.mark.parametrize(
    ("day", "zone", "noon"),
    [("20131007", None, 16), ("20131107", None, 17), ("20131007", "UTC", 12), ("20131007", "Asia/Tokyo", 3)],
)
def test_the_clocks_of_lean(tmp_path: Path, day: str, zone: str | None, noon: int) -> None:
    rows = read_at(tmp_path, f"abc/{day}_trade.csv", b"43200000,1,1,P,0,0\n", timezone=zone)
    assert rows.tuples == [(us(2013, int(day[4:6]), 7, noon), b"abc")]


def test_times_that_no_day_has(tmp_path: Path) -> None:
    content = b"0,1,1,P,0,0\n-1,1,1,P,0,0\n86400000,1,1,P,0,0\nx,1,1,P,0,0\n86399999,x,1,P,0,0\n1,2,3\n"
    rows = read_at(tmp_path, "abc/20131007_trade.csv", content)
    assert rows.tuples == [(us(2013, 10, 7, 4), b"abc")]
    assert sorted(rows.rejects) == [
        (2, "time cannot be read"),
        (3, "time cannot be read"),
        (4, "time cannot be read"),
        (5, "value is not a number"),
        (6, "wrong number of fields"),
    ]
    # The clocks went forward at two.
    skipped = read_at(tmp_path, "abc/20130310_trade.csv", b"9000000,1,1,P,0,0\n")
    assert skipped.rejects == [(1, "time does not exist in the time zone")]
    with pytest.raises(UsageError, match="milliseconds since midnight"):
        read_at(tmp_path, "abc/20131007_trade.csv", LEAN, time_format="ms")


def test_zips_of_lean(tmp_path: Path) -> None:
    path = tmp_path / "abc" / "20131007_trade.zip"
    path.parent.mkdir()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("20131007_abc_Trade_Tick.csv", LEAN)
    assert read(path, "trades").tuples == read_at(tmp_path, "abc/20131007_trade.csv", LEAN).tuples


def test_columns_by_name_whatever_their_case_and_order(parse: Parse) -> None:
    rows = parse(NAMES + b"2013-10-07 09:30:00.5,ABC,13.94,1.0E-5\n2013-10-07T09:30:01Z,B C,1e2,3\n", "trades")
    begin = us(2013, 10, 7, 9, 30)
    assert rows.tuples == [(begin + 500_000, b"ABC"), (begin + 1_000_000, b"B C")]
    assert (rows.value, rows.weight) == ([13.94, 100.0], [0.00001, 3.0])
    rows = parse(b'"qty","ticker","timestamp","price"\n1,"a,b",1381138200000,2\n', "trades")
    assert (rows.tuples, rows.value, rows.weight) == ([(begin, b"a,b")], [2.0], [1.0])
    rows = parse(b"t|s|p|n\n5|a|1|2\n", "trades", delimiter="|", time="t", key="s", value="p", weight="n")
    assert (rows.tuples, rows.value, rows.weight) == ([(5_000_000, b"a")], [1.0], [2.0])
    assert parse(b"time,symbol,fee\n5,a,2.5\n", "trades", cost="fee").cost == [2.5]
    assert parse(b"time,symbol\n5,a\n", "trades").value == []


def test_the_symbol_comes_from_the_path(tmp_path: Path) -> None:
    content = b"1315922016,5.8,1.0\n1315922024,5.83,3.0E-5\n1315922024,5.83,3.0E-5\n"
    for place, symbol in {
        "bitstampUSD.csv": b"bitstampUSD",
        ".bitstampUSD.csv.gz": b"bitstampUSD",
        "BTCUSDT-trades-2021-03.csv": b"BTCUSDT",
        "btc_usd_2021-03-04.txt": b"btc_usd",
        "20131007_xyz_Trade_Tick.csv": b"xyz",
        "xyz/20131007_trade.zst": b"xyz",
        "600519.csv": b"600519",
        "tickers.csv": b"tickers",
    }.items():
        rows = read_at(tmp_path, place, content)
        first = 1315922016_000000
        assert rows.tuples == [(first, symbol), (first + 8_000_000, symbol), (first + 8_000_000, symbol)], place
        assert (rows.value, rows.weight) == ([5.8, 5.83, 5.83], [1.0, 0.00003, 0.00003])
        assert rows.inferred[0] == "the symbol is that of the path"
    told = read_at(tmp_path, "x.csv", content, reader_options={"symbol": "BTC"})
    assert keys(told) == [b"BTC"] * 3
    assert told.inferred == ("value is price", "weight is amount", "times are s")
    headed = read_at(tmp_path, "x.csv", b"unixtime,price,amount\n" + content, key="symbol")
    assert (keys(headed), headed.filtered) == ([b"x"] * 3, {"header": 1})
    with pytest.raises(UsageError, match="--symbol: the file has a column 'Symbol'"):
        read_at(tmp_path, "x.csv", NAMES + b"1,a,2,3\n", reader_options={"symbol": "BTC"})


def test_other_columns_without_a_header_go_by_number(tmp_path: Path) -> None:
    content = b"a,1381138200,2.5,3\n"
    with pytest.raises(UsageError, match=r"which column is the time.*Found: 1, 2, 3, 4$"):
        read_at(tmp_path, "x.csv", content)
    rows = read_at(tmp_path, "x.csv", content, time="2", key="1", value="3", weight="4")
    assert (rows.tuples, rows.value, rows.weight) == ([(us(2013, 10, 7, 9, 30), b"a")], [2.5], [3.0])
    # Six numbers, but no day in the name: not of Lean.
    with pytest.raises(UsageError, match="which column is the time"):
        read_at(tmp_path, "abc/trade.csv", LEAN)
    with pytest.raises(UsageError, match="which column is the time"):
        read_at(tmp_path, "abc/20131399_trade.csv", LEAN)


def test_fields_beyond_the_first_line_go_by_number(tmp_path: Path) -> None:
    content = b"time,price,size\n1,2.5,3,X,7\n2,2.5,3\n"
    rows = read_at(tmp_path, "abc.csv", content, key="4", weight="5", reader_options={"ragged": True})
    assert (rows.tuples, rows.weight) == ([(1_000_000, b"X")], [7.0])
    assert rows.rejects == [(3, "wrong number of fields")]
    rows = read_at(tmp_path, "abc.csv", content, weight="size", reader_options={"ragged": True})
    assert keys(rows) == [b"abc", b"abc"]


def test_rows_that_cannot_be_used(parse: Parse) -> None:
    rows = parse(NAMES + b"1,a,2,3\n\n1,a,2\n1,a,nan,3\n1,a,2,\nx,a,2,3\n", "trades")
    assert rows.tuples == [(1_000_000, b"a")]
    assert sorted(rows.rejects) == [
        (4, "wrong number of fields"),
        (5, "value is not a number"),
        (6, "weight is not a number"),
        (7, "time cannot be read"),
    ]
    assert rows.filtered == {"header": 1, "blank": 1}
    with pytest.raises(DataError, match="no rows"):
        parse(b"\n", "trades")
    with pytest.raises(DataError, match="line 2, the first: quote is never closed"):
        parse(b'\n"', "trades")


def test_preview_names_what_is_used(tmp_path: Path) -> None:
    path = tmp_path / "abc" / "20131007_trade.csv"
    path.parent.mkdir()
    path.write_bytes(LEAN)
    seen = preview(make_options(reader="trades", inputs=(str(path),), output="unused"))
    assert (seen.time, seen.key, seen.value) == ("time", "symbol", "price")
    assert seen.tuples[0].key == "abc"


pieces = st.sampled_from(
    [b",", b"\n", b'"', b" ", b"\r\n", b"\xff", b"5", b"1e9", b"price", NAMES, *LEAN.splitlines(keepends=True)]
)


@QUIET
@example(b"", "x.csv")
@given(
    st.one_of(st.binary(max_size=200), st.lists(pieces, max_size=30).map(b"".join)),
    st.sampled_from(["x.csv", "20131007_trade.csv"]),
)
def test_any_bytes_add_up(parse: Parse, content: bytes, name: str) -> None:
    assume(not content.startswith(NOT_LINES))
    # Carriage returns alone end lines.
    assume(b"\n" in content or b"\r" not in content)
    try:
        rows = parse(content, "trades", name=name)
    except (DataError, UsageError):
        return
    assert rows.rows == content.count(b"\n") + (not content.endswith(b"\n"))


@pytest.mark.spark
def test_a_trace_of_two_days(make: Callable[..., Any], tmp_path: Path) -> None:
    for day in ("20131008", "20131007"):
        path = tmp_path / "abc" / f"{day}_trade.zip"
        path.parent.mkdir(exist_ok=True)
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(f"{day}_abc_Trade_Tick.csv", LEAN)
    result = make("trades", tmp_path / "abc" / "*.zip")
    assert (result.manifest.tuples, result.manifest.keys, result.manifest.in_order) == (8, 1, True)
    table = pq.read_table(result.trace / "tuples")
    day = us(2013, 10, 8, 13, 30) - us(2013, 10, 7, 13, 30)
    first = [us(2013, 10, 7, 13, 30), us(2013, 10, 7, 13, 30) + 1000, us(2013, 10, 7, 20), us(2013, 10, 7, 20)]
    assert table["timestamp"].to_pylist() == [*first, *(moment + day for moment in first)]
    assert table["value"].to_pylist() == [13.94, 13.955, 13.95, 13.95] * 2
    assert table["weight"].to_pylist() == [500.0, 100.0, 7.0, 7.0] * 2
