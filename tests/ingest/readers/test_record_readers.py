"""Readers whose records are blocks of lines: amazon-reviews and memetracker."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streamgroup.base.errors import DataError, StreamgroupError, UsageError
from streamgroup.ingest.make_trace import IngestResult
from streamgroup.ingest.parsing import fields, lines
from tests.ingest.naive_ingest import tuples_of

Parse = Callable[..., Any]
QUIET = settings(
    deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)

REVIEWS = b"""product/productId: B000000001
review/userId: A1
review/profileName: Ann "Q" \xe9
review/helpfulness: 7/7
review/score: 3.0
review/time: 1182729600
review/summary: Better than ever
review/text: Synopsis: the daily trek.<br /><br />note: this
goes on here
and: here

product/productId: B000000002
review/userId: A2
review/profileName: two
lines
review/helpfulness: 0/0
review/score: 5.0
review/time: -1
review/summary: none
review/text: none

product/productId: B000000001
review/userId: A2
review/score: 1.0
review/time: 1182729599
review/summary:
review/text: """

PAGES = b"""P\thttp://one.example/a
T\t2008-09-09 22:35:24
Q\tthat's not change
Q\tyou can't
L\thttp://two.example/b
L\thttp://two.example/c

P\thttp://one.example/d
T\t2008-09-09 22:35:23

P\thttp://one.example/e
T\t2008-09-10 00:00:00
Q\t100% "pure" change
"""


def keys(rows: Any) -> list[bytes | None]:
    return [key for _, key in rows.tuples]


def test_reviews_are_blocks(parse: Parse) -> None:
    rows = parse(REVIEWS, "amazon-reviews")
    assert rows.tuples == [(1182729600_000000, b"B000000001"), (1182729599_000000, b"B000000001")]
    assert rows.rejects == [(12, "time is -1 (none)")]
    assert (rows.rows, rows.filtered) == (3, {})


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("review/userId", [b"A1", b"A2"]),
        ("userId", [b"A1", b"A2"]),
        ("profileName", ['Ann "Q" é'.encode(), None]),
        ("helpfulness", [b"7/7", None]),
        ("5", [b"3.0", b"1.0"]),
        ("summary", [b"Better than ever", b""]),
        ("text", [b"Synopsis: the daily trek.<br /><br />note: this\ngoes on here\nand: here", b""]),
    ],
)
def test_any_field_of_a_review_is_a_key(parse: Parse, key: str, expected: list[bytes | None]) -> None:
    assert keys(parse(REVIEWS, "amazon-reviews", key=key, encoding="latin-1", null_keys="keep")) == expected


def test_a_field_goes_on_until_the_next(parse: Parse) -> None:
    content = REVIEWS.replace(b"time: -1", b"time: 5")
    assert keys(parse(content, "amazon-reviews", key="profileName"))[1] == b"two\nlines"


def test_words_of_reviews(parse: Parse) -> None:
    rows = parse(REVIEWS.replace(b"\n", b"\r\n"), "amazon-reviews", reader_options={"words": "summary"})
    assert rows.tuples == [(1182729600_000000, word) for word in (b"better", b"than", b"ever")]
    assert rows.filtered == {"no keys": 1}
    words = keys(parse(REVIEWS, "amazon-reviews", reader_options={"words": "text"}))
    assert b" ".join(words) == b"synopsis the daily trek note this goes on here and here"
    marked = REVIEWS.replace(b"note: this", b"I &#39;d &quot;say&quot; it&#39;s <i>3 < 4</i> &amp; AT&T;")
    words = keys(parse(marked, "amazon-reviews", reader_options={"words": "text"}))
    assert b" ".join(words[4:12]) == b"i d say it's 3 4 at t"


def test_the_score_as_value_and_weight(parse: Parse) -> None:
    assert parse(REVIEWS, "amazon-reviews", value="score", weight="review/score").value == [3.0, 1.0]
    rows = parse(REVIEWS, "amazon-reviews", value="helpfulness")
    assert {reason for _, reason in rows.rejects} == {"time is -1 (none)", "value is not a number"}


def test_reviews_that_cannot_be_used(parse: Parse) -> None:
    content = (
        b"junk\nproduct/productId: a\n\n"
        b"product/productId: b\nreview/time: 1\n \t\n\n"
        b"product/productId: c\nreview/time: 1\nproduct/productId: d\nreview/time: 2\n\n"
        b"product/productId: e\n\n"
        b"product/productId:f\nreview/time:3\n"
    )
    rows = parse(content, "amazon-reviews")
    assert rows.tuples == [(1_000_000, b"b"), (3_000_000, b"f")]
    assert sorted(rows.rejects) == [
        (1, "record does not begin with a field"),
        (8, "a field comes twice"),
        (13, "time cannot be read"),
    ]


def test_wrong_options_and_files_of_reviews(parse: Parse) -> None:
    with pytest.raises(UsageError, match=r"no column 'asin'.*1 productId, 2 userId"):
        parse(REVIEWS, "amazon-reviews", key="asin")
    with pytest.raises(UsageError, match="only one of them"):
        parse(REVIEWS, "amazon-reviews", key="userId", reader_options={"words": "text"})
    with pytest.raises(DataError, match="begins with one of product/productId") as caught:
        parse(b'{"asin": "B1"}\n', "amazon-reviews")
    assert "jsonl" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("words", [b"that's", b"not", b"change", b"you", b"can't", b"100", b"pure", b"change"]),
        ("phrases", [b"that's not change", b"you can't", b'100% "pure" change']),
        ("links", [b"http://two.example/b", b"http://two.example/c"]),
        ("pages", [b"http://one.example/a", b"http://one.example/d", b"http://one.example/e"]),
    ],
)
def test_keys_of_pages(parse: Parse, kind: str, expected: list[bytes]) -> None:
    rows = parse(PAGES, "memetracker", reader_options={"keys": kind})
    assert keys(rows) == expected
    assert rows.rejects == []
    assert rows.rows == 3
    missing = {"words": 1, "phrases": 1, "links": 2, "pages": 0}[kind]
    assert rows.filtered == ({"no keys": missing} if missing else {})


def test_times_and_stopwords_of_pages(parse: Parse, tmp_path: Path) -> None:
    (tmp_path / "stop").write_text("change\nnot\npure\n100\n")
    rows = parse(PAGES, "memetracker", stopwords=tmp_path / "stop")
    assert rows.tuples == [(1220999724_000000, word) for word in (b"that's", b"you", b"can't")]
    assert rows.filtered == {"no keys": 1, "stopwords only": 1}


def test_pages_that_cannot_be_used(parse: Parse) -> None:
    content = (
        PAGES.removesuffix(b"\n") + b"\nP\ta\nQ\tx\nP\tb\nT\t1\nT\t2\n\nP\tc\nT\tsome day\nQ\ty\n"
        b"P\td\nT\t2008-09-09 22:35:24\nX\tz\n\nQ\tw\n\nP\te\r\nT\t2008-09-09 22:35:24\r\nQ\tlast\r\n"
    )
    rows = parse(content, "memetracker", reader_options={"keys": "phrases"})
    assert keys(rows)[-2:] == [b'100% "pure" change', b"last"]
    assert sorted(rows.rejects) == [
        (14, "record has no time, or two"),
        (16, "record has no time, or two"),
        (20, "time cannot be read"),
        (23, "a line is not P, T, Q or L"),
        (27, "record does not begin with P"),
    ]


def test_other_files_of_memetracker(parse: Parse) -> None:
    clusters = b"2\t8\ta phrase\t21\n\t3\t3\ta\t48\n\t\t2008-08-18 14:23:05\t1\tM\thttp://one.example/a\n"
    with pytest.raises(DataError, match="the file of phrase clusters") as caught:
        parse(clusters, "memetracker")
    assert "quotes_YYYY-MM.txt.gz" in (caught.value.hint or "")
    with pytest.raises(DataError, match="no line of it begins with P"):
        parse(b"a,b\n", "memetracker")
    with pytest.raises(UsageError, match="memetracker has no --key"):
        parse(PAGES, "memetracker", key="1")


@pytest.mark.parametrize(("reader", "content"), [("amazon-reviews", REVIEWS), ("memetracker", PAGES)])
def test_a_record_without_end_is_not_collected(
    parse: Parse, reader: str, content: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fields, "MAX_RECORD", 500)
    monkeypatch.setattr(lines, "BLOCK_BYTES", 100)
    endless = content.rstrip() + b"\n\n" + content.split(b"\n\n")[0] + b"\nx" * 5000 + b"\n\n" + content
    rows = parse(endless, reader)
    good = parse(content, reader)
    assert rows.tuples == good.tuples * 2
    reasons = {reason for _, reason in rows.rejects}
    assert any(reason.startswith("record is longer than") for reason in reasons)


@pytest.mark.parametrize(("reader", "content"), [("amazon-reviews", REVIEWS), ("memetracker", PAGES)])
@pytest.mark.parametrize("limit", [1, 2, 3, 4])
def test_limit_counts_records(
    parse: Parse, reader: str, content: bytes, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "BLOCK_BYTES", 90)
    rows, whole = parse(content, reader, limit=limit), parse(content, reader)
    assert rows.rows == min(limit, 3)
    assert rows.tuples == whole.tuples[: len(rows.tuples)]
    assert (rows == whole) is (limit >= 3)


@pytest.mark.parametrize("block", [1, 2, 4, 8, 16, 32])
def test_a_file_that_ends_with_a_block_loses_nothing(parse: Parse, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "BLOCK_BYTES", block)
    pages = b"P\tabc\nT\t2008-09-09 22:35:24\nQ\tx\n"
    assert len(pages) == 32
    assert keys(parse(pages, "memetracker")) == [b"x"]
    table = b'time,key\n1,a\n2,"never is closed\n'
    assert len(table) == 32
    rows = parse(table, "csv", multiline=True)
    assert rows.rejects == [(3, "quote is never closed")]


REVIEW_LINE = st.sampled_from(
    ["product/productId: a", "product/productId: b", "review/time: 1", "review/time: -1", "review/time: x", "", " ",
     "review/text: one", "review/text:", "review/userId: é", "plain", "note: x", "\tx", "review/summary: a\r"]
)  # fmt: skip


def _slowly(content: str, begins: str = "") -> list[tuple[int, list[str]]]:
    """Give the records: the number of the first line, and the lines."""
    found: list[tuple[int, list[str]]] = []
    before = ""
    for number, line in enumerate(content.removesuffix("\n").split("\n"), 1):
        line = line.removesuffix("\r")
        if line.strip(" \t"):
            if not before.strip(" \t") or (begins and line.startswith(begins)):
                found.append((number, []))
            found[-1][1].append(line)
        before = line
    return found


@QUIET
@given(body=st.lists(REVIEW_LINE, max_size=20), block=st.integers(1, 80))
def test_reviews_as_a_slow_reader_reads_them(parse: Parse, body: list[str], block: int) -> None:
    content = "product/productId: a\nreview/time: 0\n\n" + "\n".join(body)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "BLOCK_BYTES", block)
        rows = parse(content.encode(), "amazon-reviews", null_keys="keep", time_format="s")
    expected, rejects = [], []
    for number, record in _slowly(content):
        seen: dict[str, list[str]] = {}
        name = ""
        fault = "" if re.match("(product|review)/[a-zA-Z]+:", record[0]) else "record does not begin with a field"
        for line in record:
            match = re.match("(?:product|review)/([a-zA-Z]+):( ?)", line)
            if match:
                name = match[1]
                fault = fault or ("a field comes twice" if name in seen else "")
                seen[name] = [line[match.end() :]]
            elif name:
                seen[name].append(line)
        time = "\n".join(seen.get("time", [])).strip(" \t")
        if not fault and time == "-1":
            fault = "time is -1 (none)"
        elif not fault and not time.isdecimal():
            fault = "time cannot be read"
        if fault:
            rejects.append((number, fault))
        else:
            key = "\n".join(seen["productId"]).encode() if "productId" in seen else None
            expected.append((int(time) * 1_000_000, key))
    assert (rows.tuples, sorted(rows.rejects)) == (expected, rejects)


PAGE_LINE = st.sampled_from(
    ["P\ta", "P\tb", "T\t2008-09-09 22:35:24", "Q\tx y", "Q\té", "Q\t", "L\tl", "", " ", "Q", "z"]
)


@QUIET
@given(body=st.lists(PAGE_LINE, max_size=20), block=st.integers(1, 40), kind=st.sampled_from(["phrases", "links"]))
def test_pages_as_a_slow_reader_reads_them(parse: Parse, body: list[str], block: int, kind: str) -> None:
    content = "P\tfirst\nT\t2008-09-09 22:35:24\nQ\ta\nL\tb\n" + "\n".join(body)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "BLOCK_BYTES", block)
        rows = parse(content.encode(), "memetracker", reader_options={"keys": kind})
    expected, rejects, empty = [], [], 0
    for number, record in _slowly(content, "P\t"):
        times = sum(line.startswith("T\t") for line in record)
        if not record[0].startswith("P\t"):
            rejects.append((number, "record does not begin with P"))
        elif not all(line[:2] in ("P\t", "T\t", "Q\t", "L\t") for line in record):
            rejects.append((number, "a line is not P, T, Q or L"))
        elif times != 1:
            rejects.append((number, "record has no time, or two"))
        else:
            found = [line[2:].encode() for line in record if line[0] == kind[0].upper().replace("P", "Q")]
            expected += found
            empty += not found
    assert (keys(rows), sorted(rows.rejects)) == (expected, rejects)
    assert rows.filtered == ({"no keys": empty} if empty else {})


@QUIET
@given(
    content=st.one_of(
        st.binary(max_size=200),
        st.lists(st.one_of(REVIEW_LINE, PAGE_LINE, st.text(max_size=8))).map(lambda some: "\n".join(some).encode()),
    ),
    reader=st.sampled_from(["amazon-reviews", "memetracker"]),
    block=st.integers(1, 64),
)
def test_any_bytes_add_up(parse: Parse, content: bytes, reader: str, block: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "BLOCK_BYTES", block)
        try:
            pieces = parse(content, reader)
        except StreamgroupError:
            return
    assert pieces == parse(content, reader)


@pytest.mark.spark
def test_pages_become_a_trace(make: Callable[..., IngestResult], tmp_path: Path) -> None:
    (tmp_path / "quotes_2008-09.txt").write_bytes(PAGES)
    (tmp_path / "quotes_2008-10.txt").write_bytes(PAGES.replace(b"2008-09", b"2008-08"))
    result = make("memetracker", str(tmp_path / "quotes_*.txt"))
    tuples = tuples_of(result.trace)
    assert [key for _, key in tuples[:3]] == ["that's", "not", "change"]
    assert [key for _, key in tuples[:8]] == [key for _, key in tuples[8:]]
    assert result.manifest.rows_filtered == 2
