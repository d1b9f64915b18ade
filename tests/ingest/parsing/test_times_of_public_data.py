"""Times of public data sets and bug reports that were read wrong: units by a sentinel, compact dates, FILETIME."""

import datetime as dt
import json
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgroup.base.errors import DataError, UsageError
from streamgroup.ingest.explain_rejected_rows import first_time, hint_of
from streamgroup.ingest.files.inputs_and_splits import plan_splits, resolve_inputs
from streamgroup.ingest.make_reader import make_reader
from streamgroup.ingest.options import make_options
from streamgroup.ingest.parsing.times import (
    REASONS,
    find_zone,
    guess_format,
    iso,
    parse_times,
    resolve_format,
)
from streamgroup.ingest.pipeline.check_and_filter_rows import Contract
from streamgroup.ingest.plausibility import TimedFile, check_units, span_note, warnings_of
from streamgroup.traces.manifest import Manifest
from tests.ingest.conftest import read

CASES = Path(__file__).parents[2] / "data" / "cases"
BAD = "time cannot be read"
FAR = "time before 1900 or after 2200, unlike the others"


def times(form: str, *values: str) -> list[str]:
    column = pa.array([value.encode() for value in values], pa.binary())
    found, status = parse_times(column, resolve_format(form) or guess_format(column), find_zone("UTC"))
    return [REASONS[code] if code else iso(value) for value, code in zip(found.tolist(), status.tolist(), strict=True)]


def span(rows: list[tuple[int, bytes | None]]) -> tuple[str, float]:
    stamps = [stamp for stamp, _ in rows]
    return iso(min(stamps)), (max(stamps) - min(stamps)) / 1e6


@pytest.mark.parametrize(
    ("name", "reason"),
    [("longmax.csv", "time out of range"), ("year9999.csv", "time out of range")],
)
def test_a_sentinel_does_not_decide_the_unit(name: str, reason: str) -> None:
    found = read(CASES / "25-sentinel-unit" / name, "csv")
    assert len(found.tuples) == 299
    assert span(found.tuples)[0] == "2020-09-13T12:26:40Z"
    assert [why for _, why in found.rejects] == [reason]


@given(st.integers(600_000_000_000, 4_000_000_000_000), st.sampled_from(["s", "ms", "us", "ns"]), st.booleans())
def test_the_median_decides(millis: int, unit: str, sentinel: bool) -> None:
    scale = {"s": 1e-3, "ms": 1, "us": 1000, "ns": 10**6}[unit]
    values = [str(int(millis * scale) + row) for row in range(21)]
    ends = ["9223372036854775807", "-9223372036854775808", "-1", "0", "253402300799999"] if sentinel else []
    assert guess_format(pa.array([text.encode() for text in values + ends], pa.binary())).name == unit


def test_the_largest_number_is_no_time() -> None:
    for form in ("us", "ns", "filetime"):
        assert times(form, "9223372036854775807", "-9223372036854775808") == [
            "time is 2^63-1 (none)",
            "time is -2^63 (none)",
        ]
    column = pa.array([2**63 - 1, 5], pa.timestamp("us"))
    _, status = parse_times(column, guess_format(pa.array([], pa.binary())), find_zone("UTC"))
    assert [REASONS.get(code) for code in status.tolist()] == ["time is 2^63-1 (none)", None]


def test_a_unit_that_is_given_has_no_bounds() -> None:
    assert times("s", "1600000000", "253402300799")[1] == "9999-12-31T23:59:59Z"
    assert times("auto", "1600000000", "1600000000", "253402300799")[2] == FAR
    assert times("auto", "90000000000", "90000000001", "1600000000")[0] == "4821-12-26T16:00:00Z"


def test_filetime() -> None:
    found = read(CASES / "01-msr-filetime" / "web_0.csv.gz", "csv", header=False, time="1", key="5")
    assert span(found.tuples) == ("2007-02-22T17:00:00Z", 120.0)
    assert found.inferred == ("times are filetime",)
    assert times("filetime", "116444736000000000", "116444736000000009", "0", "-1") == [
        "1970-01-01T00:00:00Z",
        "1970-01-01T00:00:00Z",
        "1601-01-01T00:00:00Z",
        "time is -1 (none)",
    ]


def test_dates_written_as_numbers() -> None:
    path = CASES / "26-compact-dates" / "20240131234500.export.CSV"
    found = read(path, "text", time="7", key="5")
    assert (span(found.tuples), len(found.tuples)) == (("2024-01-31T23:45:00Z", 53_100.0), 60)
    assert found.inferred[-1] == "times are %Y%m%d%H%M%S"
    assert found.tuples == read(path, "text", time="7", key="5", time_format="%Y%m%d%H%M%S").tuples
    assert span(read(path, "text", time="2", key="5").tuples)[0] == "2024-01-31T00:00:00Z"
    basic = read(CASES / "26-compact-dates" / "basic.csv", "csv", header=False, time="1", key="2")
    assert (span(basic.tuples), len(basic.tuples)) == (("2024-01-31T23:45:00Z", 53_100.0), 60)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("20240131", "2024-01-31T00:00:00Z"),
        ("202401312345", "2024-01-31T23:45:00Z"),
        ("20240131234501", "2024-01-31T23:45:01Z"),
        ("20241119185000123", "2024-11-19T18:50:00.123Z"),
        ("20241331", "1970-08-23T06:35:31Z"),
        ("18991231", "1970-08-08T19:20:31Z"),
    ],
)
def test_compact_dates_in_auto(text: str, moment: str) -> None:
    assert times("auto", text) == [moment]


def test_zeros_among_compact_dates() -> None:
    assert times("auto", "20240131", "0", "00000000", "0") == ["2024-01-31T00:00:00Z", *[BAD] * 3]


def test_forms_of_times() -> None:
    forms = json.loads((CASES / "41-time-forms" / "forms.json").read_text())
    assert times("iso8601", *forms) == [
        "2017-01-01T00:00:00Z",  # a leap second
        BAD,  # 24:00 is no hour of RFC 3339
        "2009-11-10T23:00:00Z",
        "2009-11-10T22:00:00.5Z",
        "2024-01-01T10:00:00Z",
        "2024-01-01T10:00:00.123456Z",
        "2024-01-01T04:30:00.123Z",
        "2026-09-18T03:00:00.123456Z",
        "2024-01-01T18:00:00Z",
        "2024-01-01T10:00:00Z",
        "2024-01-01T10:00:00Z",
        "2024-01-01T10:00:00Z",
        "2024-01-01T10:00:00Z",
        "2012-03-11T06:00:00Z",
        BAD,  # a region, and no offset
        "2024-01-01T09:00:00Z",
        "2024-01-01T10:00:00Z",
    ]
    found = read(CASES / "41-time-forms" / "forms.csv", "csv", max_rejects="100%")
    assert [line for line, _ in found.rejects] == [3, 16]


@given(st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2200, 1, 1), timezones=st.just(dt.UTC)))
def test_other_forms_mean_the_same(moment: dt.datetime) -> None:
    same = times("iso8601", moment.isoformat().replace("+00:00", "z").replace("T", "t"))
    assert times("iso8601", moment.strftime("%Y%m%dT%H%M%S.%fZ").rjust(23, "0")) == same
    assert times("iso8601", moment.strftime("%Y-%jT%H:%M:%S.%fZ")) == same
    assert times("iso8601", moment.strftime("%Y/%m/%d %H:%M:%S.%f +0000 UTC")) == same


@pytest.mark.parametrize("text", ["2024-01-01T10:30:60Z", "2024-01-01T10:59:61Z", "20240101", "20240101T1", "2024-000"])
def test_what_is_still_no_time(text: str) -> None:
    assert times("iso8601", text) == [BAD]


@pytest.mark.parametrize(
    ("zone", "moment"),
    [
        ("PDT", "2009-04-07T05:19:00Z"),
        ("GMT", "2009-04-06T22:19:00Z"),
        ("JST", "2009-04-06T13:19:00Z"),
        ("NDT", "2009-04-07T00:49:00Z"),
        ("+0200", "2009-04-06T20:19:00Z"),
        ("CST", "time zone name is not known or has several meanings"),
        ("IST", "time zone name is not known or has several meanings"),
    ],
)
def test_names_of_zones(zone: str, moment: str) -> None:
    assert times("%a %b %d %H:%M:%S %Z %Y", f"Mon Apr 06 22:19:00 {zone} 2009") == [moment]
    assert times("EEE MMM dd HH:mm:ss z yyyy", f"Mon Apr 06 22:19:00 {zone} 2009") == [moment]


def test_tweets_of_sentiment140() -> None:
    options = {"reader_options": {"text": "6", "keys": "hashtags"}, "header": False, "time": "3", "encoding": "latin-1"}
    found = read(CASES / "36-sentiment140" / "s140.csv", "tweets-csv", time_format="%a %b %d %H:%M:%S %Z %Y", **options)
    assert (span(found.tuples)[0], len({key for _, key in found.tuples})) == ("2009-04-07T05:19:00Z", 3)


def test_seconds_since_1970_in_patterns() -> None:
    assert times("at %s", "at 1700000000", "at 1700000000250") == ["2023-11-14T22:13:20Z", BAD]
    assert times("%s.%f", "1700000000.5", "1700000000") == ["2023-11-14T22:13:20.5Z", "2023-11-14T22:13:20Z"]
    assert times("CreateTime:%s%L", "CreateTime:1700000000250", "NO_TIMESTAMP") == ["2023-11-14T22:13:20.25Z", BAD]


def test_the_console_dump_of_kafka() -> None:
    path = CASES / "08-kafka-dump" / "console.txt"
    found = read(path, "text", time="1", key="2", null_values=("null",), time_format="CreateTime:%s%L")
    assert (len(found.tuples), len(found.rejects), found.filtered) == (44, 1, {"null key": 5})
    assert span(found.tuples)[0] == "2023-11-14T22:13:20Z"
    kcat = read(CASES / "08-kafka-dump" / "kcat.json", "jsonl", time="ts", key="key", max_rejects="5%")
    assert (len(kcat.tuples), kcat.filtered) == (43, {"null key": 5})
    assert {reason for _, reason in kcat.rejects} == {"time is -1 (none)"}


@pytest.mark.parametrize(
    ("name", "options", "left"),
    [
        ("us.csv", {"time_format": "us", "since": "700000000", "until": "1000000000"}, 8),
        ("us.csv", {"time_format": "us", "since": "1970-01-01T00:11:40Z", "until": "1970-01-01T00:16:40Z"}, 8),
        ("ms.csv", {"time_format": "ms", "since": "1600000010000", "until": "1600000020000"}, 10),
        ("ms.csv", {"since": "1600000010", "until": "1600000020"}, 10),
        ("ms.csv", {"time_format": "ms", "since": "2020-09-13T12:26:50Z", "until": "1600000020000"}, 10),
    ],
)
def test_bounds_have_the_unit_of_the_times(name: str, options: dict[str, str], left: int) -> None:
    found = read(CASES / "38-since-unit" / name, "csv", **options)
    if name == "us.csv":
        assert sorted(stamp // 1_000_000 for stamp, _ in found.tuples)[:5] == [711, 748, 785, 822, 859]
    assert len(found.tuples) == left


def test_a_bound_in_the_pattern_of_the_times() -> None:
    made = make_options(reader="csv", inputs=("x",), output="x", time_format="%d.%m.%Y", since="01.02.2024")
    Contract(made)
    with pytest.raises(UsageError, match=r"--since: '1.2.x' is not a time"):
        Contract(made.model_copy(update={"since": "1.2.x"}))


def files(*told: tuple[str, float, float]) -> list[TimedFile]:
    hour = 3_600_000_000
    return [TimedFile(f"f{n}", form, int(low * hour), int(high * hour)) for n, (form, low, high) in enumerate(told)]


def test_units_that_differ_and_fit() -> None:
    check_units([])
    check_units(files(("ms", 0, 24), ("us", 24, 48), ("ms", 48, 72)))
    check_units(files(("us", 24, 48), ("ms", 0, 24.001)))  # some rows came late
    check_units(files(("s", 0, 24), ("s", 12, 48), ("s", 90_000, 90_001)))
    check_units(files(("iso8601", 0, 24), ("s", 0, 24), ("iso8601", 440_000, 440_001)))


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ([("s", 0, 24), ("ms", 12, 48)], "their times overlap"),
        ([("ms", 12, 13), ("s", 0, 24)], "their times overlap"),
        ([("s", 0, 24), ("s", 30, 40), ("ms", 23, 50)], "their times overlap"),
        ([("s", 0, 24), ("ms", 440_000, 440_001)], "50 years between them"),
        ([("s", 0, 24), ("%Y%m%d", 440_000, 440_001)], "50 years between them"),
    ],
)
def test_units_that_differ_and_do_not_fit(told: list[tuple[str, float, float]], why: str) -> None:
    with pytest.raises(DataError, match=why) as caught:
        check_units(files(*told))
    assert caught.value.hint == "say what they are with --time-format"
    assert "f0" in caught.value.message or "f2" in caught.value.message


def manifest(first: str, last: str, cost: float | None = None) -> Manifest:
    stamps = [dt.datetime.fromisoformat(text).replace(tzinfo=dt.UTC) for text in (first, last)]
    low, high = [int(stamp.timestamp()) * 1_000_000 for stamp in stamps]
    return Manifest(format_version=1, first_timestamp=low, last_timestamp=high, mean_cost_us=cost)


NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC).timestamp()


def test_first_and_last_time_are_told() -> None:
    assert span_note(manifest("2024-01-01", "2024-01-02")) == "times: 2024-01-01T00:00:00Z to 2024-01-02T00:00:00Z"


@pytest.mark.parametrize(
    ("first", "last", "form", "where"),
    [
        ("1974-01-01", "1974-01-02", "ns", "before 1990"),
        ("1970-01-01", "2024-01-02", "s", "before 1990"),
        ("2611-01-01", "2611-01-02", "ms", "after tomorrow"),
        ("2024-01-01", "2026-01-03", "ms", "after tomorrow"),
    ],
)
def test_years_that_are_not_likely(first: str, last: str, form: str, where: str) -> None:
    (warning,) = warnings_of(manifest(first, last), [form, "iso8601"], NOW)
    assert warning.startswith(f"some times lie {where}")
    assert f"is {form} the unit" in warning
    assert warnings_of(manifest(first, last), ["iso8601"], NOW) == []


def test_ticks_taken_for_nanoseconds() -> None:
    (warning,) = warnings_of(manifest("1990-03-10", "1990-03-11"), ["ns"], NOW)
    assert "ticks of .NET" in warning
    assert warnings_of(manifest("1990-03-10", "1990-03-11"), ["s"], NOW) == []


def test_years_that_are_likely() -> None:
    assert warnings_of(manifest("2024-01-01", "2026-01-01T23:00"), ["ms"], NOW) == []
    assert warnings_of(manifest("1970-01-01", "1970-02-01"), ["s"], NOW) == []
    assert warnings_of(Manifest(format_version=1), ["s"], NOW) == []


@pytest.mark.parametrize(("cost", "text"), [(0.2, "0.2 us"), (0.0, "0 us"), (7.2e9, "2 hours")])
def test_costs_that_are_not_likely(cost: float, text: str) -> None:
    assert warnings_of(manifest("2024-01-01", "2024-01-02", cost), ["s"], NOW) == [
        f"the mean cost is {text}: is --cost-unit right?"
    ]
    assert warnings_of(manifest("2024-01-01", "2024-01-02", 1.0), ["s"], NOW) == []


def test_what_to_do_about_rejects(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("time,key\n,a\n31.12.2024,a\n")
    options = make_options(reader="csv", inputs=(str(tmp_path / "x"),), output="x")
    reader = make_reader(options)
    shown = first_time(reader, plan_splits(reader, resolve_inputs(options.inputs))[0])
    hint = hint_of(reader, Counter({BAD: 2}), {BAD: "31.12.2024,a"}, shown, "else")
    assert hint.startswith("a time reads '31.12.2024': say how times are written with --time-format")
    seconds = make_reader(options.model_copy(update={"time_format": "at %s"}))
    assert "%s%L is milliseconds" in hint_of(seconds, Counter({BAD: 2}), {}, None, "else")
    assert "%s%L" not in hint
    assert hint_of(reader, Counter({"wrong number of fields": 2, BAD: 1}), {}, None, "else").startswith("--ragged")
    assert hint_of(reader, Counter({"value is not a number": 2}), {}, None, "else") == "else"
    assert hint_of(reader, Counter(), {}, None, "else") == "else"
