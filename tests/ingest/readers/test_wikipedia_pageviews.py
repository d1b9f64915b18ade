"""Counts of Wikimedia: hourly page views; of all its readers traces on Spark, bounds, and any bytes at all."""

import gzip
import re
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streamgroup.base.errors import DataError, UsageError
from streamgroup.ingest.options import make_options
from streamgroup.ingest.parsing.event_counts.count_rows import MAX_COUNT, even_offsets
from streamgroup.ingest.preview import preview
from tests.ingest.conftest import RAW, read
from tests.ingest.naive_ingest import tuples_of
from tests.ingest.readers.wikipedia_rows import COMPLETE, DAILY, FIRST, HOUR, LANGUAGE, Parse, counted, us

HOURLY = RAW / "wikimedia-pageviews-hourly" / "pageviews-20240803-060000.gz"
DAY = 24 * HOUR
QUIET = settings(
    max_examples=150,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


# Even steps


@pytest.mark.parametrize("length", [HOUR, DAY, 31 * DAY, 7])
def test_even_steps_are_exact(length: int) -> None:
    counts = [1, 2, 3, 7, 997, 242_332, MAX_COUNT]
    for count in counts:
        places = sorted({0, min(1, count - 1), count // 3, count // 2, count - 1})
        found = even_offsets(np.array(places), np.full(len(places), count), length)
        assert found.tolist() == [int((place + Fraction(1, 2)) / count * length) for place in places]


# Hourly page views


def test_an_hour_of_real_page_views() -> None:
    rows = read(HOURLY, "wikipedia-pageviews")
    written = [line.split(b" ") for line in gzip.decompress(HOURLY.read_bytes()).splitlines()]
    expected: Counter[bytes] = Counter()
    for domain, title, count, _ in written:
        expected[domain + b" " + title] += int(count)
    assert (rows.rows, rows.rejects, rows.filtered) == (1000, [], {})
    assert counted(rows) == expected
    assert (len(rows.tuples), max(expected.values())) == (3047, 330)
    start = us(2024, 8, 3, 6)
    assert all(start <= time < start + HOUR for time, _ in rows.tuples)
    hot = [time - start for time, key in rows.tuples if key == b"en.m World_record_progression_50_metres_freestyle"]
    assert hot == [int((place + Fraction(1, 2)) / 330 * HOUR) for place in range(330)]


def test_page_views_by_weight() -> None:
    rows = read(HOURLY, "wikipedia-pageviews", reader_options={"counts": "weight"})
    assert (len(rows.tuples), sum(rows.weight), rows.weight[:3]) == (1000, 3047.0, [1.0, 2.0, 330.0])
    assert {time for time, _ in rows.tuples} == {us(2024, 8, 3, 6)}
    drawn = read(HOURLY, "wikipedia-pageviews", reader_options={"counts": "weight", "spread": "draw"})
    assert drawn.weight == rows.weight
    assert len({time for time, _ in drawn.tuples}) == 1000


LEGACY = (
    b"en Barack_Obama%27s_first_100_days 3 850127\nen - 9 12\nzu.mw zu 28 180647\naa ?page=http://a.org/x 1 39267\n"
)


def test_legacy_counts(parse: Parse) -> None:
    rows = parse(LEGACY, "wikipedia-pageviews", name="pagecounts-20090430-230001.en.txt", value="bytes")
    assert counted(rows) == {b"en Barack_Obama%27s_first_100_days": 3, b"aa ?page=http://a.org/x": 1}
    assert [time - us(2009, 4, 30, 23) for time, _ in rows.tuples] == [HOUR // 6, HOUR // 2, HOUR * 5 // 6, HOUR // 2]
    assert rows.filtered == {"no title": 1, "total of a project": 1}
    assert rows.value == [850127.0] * 3 + [39267.0]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"totals": True}, {b"en Barack_Obama%27s_first_100_days": 3, b"zu.mw zu": 28, b"aa ?page=http://a.org/x": 1}),
        ({"untitled": True}, {b"en Barack_Obama%27s_first_100_days": 3, b"en -": 9, b"aa ?page=http://a.org/x": 1}),
        ({"decode": True}, {b"en Barack_Obama's_first_100_days": 3, b"aa ?page=http://a.org/x": 1}),
    ],
)
def test_options_of_page_views(parse: Parse, options: dict[str, Any], expected: dict[bytes, int]) -> None:
    options = {**options, "hour": "2009-04-30T23", "spread": "none"}
    rows = parse(LEGACY, "wikipedia-pageviews", reader_options=options)
    assert counted(rows) == expected
    assert {time for time, _ in rows.tuples} == {us(2009, 4, 30, 23)}


def test_titles_are_decoded_once(parse: Parse) -> None:
    content = "en %25D0%259F 1 0\nen П_%zz%2 1 0\nen %E2%82%AC%20 1 0\n".encode()
    options = {"hour": "2009-04-30T23", "decode": True}
    rows = parse(content, "wikipedia-pageviews", key="title", reader_options=options)
    assert [key for _, key in rows.tuples] == [b"%D0%9F", "П_%zz%2".encode(), "€ ".encode()]
    assert [key for _, key in parse(content, "wikipedia-pageviews", key="domain", reader_options=options).tuples] == (
        [b"en"] * 3
    )


def test_rows_that_are_no_page_views(parse: Parse) -> None:
    bad = [
        (b"en A B 1 0", "wrong number of fields"),
        (b"en A 1", "wrong number of fields"),
        (b"en A 1 0 0 0", "wrong number of fields"),
        (b" A 1 0", "not a domain"),
        ("é A 1 0".encode(), "not a domain"),
        (b"en A -1 0", "count is not a whole number"),
        (b"en A 1e3 0", "count is not a whole number"),
        (b"en A  0", "count is not a whole number"),
        (b"en A 1 -", "bytes are not a whole number"),
        (b"en A 1000000001 0", "count is too large"),
        (b"en A 12345678901234567890 0", "count is not a whole number"),
    ]
    good = b'en "A 2 0\r\n\nen B 0 5\n"" Z1628 1 0'
    rows = parse(b"\n".join(text for text, _ in bad) + b"\n" + good, "wikipedia-pageviews", name="p-20200101-000000")
    assert rows.rejects == [(number, reason) for number, (_, reason) in enumerate(bad, 1)]
    assert counted(rows) == {b'en "A': 2, b'"" Z1628': 1}
    assert rows.filtered == {"blank": 1, "count is 0": 1}


@pytest.mark.parametrize(
    "name", ["input", "pageviews-2024080-060000", "pageviews-20241303-060000", "x-20240803-250000"]
)
def test_a_name_that_tells_no_hour(parse: Parse, name: str) -> None:
    with pytest.raises(UsageError, match="does not tell the hour") as caught:
        parse(b"en A 1 0\n", "wikipedia-pageviews", name=name)
    assert "--hour 2024-08-03T06" in (caught.value.hint or "")
    given = {"hour": "2024-08-03T06:00:00Z"}
    assert parse(b"en A 1 0\n", "wikipedia-pageviews", name=name, reader_options=given).tuples == [
        (us(2024, 8, 3, 6, 30), b"en A")
    ]


@pytest.mark.parametrize(
    ("reader", "option", "text"),
    [
        ("wikipedia-pageviews", "hour", "2024-08-03"),
        ("wikipedia-pageviews", "hour", "2024-02-30T06"),
        ("wikipedia-pageviews", "counts", "both"),
        ("wikipedia-pageviews", "spread", "even"),
        ("wikipedia-pageviews", "seed", "-1"),
        ("wikipedia-clickstream", "month", "2018"),
        (LANGUAGE, "day", "2021-01-01"),
    ],
)
def test_options_that_are_wrong(parse: Parse, reader: str, option: str, text: str) -> None:
    with pytest.raises(UsageError, match=option):
        parse(b"en A 1 0\n", reader, name="p-20200101-000000", reader_options={option: text})


@pytest.mark.parametrize(
    "options", [{"key": "count"}, {"key": "hour"}, {"time": "title"}, {"cost": "page"}, {"time_format": "s"},
                {"delimiter": ";"}, {"multiline": True}]
)  # fmt: skip
def test_columns_that_cannot_serve(parse: Parse, options: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        parse(b"en A 1 0\n", "wikipedia-pageviews", name="p-20200101-000000", **options)


def test_the_time_zone_of_the_options_is_not_that_of_the_name(parse: Parse) -> None:
    rows = parse(b"en A 1 0\n", "wikipedia-pageviews", name="p-20200101-000000", timezone="Asia/Tokyo")
    assert rows.tuples == [(us(2020, 1, 1, 0, 30), b"en A")]


def test_bounds_cut_an_hour_and_rows_still_add_up() -> None:
    whole = read(HOURLY, "wikipedia-pageviews").tuples
    since, until = us(2024, 8, 3, 6, 10), us(2024, 8, 3, 6, 20)
    rows = read(HOURLY, "wikipedia-pageviews", since="2024-08-03T06:10:00Z", until="2024-08-03T06:20:00Z")
    assert rows.tuples == [pair for pair in whole if since <= pair[0] < until]
    assert rows.filtered.keys() == {"after --until"}
    assert read(HOURLY, "wikipedia-pageviews", since="2024-08-03T07:00Z").filtered == {"before --since": 1000}


FILES = {
    "wikipedia-pageviews": ("pageviews-20210101-000000", b"en A 7 0\nde B 1 0\nfr C 40 0\n"),
    LANGUAGE: ("pageviews-20210101-user", b"en.wikipedia A 1 desktop 9 A3C4X2\nde.wikipedia B 2 desktop 8 B1C7\n"),
    "wikipedia-clickstream": ("clickstream-enwiki-2021-01.tsv", b"p\tA\tlink\t30\nq\tB\tlink\t1\n"),
}


@pytest.mark.parametrize("counts", ["expand", "weight"])
@pytest.mark.parametrize("spread", ["even", "draw", "none"])
@pytest.mark.parametrize("reader", FILES)
def test_bounds_take_the_tuples_between_them(parse: Parse, reader: str, spread: str, counts: str) -> None:
    name, content = FILES[reader]
    spread = "hour" if (reader, spread) == ("wikipedia-pageviews", "even") else spread
    options = {"counts": counts, "spread": spread}
    whole = parse(content, reader, name=name, reader_options=options)
    assert whole.tuples
    weights = whole.weight or [1.0] * len(whole.tuples)
    times = sorted({time for time, _ in whole.tuples})
    bounds = [times[0], times[len(times) // 3], times[-1] // 2 + times[0] // 2, times[-1], times[-1] + 1]
    for since in bounds:
        for until in bounds:
            rows = parse(content, reader, name=name, reader_options=options,
                         since=np.datetime_as_string(np.datetime64(since, "us"), timezone="UTC"),
                         until=np.datetime_as_string(np.datetime64(until, "us"), timezone="UTC"))  # fmt: skip
            expected = [each for each in zip(whole.tuples, weights, strict=True) if since <= each[0][0] < until]
            assert list(zip(rows.tuples, rows.weight or [1.0] * len(rows.tuples), strict=True)) == expected


def test_a_preview_shows_tuples_as_they_will_be() -> None:
    seen = preview(make_options(reader="wikipedia-pageviews", inputs=(str(HOURLY),), output="unused"))
    assert [(row.timestamp, (row.key or "").encode()) for row in seen.tuples] == read(
        HOURLY, "wikipedia-pageviews"
    ).tuples[:10]
    assert (seen.time, seen.key) == ("hour", "page")


# On Spark


@pytest.mark.spark
def test_traces_of_counts(make: Callable[..., Any], tmp_path: Path) -> None:
    expected = read(HOURLY, "wikipedia-pageviews").tuples
    result = make("wikipedia-pageviews", HOURLY)
    assert tuples_of(result.trace) == [
        (time, (key or b"").decode()) for time, key in sorted(expected, key=lambda pair: pair[0])
    ]
    manifest = result.manifest
    assert (manifest.rows_read, manifest.rows_kept, manifest.tuples, manifest.in_order) == (1000, 1000, 3047, False)
    path = tmp_path / DAILY.removesuffix(".bz2")
    path.write_bytes(b"\n".join(COMPLETE))
    options = {"counts": "weight", "spread": "none"}
    made = make(LANGUAGE, path, output="b.trace", reader_options=options, max_rejects="60%")
    weights = pq.read_table(made.trace / "tuples").column("weight").to_pylist()
    assert list(zip(tuples_of(made.trace), weights, strict=True)) == [
        ((FIRST, "aa.wikibooks"), 2.0), ((FIRST, "en.wikipedia"), 1.0), ((FIRST + HOUR, "en.wikipedia"), 1.0),
        ((FIRST + 2 * HOUR, "en.wikipedia"), 1.0), ((FIRST + 3 * HOUR, "vi.wikiquote"), 1.0),
        ((FIRST + 4 * HOUR, "vi.wikiquote"), 1.0), ((FIRST + 20 * HOUR, "ab.wikipedia"), 11.0),
        ((FIRST + 23 * HOUR, "aa.wikibooks"), 3.0),
    ]  # fmt: skip
    assert (made.manifest.rows_read, made.manifest.rows_kept, made.manifest.rows_rejected) == (9, 4, 5)


# Anything at all

tokens = st.sampled_from([b"en", b"en.wikipedia", b" ", b" ", b" ", b"\t", b"\t", b"\n", b"\n", b"-", b"1", b"12", b"0",
    b"null", b"desktop", b"mobile-app", b"A1", b"A1B2", b"X", b"\r", b"\xff", b'"', b".mw", b"n", b"%25"])  # fmt: skip
good = st.sampled_from([b"en.wikipedia a 1 desktop 3 A1B2\n", b"en a 2 0\n", b"a\tb\tlink\t3\n", COMPLETE[4] + b"\n",
    COMPLETE[6] + b"\n", COMPLETE[9] + b"\n", b"en.wikipedia a desktop 1 A1\n"])  # fmt: skip


@QUIET
@given(
    content=st.one_of(st.binary(max_size=200), st.lists(st.one_of(tokens, good), max_size=40).map(b"".join)),
    reader=st.sampled_from(["wikipedia-pageviews", LANGUAGE, "wikipedia-clickstream"]),
    counts=st.sampled_from(["expand", "weight"]),
    spread=st.sampled_from(["draw", "none"]),
    name=st.sampled_from(["x-20210101-000000", "x-20210101", "x-2021-01"]),
)
def test_any_bytes_add_up(parse: Parse, content: bytes, reader: str, counts: str, spread: str, name: str) -> None:
    options: dict[str, Any] = {"counts": counts, "spread": spread}
    if content.count(b"1") > 30 or re.search(rb"\d{5}", content):
        return
    try:
        rows = parse(content, reader, name=name, reader_options=options)
    except (DataError, UsageError):
        return
    if reader != LANGUAGE and (b"\n" in content or b"\r" not in content):
        assert rows.rows == content.count(b"\n") + (not content.endswith(b"\n"))
    assert len(rows.weight) == (len(rows.tuples) if counts == "weight" else 0)
