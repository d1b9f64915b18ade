"""Page views by project, and by page with letters of hours or days, of Wikimedia."""

from collections import Counter

import pytest

from streamgroup.base.errors import DataError, UsageError
from streamgroup.ingest.parsing import lines
from tests.ingest.readers.wikipedia_rows import COMPLETE, DAILY, FIRST, HOUR, LANGUAGE, Parse, counted, us

PROJECTS = b"aa - 3 0\naa.m - 2 0\nab - 1 0\nzu.mw - 9 0\n"


def test_projectviews(parse: Parse) -> None:
    rows = parse(PROJECTS, LANGUAGE, name="projectviews-20210101-000000")
    assert counted(rows) == {b"aa": 3, b"aa.m": 2, b"ab": 1}
    assert rows.filtered == {"total of a project": 1}
    assert rows.tuples[0] == (us(2021, 1, 1, 0, 10), b"aa")
    assert rows.inferred == ("rows are counts of an hour",)
    assert counted(parse(PROJECTS, LANGUAGE, name="projectviews-20210101-000000", key="language")) == {
        b"aa": 5,
        b"ab": 1,
    }


def test_page_views_with_hours(parse: Parse) -> None:
    rows = parse(b"\n".join(COMPLETE), LANGUAGE, name=DAILY)
    assert rows.rejects == [
        (3, "record goes over several lines"),
        (5, "record goes over several lines"),
        (11, "record goes over several lines"),
        (13, "page id is missing"),
        (15, "wrong number of fields"),
    ]
    assert counted(rows) == {b"aa.wikibooks": 5, b"ab.wikipedia": 11, b"en.wikipedia": 3, b"vi.wikiquote": 2}
    assert rows.rows == 9
    assert [time - FIRST for time, key in rows.tuples if key == b"aa.wikibooks"] == [
        HOUR // 4, HOUR * 3 // 4, 23 * HOUR + HOUR // 6, 23 * HOUR + HOUR // 2, 23 * HOUR + HOUR * 5 // 6
    ]  # fmt: skip
    assert rows.inferred == ("rows have a page id", "letters are hours")


def test_rows_without_a_page_id(parse: Parse) -> None:
    rows = parse(b"\n".join(COMPLETE), LANGUAGE, name=DAILY, reader_options={"without_page_id": True})
    assert counted(rows)[b"en.wikipedia"] == 4
    assert [line for line, _ in rows.rejects] == [3, 5, 11, 15]
    old = b"aa.wikibooks File:A.svg desktop 3 A1W1X1\naa.wikibooks b\nc desktop 1 K1\n"
    rows = parse(old, LANGUAGE, reader_options={"day": "2011-11-30", "counts": "weight"}, key="device")
    assert (rows.tuples, rows.weight) == (
        [(us(2011, 11, 30, hour), b"desktop") for hour in (0, 22, 23)],
        [1.0, 1.0, 1.0],
    )
    assert rows.rejects == [(2, "record goes over several lines")]
    assert rows.inferred == ("rows lack a page id", "letters are hours")


def test_page_views_of_a_month_have_letters_of_days(parse: Parse) -> None:
    content = rb"aa.wikibooks Main_Page null desktop 20 A8Z8\3_1" + b"\n"
    rows = parse(content, LANGUAGE, name="pageviews-202101-automated.bz2", reader_options={"spread": "none"})
    assert Counter(time for time, _ in rows.tuples) == {
        us(2021, 1, 1): 8, us(2021, 1, 26): 8, us(2021, 1, 28): 3, us(2021, 1, 31): 1
    }  # fmt: skip
    assert rows.inferred[-1] == "letters are days"
    short = parse(content, LANGUAGE, reader_options={"month": "2021-02"})
    assert short.rejects == [(1, "not counts by day")]


@pytest.mark.parametrize("key", ["page", "title", "language", "device"])
def test_other_keys_of_page_views(parse: Parse, key: str) -> None:
    rows = parse(COMPLETE[1] + b"\n", LANGUAGE, name=DAILY, key=key, value="total")
    expected = {"page": b"ab.wikipedia -", "title": b"-", "language": b"ab", "device": b"mobile-web"}
    assert counted(rows) == {expected[key]: 11}
    assert rows.value == [11.0] * 11


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (b"es.charel 1234 abcd desktop 1 T1", "page id is neither a number nor null"),
        (b"e%s.x 1234 1 desktop 1 T1", "not a domain"),
        (b"foo 3597889 desktop 1 W1", "not a domain"),
        (b"en.wikipedia a b 1 desktop 1 T1", "wrong number of fields"),
        (b"en.wikipedia a 1 fridge 1 T1", "not a device"),
        (b"en.wikipedia a 1 desktop x T1", "count is not a whole number"),
        (b"en.wikipedia a 1 desktop 1000000001 A1000000000B1", "count is too large"),
        # The sum of these is 5 + 2^64.
        (
            b"en.wikipedia a 1 desktop 5 %sS446744073709551639"
            % b"".join(b"%c999999999999999999" % letter for letter in b"ABCDEFGHIJKLMNOPQR"),
            "not counts by hour",
        ),
        (b"en.wikipedia a 1 desktop 1 P1Q1", "total is not the sum of its counts"),
        (b"en.wikipedia a 1 desktop 1 Y1", "not counts by hour"),
        (b"en.wikipedia a 1 desktop 2 B1A1", "not counts by hour"),
        (b"en.wikipedia a 1 desktop 2 A1A1", "not counts by hour"),
        (b"en.wikipedia a 1 desktop 1 A", "not counts by hour"),
        (b"en.wikipedia a 1 desktop 1 1A1", "not counts by hour"),
        (b"en.wikipedia a 1 desktop 1 ", "not counts by hour"),
        (b"en.wikipedia a 1 desktop 1 A-1", "not counts by hour"),
    ],
)
def test_rows_of_hours_that_are_wrong(parse: Parse, row: bytes, reason: str) -> None:
    content = b"en.wikipedia a 1 desktop 3 A0B3\n" + row + b"\nen.wikipedia b 1 desktop 0 A0\n"
    rows = parse(content, LANGUAGE, name=DAILY)
    assert rows.rejects == [(2, reason)]
    assert rows.filtered == {"count is 0": 1}
    assert counted(rows) == {b"en.wikipedia": 3}


def test_broken_records_at_the_borders_of_blocks(parse: Parse, monkeypatch: pytest.MonkeyPatch) -> None:
    content = b"\n".join(COMPLETE * 7) + b"\n"
    whole = parse(content, LANGUAGE, name=DAILY)
    for size in (1, 7, 64, 100):
        monkeypatch.setattr(lines, "BLOCK_BYTES", size)
        assert parse(content, LANGUAGE, name=DAILY) == whole
    for limit in range(12):
        some = parse(content, LANGUAGE, name=DAILY, limit=limit) if limit else None
        assert some is None or (some.rows == limit and some.tuples == whole.tuples[: len(some.tuples)])


def test_a_period_of_another_kind(parse: Parse) -> None:
    with pytest.raises(UsageError, match="of no hour"):
        parse(b"\n".join(COMPLETE), LANGUAGE, name=DAILY, reader_options={"hour": "2021-01-01T00"})
    with pytest.raises(UsageError, match="--day and --month"):
        parse(b"\n".join(COMPLETE), LANGUAGE, reader_options={"day": "2021-01-01", "month": "2021-01"})
    with pytest.raises(UsageError, match="day or month"):
        parse(b"\n".join(COMPLETE), LANGUAGE, name="pageview_complete-2012-monthly-automated")
    with pytest.raises(DataError, match="no row of page views"):
        parse(b"a,b\n", LANGUAGE, name=DAILY)
