"""Clickstreams of Wikipedia, whose times are drawn, and the requests of WikiBench."""

import datetime as dt
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from streamgroup.base.errors import DataError, UsageError
from streamgroup.ingest.parsing import lines

Parse = Callable[..., Any]

DAY = 24 * 3_600_000_000


def us(*moment: int) -> int:
    return int(dt.datetime(*moment, tzinfo=dt.UTC).timestamp()) * 1_000_000  # type: ignore[arg-type]


def counted(rows: Any) -> dict[bytes | None, int]:
    return dict(Counter(key for _, key in rows.tuples))


OLD = (
    b"prev_id\tcurr_id\tn\tprev_title\tcurr_title\ttype\n\t3632887\t121\tother-google\t!!\tother\n"
    b'2061699\t2556962\t19\tLouden_Up_Now\t!!!_(album)\tlink\n\t147396\t2\tother-empty\t"A\tother\n'
)
NEW = b"other-empty\tMain_Page\texternal\t1215\nThe_Jew\tTalmud\tlink\t18\nMain_Page\tTalmud\tlink\t10"


def test_the_clickstream_of_2015(parse: Parse) -> None:
    rows = parse(OLD, "wikipedia-clickstream", name="2015_02_en_clickstream.tsv")
    assert counted(rows) == {b"!!": 121, b"!!!_(album)": 19, b'"A': 2}
    assert (rows.filtered, rows.rejects) == ({"header": 1}, [])
    start = us(2015, 2, 1)
    assert all(start <= time < start + 28 * DAY for time, _ in rows.tuples)
    for key in ("prev", "prev_title", "4"):
        rows = parse(OLD, "wikipedia-clickstream", key=key, reader_options={"month": "2015-02", "counts": "weight"})
        assert [key for _, key in rows.tuples] == [b"other-google", b"Louden_Up_Now", b"other-empty"]
        assert rows.weight == [121.0, 19.0, 2.0]
    january = b"\t12\t7\tother-bing\tX\n"
    assert counted(parse(january, "wikipedia-clickstream", name="2015_01_clickstream.tsv")) == {b"X": 7}


def test_the_clickstream_since_then(parse: Parse) -> None:
    rows = parse(NEW, "wikipedia-clickstream", name="clickstream-enwiki-2018-01.tsv.gz")
    assert counted(rows) == {b"Main_Page": 1215, b"Talmud": 28}
    start = us(2018, 1, 1)
    times = np.array([time - start for time, key in rows.tuples if key == b"Main_Page"])
    # The mean of 1,215 uniform draws is within five standard errors of the middle.
    assert abs(times.mean() / (31 * DAY) - 0.5) < 5 / np.sqrt(12 * 1215)
    assert times.min() >= 0
    assert times.max() < 31 * DAY
    assert len(set(times.tolist())) == 1215


def test_times_that_are_drawn_depend_on_seed_and_row_alone(parse: Parse, monkeypatch: pytest.MonkeyPatch) -> None:
    def of(content: bytes, seed: int = 0) -> list[Any]:
        options = {"month": "2018-01", "seed": seed}
        return sorted(parse(content, "wikipedia-clickstream", reader_options=options).tuples)

    whole = of(NEW)
    assert of(b"\n".join(reversed(NEW.split(b"\n")))) == whole
    assert of(NEW, seed=1) != whole
    monkeypatch.setattr(lines, "BLOCK_BYTES", 30)
    monkeypatch.setattr(lines, "SPLIT_BYTES", 40)
    assert of(NEW) == whole


def test_other_ways_to_spread_a_month(parse: Parse) -> None:
    def times(spread: str) -> list[int]:
        options = {"month": "2018-01", "spread": spread}
        rows = parse(b"A\tB\tlink\t2\n", "wikipedia-clickstream", reader_options=options)
        return [time - us(2018, 1, 1) for time, _ in rows.tuples]

    assert times("none") == [0, 0]
    assert times("even") == [31 * DAY // 4, 31 * DAY * 3 // 4]


def test_rows_that_are_no_clickstream(parse: Parse) -> None:
    content = b"A\tB\tlink\t2\nA\tB\tlink\nA\tB\tlink\tx\nA\tB\tlink\t0\n\nA\t\tlink\t1\n"
    rows = parse(content, "wikipedia-clickstream", name="clickstream-dewiki-2020-12.tsv")
    assert rows.rejects == [(2, "wrong number of fields"), (3, "count is not a whole number")]
    assert rows.filtered == {"blank": 1, "count is 0": 1}
    assert counted(rows) == {b"B": 2, b"": 1}
    with pytest.raises(DataError, match="3 fields in the first line"):
        parse(b"a\tb\tc\n", "wikipedia-clickstream", name="clickstream-dewiki-2020-12.tsv")
    with pytest.raises(UsageError, match="does not tell the month"):
        parse(b"A\tB\tlink\t2\n", "wikipedia-clickstream", name="dummy-data.tsv")


# WikiBench


def test_wikibench_of_2007_and_2010(parse: Parse) -> None:
    old = (
        b"929840853 1190146243.326 http://upload.wikimedia.org/a/200px-J.jpg -\n"
        b"929840930 1190146243.320 http://meta.wikimedia.org/w/index.php?title=M&action=raw -\n"
        b"929840931 1190146243 http://en.wikipedia.org/wiki/A save\n929840932 1190146244.1 cut\n"
    )
    rows = parse(old, "wikibench", name="wiki.1190146243")
    assert rows.tuples == [
        (1190146243_326000, b"http://upload.wikimedia.org/a/200px-J.jpg"),
        (1190146243_320000, b"http://meta.wikimedia.org/w/index.php?title=M&action=raw"),
        (1190146243_000000, b"http://en.wikipedia.org/wiki/A"),
    ]
    assert rows.rejects == [(4, "wrong number of fields")]
    new = b"154132716 2010-05-27T09:31:55.63 http://en.m.wikipedia.org/wiki/Judge_Me_Tender -\n"
    rows = parse(new, "wikibench", timezone="UTC")
    assert rows.tuples == [(us(2010, 5, 27, 9, 31, 55) + 630_000, b"http://en.m.wikipedia.org/wiki/Judge_Me_Tender")]
