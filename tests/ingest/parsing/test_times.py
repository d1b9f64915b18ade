"""The parser of times: numbers, texts, zones, patterns, and what is no time."""

import csv
import datetime as dt
import gzip
from pathlib import Path
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgroup.base.errors import UsageError
from streamgroup.ingest.parsing.time_patterns import compile_pattern
from streamgroup.ingest.parsing.times import REASONS, find_zone, guess_format, parse_times, resolve_format


def texts(*values: str | bytes) -> pa.Array:
    return pa.array([value.encode() if isinstance(value, str) else value for value in values], pa.binary())


def times(form: str, *values: str | bytes, zone: str = "UTC") -> list[int | str]:
    resolved = resolve_format(form)
    assert resolved is not None
    found, status = parse_times(texts(*values), resolved, find_zone(zone))
    return [REASONS[code] if code else value for value, code in zip(found.tolist(), status.tolist(), strict=True)]


def us(*parts: int, zone: dt.tzinfo = dt.UTC) -> int:
    moment = dt.datetime(*parts, tzinfo=zone)  # type: ignore[misc]
    return (moment - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(microseconds=1)


@pytest.mark.parametrize(
    ("form", "text", "value"),
    [
        ("s", "1190146243", 1190146243_000000),
        ("s", "1190146243.326", 1190146243_326000),
        ("s", "0.0000019", 1),
        ("s", "-0.0000001", -1),
        ("ms", "1190146243326", 1190146243_326000),
        ("ms", "1190146243326.5", 1190146243_326500),
        ("us", "1190146243326001", 1190146243_326001),
        ("ns", "1190146243326001999", 1190146243_326001),
        ("ns", "-1001", -2),
        ("s", "1.190146243e9", 1190146243_000000),
    ],
)
def test_epochs(form: str, text: str, value: int) -> None:
    assert times(form, text) == [value]


@pytest.mark.parametrize("form", ["s", "ms", "us", "ns"])
def test_minus_one_is_no_time(form: str) -> None:
    assert times(form, "-1", "-1.0", "-2", "0")[:2] == ["time is -1 (none)"] * 2
    assert isinstance(times(form, "-2")[0], int)


def test_just_before_minus_one_second_is_a_time() -> None:
    assert times("s", "-0.9999999") == [-1_000_000]


def test_out_of_range() -> None:
    assert times("s", "9223372036854775807", "99999999999999999999") == ["time out of range"] * 2


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2010-05-27T09:31:55.63", us(2010, 5, 27, 9, 31, 55, 630000)),
        ("2010-05-27 09:31", us(2010, 5, 27, 9, 31)),
        ("2010-05-27", us(2010, 5, 27)),
        ("2013-01-01T10:00:00Z", us(2013, 1, 1, 10)),
        ("2013-01-01T10:00:00+02:00", us(2013, 1, 1, 8)),
        ("2013-01-01T10:00:00-0530", us(2013, 1, 1, 15, 30)),
        ("2013-01-01 10:00:00.123456789 +01", us(2013, 1, 1, 9, 0, 0, 123456)),
        ("2013-01-01 10:00:00 UTC", us(2013, 1, 1, 10)),
        ("1969-12-31T23:59:59.999999", -1),
        ("2024-02-29", us(2024, 2, 29)),
        ("0001-01-01", us(1, 1, 1)),
        ("9999-12-31T23:59:59", us(9999, 12, 31, 23, 59, 59)),
    ],
)
def test_iso(text: str, value: int) -> None:
    assert times("iso8601", text) == [value]


@pytest.mark.parametrize(
    "text",
    ["", "x", "2023-02-29", "2023-13-01", "2023-00-10", "2023-01-32", "2023-01-01T24:00", "2023-01-01T10:60",
     "2023-01-01T10:00:61", "2023-01-01T10:00:00+25:00", "0000-01-01", "20230101", "2023-01-01T", b"\xff023-01-01"],
)  # fmt: skip
def test_what_is_no_iso_time(text: str | bytes) -> None:
    assert times("iso8601", "2023-01-01", text, "2023-01-02")[1] == "time cannot be read"


@settings(deadline=None)
@given(st.lists(st.datetimes(dt.datetime(1900, 1, 2), dt.datetime(2100, 1, 1)), max_size=8), st.sampled_from(
    ["UTC", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "Europe/Dublin", "Pacific/Apia"]
))  # fmt: skip
def test_zones_agree_with_the_library(moments: list[dt.datetime], zone: str) -> None:
    found = times("iso8601", *(moment.isoformat() for moment in moments), zone=zone)
    for moment, value in zip(moments, found, strict=True):
        aware = moment.replace(tzinfo=ZoneInfo(zone))
        exists = aware.astimezone(dt.UTC).astimezone(ZoneInfo(zone)).replace(tzinfo=None) == moment
        expected = (aware - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(microseconds=1)
        assert value == (expected if exists else "time does not exist in the time zone")


def test_clocks_set_forward_and_back() -> None:
    found = times(
        "iso8601", "2024-03-10 01:59", "2024-03-10 02:30", "2024-03-10 03:00", "2024-11-03 01:30",
        zone="America/New_York",
    )  # fmt: skip
    assert found == [
        us(2024, 3, 10, 6, 59),
        "time does not exist in the time zone",
        us(2024, 3, 10, 7),
        us(2024, 11, 3, 5, 30),  # the earlier of the two
    ]


@pytest.mark.parametrize(
    ("pattern", "text", "value"),
    [
        ("%Y-%m-%d %H:%M", "2006-04-07 17:08", us(2006, 4, 7, 17, 8)),
        ("yyyy-MM-dd HH:mm", "2006-04-07 17:08", us(2006, 4, 7, 17, 8)),
        ("yyyy-MM-dd'T'HH:mm:ss.SSS", "2006-04-07T17:08:09.5", us(2006, 4, 7, 17, 8, 9, 500000)),
        ("%a %b %d %H:%M:%S %z %Y", "Tue Sep 09 18:44:28 +0000 2014", us(2014, 9, 9, 18, 44, 28)),
        ("dd/MMM/yyyy:HH:mm:ss Z", "17/May/2015:10:05:03 +0200", us(2015, 5, 17, 8, 5, 3)),
        ("%y%m%d%H%M%S", "970916105432", us(1997, 9, 16, 10, 54, 32)),
        ("%m/%d/%Y %I:%M:%S %p", "1/2/2015 12:05:06 AM", us(2015, 1, 2, 0, 5, 6)),
        ("%Y-%j", "2024-366", us(2024, 12, 31)),
        ("%Y-%m-%d-%H.%M.%S.%f", "2005-06-03-15.42.50.675872", us(2005, 6, 3, 15, 42, 50, 675872)),
        ("%Y-%m-%d-%H.%M.%S.%f", "2005-06-03-15.42.50", us(2005, 6, 3, 15, 42, 50)),
        ("yyyy-MM-dd HH:mm:ss,SSS 'NY'", "2013-10-07 09:30:00 NY", us(2013, 10, 7, 9, 30)),
        ("yyyy-MM-dd HH:mm:ss,SSS 'NY'", "2013-10-07 09:30:00,000001000 NY", us(2013, 10, 7, 9, 30, 0, 1)),
        ("%Y%m%d-%H:%M:%S:%L", "20171224-0:7:20:215", us(2017, 12, 24, 0, 7, 20, 215000)),
        ("%Y%m%d-%H:%M:%S:%L", "20171224-0:7:20:5", us(2017, 12, 24, 0, 7, 20, 5000)),
        ("%H:%M", "01:02", us(1970, 1, 1, 1, 2)),
    ],
)
def test_patterns(pattern: str, text: str, value: int) -> None:
    assert times(pattern, text) == [value]


@pytest.mark.parametrize("pattern", ["%H%M", "HHmm", "Hmm"])
def test_a_number_lacks_zeros_in_front(pattern: str) -> None:
    found = times(pattern, "517", "0517", "5", "05", "17", "2359", "", "NA", "5 1", "-517", "00517", "2400", "60")
    minutes = [value // 60_000_000 if isinstance(value, int) else None for value in found]
    assert minutes == [317, 317, 5, 5, 17, 1439, None, None, None, None, None, None, None]


def test_zeros_are_lacking_in_front_of_digits_alone() -> None:
    assert times("%m%d%Y", "1022015", "1022015", "12312015") == [us(2015, 1, 2)] * 2 + [us(2015, 12, 31)]
    assert times("%d%m%Y", "1022015") == [us(2015, 2, 1)]
    assert times("ddMMyyyy", "1022015") == [us(2015, 2, 1)]
    assert times("%H%M%S", "51709", "9") == [us(1970, 1, 1, 5, 17, 9), us(1970, 1, 1, 0, 0, 9)]
    # A year of two digits is no year of the first century, and nothing is put before what is not all digits.
    unreadable = "time cannot be read"
    assert times("%Y%m%d", "970916", "20150102") == [unreadable, us(2015, 1, 2)]
    assert times("%H:%M", "517", "5:17") == [unreadable, us(1970, 1, 1, 5, 17)]
    assert times("%H%M%p", "517") == [unreadable]


def test_departures_of_real_flights() -> None:
    file = Path(__file__).parents[3] / "traces/raw/nycflights13/flights-first45000.csv.gz"
    with gzip.open(file, "rt") as text:
        written = [row["dep_time"] for row in csv.DictReader(text)]
    assert {len(value) for value in written if value != "NA"} == {1, 2, 3, 4}
    for value, found in zip(written, times("%H%M", *written), strict=True):
        if value in ("NA", "2400"):
            assert found == "time cannot be read"
        else:
            hour, minute = divmod(int(value), 100)
            assert found == (hour * 60 + minute) * 60_000_000


@pytest.mark.parametrize("pattern", ["%Q", "%Y %Y", "yyyy QQ", "nonsense", "hello"])
def test_patterns_that_are_none(pattern: str) -> None:
    with pytest.raises(UsageError, match="--time-format"):
        compile_pattern(pattern)


def test_a_day_of_the_year_that_is_too_large() -> None:
    assert times("%Y-%j", "2023-366") == ["time cannot be read"]


@pytest.mark.parametrize(
    ("values", "form"),
    [
        (["0", "99999999999"], "s"),
        (["1190146243.326"], "s"),
        (["100000000000"], "ms"),
        (["-100000000000"], "ms"),
        (["99999999999999", "5"], "ms"),
        (["100000000000000"], "us"),
        (["100000000000000000"], "ns"),
        (["2013-01-01"], "iso8601"),
        (["2013-01-01", "x", "17", "2013-01-02"], "iso8601"),
        (["2013-01-01", "17"], "s"),
        (["NA", "", "NA", "-", "1600000000"], "s"),
        (["NA", "1600000000000", "nan", "inf"], "ms"),
        (["5", "1e30"], "s"),
        (["NA", "NA", "2013-01-01"], "iso8601"),
        (["NA"], "iso8601"),
        (["17", "x", "18"], "s"),
        ([], "s"),
    ],
)
def test_auto(values: list[str], form: str) -> None:
    assert guess_format(texts(*values)).name == form


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize(("zone", "hours"), [("UTC", 0), ("Asia/Tokyo", -9)])
def test_arrow_timestamps(unit: str, zone: str, hours: int) -> None:
    column = pa.array([dt.datetime(2020, 1, 1, 12), None]).cast(pa.timestamp(unit))
    form = resolve_format("s")
    assert form is not None
    found, status = parse_times(column, form, find_zone(zone))
    assert (found[0], status.tolist()) == (us(2020, 1, 1, 12 + hours), [0, 1])
    aware = column.cast(pa.timestamp(unit, "UTC"))
    assert parse_times(aware, form, find_zone(zone))[0][0] == us(2020, 1, 1, 12)


def test_arrow_dates_and_far_seconds() -> None:
    form = resolve_format("s")
    assert form is not None
    assert parse_times(pa.array([dt.date(2020, 1, 1)]), form, find_zone("UTC"))[0].tolist() == [us(2020, 1, 1)]
    far = [2**62, 2**63 - 1, -(2**63), 9_223_372_036_855, -9_223_372_036_855]
    assert parse_times(pa.array(far, pa.timestamp("s")), form, find_zone("UTC"))[1].tolist() == [2] * 5
    most = 9_223_372_036_854
    found, status = parse_times(pa.array([most, -most], pa.timestamp("s")), form, find_zone("UTC"))
    assert (found.tolist(), status.tolist()) == ([most * 10**6, -most * 10**6], [0, 0])


def test_an_unknown_zone() -> None:
    with pytest.raises(UsageError, match="Mars"):
        find_zone("Mars/Olympus")
