"""The base of readers of delimited fields, against the csv module."""

import csv
import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streamgroup.base.errors import DataError, UsageError
from streamgroup.ingest.parsing import fields, lines

Parse = Callable[..., Any]
QUIET = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


def keys(rows: Any) -> list[bytes | None]:
    return [key for _, key in rows.tuples]


def test_keys_stay_strings(parse: Parse) -> None:
    wanted = ["007", "7", "0007", "1e3", "1000", "18446744073709551615", "0x1F", " a ", "a\x00b", "é"]
    rows = parse(b"time,key\n" + "".join(f"{i},{key}\n" for i, key in enumerate(wanted)).encode(), "csv")
    assert keys(rows) == [key.encode() for key in wanted]


def test_columns_by_name_whatever_their_order(parse: Parse) -> None:
    assert parse(b"key,ts\na,1\n", "csv", time="ts").tuples == [(1_000_000, b"a")]
    assert parse(b"key,ts\na,1\n", "csv", time="2", key="1").tuples == [(1_000_000, b"a")]
    assert parse(b"a,1\n", "csv", time="2", key="1", header=False).tuples == [(1_000_000, b"a")]


def test_a_missing_column_lists_those_there_are(parse: Parse) -> None:
    with pytest.raises(UsageError, match=r"no column 'when'.*1 key, 2 ts"):
        parse(b"key,ts\na,1\n", "csv", time="when")
    with pytest.raises(UsageError, match="which column is the key") as caught:
        parse(b"a;ts\n", "csv", time="1")
    assert caught.value.hint == "name it with --key"
    with pytest.raises(UsageError, match="two columns"):
        parse(b"ts,ts,key\n", "csv", time="ts")


def test_a_header_taken_for_a_comment_is_told_of(parse: Parse) -> None:
    options = {"reader_options": {"comment": "#"}}
    with pytest.raises(
        UsageError, match=r"column is the time\? Found: 1, 2 a .the first line was left out: --comment #"
    ):
        parse(b"#time,key\n1,a\n", "csv", **options)
    with pytest.raises(UsageError) as caught:
        parse(b"when,key\n# 1,a\n", "csv", **options)
    assert "left out" not in caught.value.message


def test_malformed_rows_are_rejected_with_line_and_reason(parse: Parse) -> None:
    content = b'time,key\n1,a\n2\n3,c,d\nx,e\n5,"open\n\n6,"x"y\n7,g\n'
    rows = parse(content, "csv")
    assert keys(rows) == [b"a", b"g"]
    assert sorted(rows.rejects) == [
        (3, "wrong number of fields"),
        (4, "wrong number of fields"),
        (5, "time cannot be read"),
        (6, "quote is never closed"),
        (8, "text after a closing quote"),
    ]
    assert rows.filtered == {"header": 1, "blank": 1}
    assert rows.rows == 9


def test_cost_must_be_a_service_time(parse: Parse) -> None:
    rows = parse(b"time,key,c\n1,a,1.5\n2,b,-1\n3,c,nan\n4,d,inf\n5,e,\n6,f,1e39\n7,g,0\n", "csv", cost="c")
    assert (keys(rows), rows.cost) == ([b"a", b"g"], [1.5, 0.0])
    assert {reason for _, reason in rows.rejects} == {"cost is negative or not a number"}


def test_header_with_a_number_sign_and_blanks_after_commas(parse: Parse) -> None:
    rows = parse(b'# time, object, size\n0, 7, 1\n1, "a, b", 2\n2,  c, 3\n', "csv", key="object", cost="size")
    assert keys(rows) == [b"7", b"a, b", b" c"]
    assert "a blank follows each delimiter" in rows.inferred


def test_blanks_are_kept_where_the_header_has_none(parse: Parse) -> None:
    assert keys(parse(b"time,key\n0, 7\n", "csv")) == [b" 7"]


def test_quotes(parse: Parse) -> None:
    content = b'time,key\n1,"a,b"\n2,"say ""hi"""\n3,"6"" x"\n4,6" x\n5,""\n"6","k"\n7,""""\n8,"a" \n'
    wanted = [b"a,b", b'say "hi"', b'6" x', b'6" x', b"", b"k", b'"', b"a"]
    assert keys(parse(content, "csv")) == wanted


def test_quoted_records_over_several_lines(parse: Parse) -> None:
    content = b'time,key\n1,"a\nb ""c""\n\nd"\n2,e\n3,"f\r\ng"\n4,"never closed\n5,h\n'
    rows = parse(content, "csv", multiline=True)
    assert keys(rows) == [b'a\nb "c"\n\nd', b"e", b"f\r\ng", b"h"]
    assert rows.rejects == [(9, "quote is never closed")]
    assert rows.rows == 6  # header, four good, one rejected
    assert (2, "quote is never closed") in parse(content, "csv").rejects


def test_carriage_returns_and_other_separators_end_no_line(parse: Parse) -> None:
    content = "time,key\r\n1,a\rb\r\n2,c\u2028d\r\n3,e\u0085\x0b\x0c\r\n4,last".encode()
    assert keys(parse(content, "csv")) == [b"a\rb", "c\u2028d".encode(), "e\u0085\x0b\x0c".encode(), b"last"]


def test_a_byte_order_mark(parse: Parse) -> None:
    assert parse(b"\xef\xbb\xbftime,key\n1,a\n", "csv").tuples == [(1_000_000, b"a")]
    assert parse(b'\xef\xbb\xbf"time",key\n1,a\n', "csv").tuples == [(1_000_000, b"a")]


def test_encodings(parse: Parse) -> None:
    assert keys(parse(b"time,key\n1,caf\xe9\n", "csv", encoding="latin-1")) == ["café".encode()]
    assert keys(parse(b"time,key\n1,\x93x\x94\x81\n", "csv", encoding="cp1252")) == ["“x”\x81".encode()]
    assert keys(parse(b"time,key\n1,caf\xe9\n", "csv")) == [b"caf\xe9"]
    with pytest.raises(UsageError, match="encoding"):
        parse(b"", "csv", encoding="ebcdic")


@pytest.mark.parametrize("delimiter", ["\\t", "\t", ";", "|", " "])
def test_delimiters(parse: Parse, delimiter: str) -> None:
    byte = "\t" if delimiter == "\\t" else delimiter
    content = f"time{byte}key\n1{byte}a,b\n{byte}x\n".encode()
    rows = parse(content, "csv", delimiter=delimiter)
    assert (keys(rows), rows.rejects) == ([b"a,b"], [(3, "time cannot be read")])


def test_a_megabyte_key(parse: Parse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "BLOCK_BYTES", 1 << 16)
    long = b"k" * (1 << 20)
    rows = parse(b"time,key\n1,a\n2," + long + b'\n3,"' + long + b'"\n4,b\n', "csv")
    assert keys(rows) == [b"a", long, long, b"b"]


def test_files_without_rows(parse: Parse) -> None:
    for content in (b"", b"\n\n \n", b"\xef\xbb\xbf"):
        with pytest.raises(DataError, match="no rows"):
            parse(content, "csv")
    for content in (b'"', b'time,"key\n1,a\n'):
        with pytest.raises(DataError, match="line 1, the header: quote is never closed"):
            parse(content, "csv")
    assert parse(b"time,key\n", "csv").filtered == {"header": 1}
    assert parse(b"time,key", "csv").filtered == {"header": 1}


def test_comments_and_ragged_rows(parse: Parse) -> None:
    content = b"#v1\ntime,key\n1,a,extra\n#x\n2\n3,b\n#end\n"
    rows = parse(content, "csv", reader_options={"comment": "#", "ragged": True})
    assert (keys(rows), rows.rejects) == ([b"a", b"b"], [(5, "wrong number of fields")])
    assert rows.filtered == {"header": 1, "comment": 3}
    assert keys(parse(b"time,key\n1,#a\n#2,b\n", "csv", max_rejects="100%")) == [b"#a"]
    # Rows with more fields than the header: by number.
    wide = parse(b"time,a\n1,b,c,d\n2,b,c\n", "csv", key="4", reader_options={"ragged": True})
    assert (keys(wide), wide.rejects) == ([b"d"], [(3, "wrong number of fields")])
    for column, ragged in (("4", False), ("10001", True)):
        with pytest.raises(UsageError, match=f"no column '{column}'"):
            parse(b"time,a\n1,b,c,d\n", "csv", key=column, reader_options={"ragged": ragged})
    with pytest.raises(UsageError, match=r"(?s)coment.*"):
        parse(content, "csv", reader_options={"coment": "#"})


def test_text_by_tabs_and_by_blanks(parse: Parse) -> None:
    assert parse(b"1\ta b\n2\t\n\t\n", "text").tuples == [(1_000_000, b"a b"), (2_000_000, b"")]
    rows = parse(b"1 2 1082040961\n  3   4\t1082155839  \r\n   \n5 6\n", "text", time="3", key="1")
    assert rows.tuples == [(1082040961_000000, b"1"), (1082155839_000000, b"3")]
    assert (rows.rejects, rows.filtered) == ([(4, "wrong number of fields")], {"blank": 1})


def test_text_knows_no_quotes(parse: Parse) -> None:
    assert keys(parse(b'1\t"a\n2\t"b"\n3\tc""\n', "text")) == [b'"a', b'"b"', b'c""']


def test_an_empty_first_field_is_a_field(parse: Parse) -> None:
    assert parse(b"a\tb\t5\n\tc\t6\n", "text", time="3", key="1").tuples == [(5_000_000, b"a"), (6_000_000, b"")]


def test_slb_goes_on_after_odd_lines(parse: Parse) -> None:
    rows = parse(b"1\ta\n\n2\n3\tb\n", "slb")
    assert rows.tuples == [(1_000_000, b"a"), (3_000_000, b"b")]
    assert (rows.rejects, rows.filtered) == ([(3, "wrong number of fields")], {"blank": 1})


def test_words(parse: Parse, tmp_path: Any) -> None:
    content = b"1\tthe cat  the\t hat\n2\tthe\n3\t  \n4\tand cat\n"
    rows = parse(content, "slb", split_words=True)
    assert keys(rows) == [b"the", b"cat", b"the", b"hat", b"the", b"and", b"cat"]
    assert rows.filtered == {"no words": 1}
    (tmp_path / "stop").write_bytes(b"the\nand\n")
    rows = parse(content, "slb", split_words=True, stopwords=tmp_path / "stop")
    assert keys(rows) == [b"cat", b"hat", b"cat"]
    assert rows.filtered == {"no words": 1, "stopwords only": 1}
    assert keys(parse(b"1 a b c\n2 d\n", "text", split_words=True)) == [b"a", b"b", b"c", b"d"]


def test_wikibench_of_both_kinds(parse: Parse) -> None:
    old = (
        b"929840853 1190146243.326 http://upload.wikimedia.org/a.jpg -\n"
        b"929840930 1190146243.320 http://meta.wikimedia.org/w/index.php?title=x&y=z -\n"
    )
    assert parse(old, "wikibench").tuples == [
        (1190146243_326000, b"http://upload.wikimedia.org/a.jpg"),
        (1190146243_320000, b"http://meta.wikimedia.org/w/index.php?title=x&y=z"),
    ]
    new = b"154132716 2010-05-27T09:31:55.63 http://en.m.wikipedia.org/wiki/Judge_Me_Tender -\n"
    assert parse(new, "wikibench").tuples == [(1274952715_630000, b"http://en.m.wikipedia.org/wiki/Judge_Me_Tender")]


FIELD = st.text(st.sampled_from('ab",\n\r é\t'), max_size=6)


@QUIET
@given(table=st.lists(st.tuples(FIELD, FIELD), min_size=1, max_size=12), block=st.integers(1, 200))
def test_what_a_csv_writer_writes_comes_back(parse: Parse, table: list[tuple[str, str]], block: int) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL)
    writer.writerow(["time", "key", "other"])
    for number, pair in enumerate(table):
        writer.writerow([number, *pair])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "BLOCK_BYTES", block)
        rows = parse(text.getvalue().encode(), "csv", multiline=True)
    assert keys(rows) == [key.encode() for key, _ in table]


ODD = st.text(st.sampled_from('a",1 #'), max_size=8)


@QUIET
@given(body=st.lists(ODD, max_size=10), split=st.integers(1, 40), block=st.integers(1, 40))
def test_splits_and_blocks_change_nothing(parse: Parse, body: list[str], split: int, block: int) -> None:
    content = ("time,key\n" + "".join(f"{number},{line}\n" for number, line in enumerate(body))).encode()
    whole = parse(content, "csv")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "BLOCK_BYTES", block)
        patch.setattr(lines, "SPLIT_BYTES", split)
        pieces = parse(content, "csv")
    assert pieces == whole
    assert whole.rows == len(body) + 1


@pytest.mark.parametrize("content", [b"", b"a", b"\n", b"a\n\nb", b"a\r\n\r\nb\r", b"\r\n"])
def test_lines(content: bytes) -> None:
    found = fields.find_lines(np.frombuffer(content, np.uint8))
    texts = [content[start:end] for start, end in zip(found.start, found.end, strict=True)]
    expected = content.split(b"\n")
    if expected[-1] == b"":
        expected.pop()
    stripped = [line.removesuffix(b"\r") for line in expected]
    assert texts == stripped


@pytest.mark.parametrize("limit", [1, 2, 3, 5, 6, 7, 100])
def test_limit_counts_rows_as_they_are_read(parse: Parse, limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "SPLIT_BYTES", 12)
    content = b"time,key\n1,a\n\n3,c\nx,d\n5,e\n"
    rows = parse(content, "csv", limit=limit)
    assert rows.rows == min(limit, 6)
    assert rows.tuples == [
        (t * 1_000_000, key) for n, t, key in ((2, 1, b"a"), (4, 3, b"c"), (6, 5, b"e")) if n <= limit
    ]
