"""CSV dialects and columns of public files: delimiters of several bytes, escapes, keys and times of several columns."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streamgroup.base.errors import DataError, UsageError
from streamgroup.ingest.make_reader import make_reader
from streamgroup.ingest.options import make_options
from streamgroup.ingest.parsing import fields, lines
from streamgroup.ingest.parsing.column_list_text import column_names
from streamgroup.ingest.parsing.times import iso
from streamgroup.ingest.preview import preview
from tests.ingest.conftest import read

Parse = Callable[..., Any]
CASES = Path(__file__).parents[2] / "data" / "cases"
QUIET = settings(
    deadline=None, max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


def keys(rows: Any) -> list[bytes | None]:
    return [key for _, key in rows.tuples]


def span(rows: Any) -> float:
    stamps = [stamp for stamp, _ in rows.tuples]
    return (max(stamps) - min(stamps)) / 1e6


def test_a_delimiter_of_several_bytes() -> None:
    options = {"header": False, "time": "4", "key": "2", "value": "3"}
    found = read(CASES / "19-movielens" / "ratings.dat", "csv", delimiter="::", **options)
    assert (len(found.tuples), found.rejects) == (80, [])
    other = read(
        CASES / "19-movielens" / "ratings.dat", "csv", header=False, delimiter=":", time="7", key="3", value="5"
    )
    assert (found.tuples, found.value) == (other.tuples, other.value)
    assert (
        read(CASES / "19-movielens" / "ratings.dat", "text", delimiter="::", time="4", key="2").tuples == found.tuples
    )


@QUIET
@given(
    st.lists(st.text("ab:|", max_size=8), min_size=1, max_size=6),
    st.sampled_from(["::", ":|", ":::", "|~|", ":", "ab"]),
)
def test_fields_between_delimiters_are_those_of_split(rows: list[str], delimiter: str) -> None:
    data = np.frombuffer("".join(f"{row}\n" for row in rows).encode(), np.uint8)
    cut = fields.split_fields(data, fields.find_lines(data), delimiter.encode(), quoting=False, blank_after=False)
    for row, text in enumerate(rows):
        places = range(cut.first[row], cut.first[row] + cut.count[row])
        assert [data[cut.start[at] : cut.end[at]].tobytes().decode() for at in places] == text.split(delimiter)


def test_quotes_with_a_delimiter_of_several_bytes(parse: Parse) -> None:
    found = parse(
        b'time||key||v\n1||"a||b"||2\n2||"x""y"||3\n3||c|||4\n', "csv", delimiter="||", value="v", max_rejects="50%"
    )
    assert (keys(found), found.value) == ([b"a||b", b'x"y'], [2.0, 3.0])
    assert parse("time§key\n1§ä\n".encode(), "csv", delimiter="§").tuples == [(1_000_000, "ä".encode())]
    assert parse(b"time\x01key\n1\x01a\n", "csv", delimiter="\\x01").tuples == [(1_000_000, b"a")]


def test_what_spark_escapes() -> None:
    path = CASES / "16-spark-csv" / "spark.csv"
    for multiline in (False, True):
        found = read(path, "csv", multiline=multiline, reader_options={"escape": "\\"})
        assert (len(found.tuples), found.rejects) == (100, [])
        assert set(keys(found)) == {b"plain", b'say "hi"', b'a, "b", c', b'ends with "'}
        # Without it nothing that can be read is lost, and nothing becomes a key that is none.
        strict = read(path, "csv", multiline=multiline, max_rejects="100%")
        assert set(keys(strict)) <= {b"plain"} | {key for key in keys(found) if b'"' not in key}
        assert len(strict.tuples) == sum(key == b"plain" for key in keys(found))
        assert {why for _, why in strict.rejects} <= {
            "text after a closing quote",
            "quote is never closed",
            "wrong number of fields",
        }


@QUIET
@given(st.lists(st.text('ab\\", \n', max_size=6), min_size=1, max_size=6), st.sampled_from("\\~"), st.booleans())
def test_escapes_are_those_of_the_library(parse: Parse, values: list[str], escape: str, small: bool) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n", doublequote=False, escapechar=escape, quoting=csv.QUOTE_ALL)
    writer.writerows([["time", "key"], *([row, value] for row, value in enumerate(values))])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "BLOCK_BYTES", 7 if small else 1 << 20)
        found = parse(text.getvalue().encode(), "csv", multiline=True, reader_options={"escape": escape})
    assert keys(found) == [value.encode() for value in values]


def test_a_line_break_in_a_quoted_header(parse: Parse) -> None:
    content = b'time,"the\nkey, as ""it"" is",n\n1,a,2\n2,"b\nc",3\n'
    found = parse(content, "csv", multiline=True, key='"the\nkey, as ""it"" is"')
    assert (keys(found), found.filtered) == ([b"a", b"b\nc"], {"header": 1})
    with pytest.raises(DataError, match="line 1, the header: quote is never closed") as caught:
        parse(content, "csv", key="2")
    assert "--multiline" in str(caught.value.hint)


@pytest.mark.parametrize(("name", "columns"), [("excel.csv", 2), ("quoted.csv", 3)])
@pytest.mark.parametrize("delimiter", [None, ";"])
def test_a_line_for_excel(name: str, columns: int, delimiter: str | None) -> None:
    found = read(CASES / "18-sep-line" / name, "csv", delimiter=delimiter)
    assert (len(found.tuples), found.rejects, found.filtered) == (30, [], {"header": 2})
    assert set(keys(found)) == {b"k0", b"k1", b"k2"}
    options = make_options(reader="csv", inputs=(str(CASES / "18-sep-line" / name),), output="x")
    seen = preview(options)
    assert (seen.delimiter, seen.header, len(seen.columns)) == (";", 2, columns)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a", [("a", False)]),
        ("a,b", [("a", False), ("b", False)]),
        ('"a,b",c', [("a,b", True), ("c", False)]),
        ('"a ""x"" b"', [('a "x" b', True)]),
        ('a"b', [('a"b', False)]),
        ('"a', [('"a', False)]),
        ('"a"b,c', [('"a"b', False), ("c", False)]),
        ("", [("", False)]),
        ("a,", [("a", False), ("", False)]),
    ],
)
def test_names_of_columns(text: str, names: list[tuple[str, bool]]) -> None:
    assert [*column_names(text)] == names


@given(st.lists(st.text('a",é ', max_size=4), min_size=1, max_size=4))
def test_any_names_can_be_written(names: list[str]) -> None:
    written = ",".join('"' + name.replace('"', '""') + '"' for name in names)
    assert [name.text for name in column_names(written)] == names


def test_time_of_two_columns(parse: Parse) -> None:
    for name, key in (("cf.log", "8"), ("iis.log", "5")):
        options = {"reader_options": {"comment": "#"}, "time": "1,2", "key": key}
        found = read(CASES / "09-cloudfront-iis" / name, "text", **options)
        assert (len(found.tuples), span(found), found.inferred[-1]) == (100, 198.0, "times are iso8601")
        assert iso(found.tuples[0][0]) == "2024-03-04T23:59:00Z"
    content = b"d,t,key\n31/12/2024,23:59:58,a\n,23:59:59,b\n"
    found = parse(content, "csv", time="d,t", time_format="%d/%m/%Y %H:%M:%S", max_rejects="50%")
    assert (iso(found.tuples[0][0]), found.rejects) == ("2024-12-31T23:59:58Z", [(3, "time cannot be read")])
    found = parse(b'{"d":"2024-12-31","t":"23:59:58","key":"a"}\n', "jsonl", time="d,t")
    assert iso(found.tuples[0][0]) == "2024-12-31T23:59:58Z"


def test_composite_keys() -> None:
    path = CASES / "27-composite-key" / "Financial1.spc"
    found = read(path, "csv", header=False, time="5", key="1,2")
    assert len(set(keys(found))) == 24
    with path.open() as rows:
        assert keys(found) == [json.dumps(row[:2], separators=(",", ":")).encode() for row in csv.reader(rows)]
    assert len(set(keys(read(path, "csv", header=False, time="5", key="2")))) == 6


def test_parts_of_composite_keys(parse: Parse) -> None:
    content = b'time,a,"b,c"\n1,x,"say ""hi"""\n2,,-\n3,y,\n4,\xff,z\n'
    options = {"key": 'a,"b,c"', "reader_options": {"empty_is_null": True}, "null_values": ("-",), "max_rejects": "50%"}
    found = parse(content, "csv", **options)
    assert keys(found) == [b'["x","say \\"hi\\""]', b'["y",null]']
    assert (found.filtered, found.rejects) == ({"header": 1, "null key": 1}, [(5, "part of the key is not UTF-8")])
    kept = parse(content, "csv", null_keys="keep", **options)
    assert keys(kept) == [b'["x","say \\"hi\\""]', None, b'["y",null]']
    rows = b'{"time":1,"a":{"b":"x"},"n":7}\n{"time":2,"n":null}\n'
    assert keys(parse(rows, "jsonl", key="a.b,n")) == [b'["x","7"]']
    line = b'1.2.3.4 - - [17/May/2015:10:05:03 +0000] "GET /x HTTP/1.1" 200 5\n'
    assert keys(parse(line, "access-log", key="host,path")) == [b'["1.2.3.4","/x"]']
    trace = b"version,time,op,size,lbn\n1,5,2a,512,77\n"
    assert keys(parse(trace, "cache-trace", key="version,lbn")) == [b'["1","77"]']


def test_composite_keys_of_parquet(tmp_path: Path) -> None:
    table = pa.table({"time": [1, 2], "n": pa.array([7, None], pa.int64()), "s": ["a", "b"], "t": [True, False]})
    pq.write_table(table, tmp_path / "x.parquet")
    assert keys(read(tmp_path / "x.parquet", "parquet", key="s,n,t")) == [b'["a",7,true]', b'["b",null,false]']
    reader = make_reader(make_options(reader="parquet", inputs=("x",), output="x", key="s,n,t"))
    assert reader.layout(str(tmp_path / "x.parquet")).key_types == ("string", "long", "boolean")


@pytest.mark.parametrize(
    ("reader", "options", "message"),
    [
        ("slb", {"key": "1,2"}, "--key is one column"),
        ("trades", {"time": "a,b"}, "--time is one column"),
        ("wikipedia-pageviews", {"time": "none"}, "--time is one column"),
        ("csv", {"key": "a,b", "split_words": True}, "--split-words"),
        ("csv", {"time": "none", "since": "2024-01-01"}, "no times with --time none"),
        ("csv", {"key": "a", "cost": "a,b"}, "--cost a,b is 2 columns"),
        ("csv", {"key": "a,x"}, "no column 'x'"),
    ],
)
def test_columns_that_cannot_be_joined(parse: Parse, reader: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse(b"time,a,b\n1,2,3\n", reader, **options)


def test_no_time_at_all(parse: Parse, tmp_path: Path) -> None:
    assert keys(parse(b"b,key\nx,1\ny,2\n", "csv", time="none")) == [b"1", b"2"]
    assert keys(parse(b'{"key":1}\n{"key":2}\n', "jsonl", time="none")) == [b"1", b"2"]
    assert keys(parse(b"a x\nb y\n", "text", time="none", key="1")) == [b"a", b"b"]
    # A column of that name is in quotes.
    assert parse(b"none,key\n5,1\n", "csv", time='"none"').tuples == [(5_000_000, b"1")]
    pq.write_table(pa.table({"key": ["a", "b"]}), tmp_path / "x.parquet")
    assert keys(read(tmp_path / "x.parquet", "parquet", time="none")) == [b"a", b"b"]
    seen = preview(make_options(reader="parquet", inputs=(str(tmp_path / "x.parquet"),), output="x", time="none"))
    assert [(row.timestamp, row.key) for row in seen.tuples] == [(0, "a"), (1, "b")]


@pytest.mark.parametrize(("unit", "scale"), [("s", 1e6), ("ms", 1e3), ("us", 1.0), ("ns", 1e-3)])
def test_units_of_costs(unit: str, scale: float) -> None:
    path = CASES / "04-azure-2021" / "AzureFunctionsInvocationTrace.txt"
    found = read(path, "csv", time="end_timestamp", key="func", cost="duration", cost_unit=unit)
    assert (len(found.tuples), len(set(keys(found)))) == (150, 5)
    with path.open() as rows:
        written = [float(row["duration"]) * scale for row in csv.DictReader(rows)]
    assert found.cost == np.array(written, np.float32).tolist()


def test_a_duration_has_a_unit_of_its_own(tmp_path: Path) -> None:
    for unit, count in (("s", 2), ("ms", 2000), ("us", 2_000_000), ("ns", 2_000_000_000)):
        pq.write_table(
            pa.table({"time": [1], "key": ["a"], "took": pa.array([count], pa.duration(unit))}), tmp_path / "x"
        )
        assert read(tmp_path / "x", "parquet", cost="took").cost == [2e6]
    with pytest.raises(UsageError, match="a unit of its own"):
        read(tmp_path / "x", "parquet", cost="took", cost_unit="s")


def test_a_number_that_is_a_name_too(parse: Parse) -> None:
    content = b"time,3,1,key\n1,b,c,d\n"
    for asked in ("3", "1"):
        with pytest.raises(
            UsageError, match=rf"--key {asked} is column {asked}, '\w+', and the name of column"
        ) as caught:
            parse(content, "csv", key=asked)
        assert f"""--key '"{asked}"'""" in str(caught.value.hint)
    assert keys(parse(content, "csv", key='"3"')) == [b"b"]
    assert keys(parse(content, "csv", key='"1"')) == [b"c"]
    assert keys(parse(content, "csv", key="2")) == [b"b"]
    # A number that names the column at its own place is no question.
    assert keys(parse(b"time,2\n1,a\n", "csv", key="2")) == [b"a"]
    assert keys(parse(b"1,a\n", "csv", header=False, time="1", key="2")) == [b"a"]


def test_several_texts_in_a_line() -> None:
    path = CASES / "07-gharchive" / "2012-02-02-21.json.gz"
    found = read(path, "jsonl", time="created_at", key="repo.name")
    assert (len(found.tuples), found.rejects, found.rows) == (120, [], 120)


def test_what_jsonl_takes_for_json(parse: Parse) -> None:
    content = (
        b'{"time":1,"key":"a"}{"time":2,"key":"b"} {"time":3,"key":"c"}\0\0\0\n\0\n'
        b'\x1e{"time":4,"key":"d","x":NaN,"y":[Infinity,-Infinity]}\n'
        b'{"time":5,"key":NaN}\n{"time":NaN,"key":"e"}\n{"time":6,"key":"f"} 7\n{"time":7}{"time\n'
    )
    found = parse(content, "jsonl", max_rejects="100%")
    assert keys(found) == [b"a", b"b", b"c", b"d"]
    assert (found.rows, found.filtered) == (9, {"blank": 1})
    assert sorted(found.rejects) == [
        (4, "key, time, cost, value or weight is of a type that cannot serve"),
        (5, "time cannot be read"),
        (6, "not a JSON object"),
        (7, "not JSON"),
    ]
    costs = parse(b'{"time":1,"key":"a","c":NaN}\n{"time":2,"key":"a","c":2}\n', "jsonl", cost="c", max_rejects="50%")
    assert (costs.cost, costs.rejects) == ([2.0], [(1, "cost is negative or not a number")])
    for limit, left in ((1, [b"a"]), (2, [b"a", b"b"]), (3, [b"a", b"b", b"c"])):
        assert keys(parse(content, "jsonl", limit=limit)) == left


def test_an_array_is_no_json_lines(parse: Parse) -> None:
    for content in (b'[{"time":1,"key":"a"}]\n', b'[\n{"time":1,"key":"a"},\n]\n'):
        with pytest.raises(DataError, match="no JSON objects") as caught:
            parse(content, "jsonl")
        assert "jq -c" in str(caught.value.hint)


def test_fields_that_come_late(parse: Parse) -> None:
    content = b'{"time":1}\n' * 1200 + b'{"time":2,"user":{"name":"x"},"cost":3}\n'
    found = parse(content, "jsonl", key="user.name")
    assert (keys(found), found.filtered) == ([b"x"], {"null key": 1200})
    assert found.inferred[0] == "no field 'user.name' in the first rows, which have time"
    kept = parse(content, "jsonl", key="user.name", null_keys="keep")
    assert keys(kept) == [None] * 1200 + [b"x"]


def test_a_time_that_comes_late(parse: Parse) -> None:
    content = b'{"key":null}\n' * 2000 + b'{"key":"a","at":"2024-01-01"}\n' * 2
    found = parse(content, "jsonl", time="at")
    assert (keys(found), found.filtered, found.rejects) == ([b"a"] * 2, {"null key": 2000}, [])


def test_records_of_other_kinds() -> None:
    found = read(CASES / "37-nexmark" / "nexmark.json", "jsonl", time="bid.dateTime", key="bid.auction")
    written = (CASES / "37-nexmark" / "nexmark.json").read_text().splitlines()
    assert found.rejects == []
    assert len(found.tuples) + found.filtered["null key"] == len(written)
    assert len(found.tuples) == sum('"event_type": 2' in line for line in written)


def parquet(folder: str, name: str, **options: Any) -> Any:
    return read(CASES / folder / name, "parquet", **options)


def test_a_parquet_column_that_is_all_null() -> None:
    assert len(parquet("21-parquet-null-type", "part-0.parquet", key="user").tuples) == 50
    dropped = parquet("21-parquet-null-type", "part-1.parquet", key="user")
    assert (dropped.tuples, dropped.filtered) == ([], {"null key": 50})
    assert keys(parquet("21-parquet-null-type", "part-1.parquet", key="user", null_keys="keep")) == [None] * 50
    assert len(parquet("21-parquet-null-type", "part-2.parquet", key="user").tuples) == 50


def test_parquet_types_of_keys() -> None:
    found = parquet("23-parquet-uuid", "duck.parquet", key="u", time="ts")
    assert keys(found)[:2] == [b"00000000-0000-4000-8000-000000000000", b"00000000-0000-4000-8000-000000000001"]
    assert {len(key or b"") for key in keys(found)} == {36}
    assert keys(parquet("23-parquet-uuid", "duck.parquet", key="e", time="tz"))[:2] == [b"e0", b"e1"]
    assert keys(parquet("23-parquet-uuid", "fixed.parquet", key="id", time="ts"))[:2] == [b"0000", b"0001"]
    for name, column in (("duck.parquet", "dec"), ("nested.parquet", "user")):
        with pytest.raises(UsageError, match="no key can be made of it"):
            parquet("23-parquet-uuid", name, key=column, time="ts")


def test_views_and_extensions_of_arrow(tmp_path: Path) -> None:
    uuid = pa.array([bytes(range(16)), None], pa.uuid())
    kinds: dict[str, Any] = {
        "uuid": (uuid, [b"00010203-0405-0607-0809-0a0b0c0d0e0f", None]),
        "string_view": (pa.array(["a", None], pa.string_view()), [b"a", None]),
        "binary_view": (pa.array([b"\xff", None], pa.binary_view()), [b"\xff", None]),
        "fixed": (pa.array([b"ab", None], pa.binary(2)), [b"ab", None]),
        "null": (pa.nulls(2), [None, None]),
        "json": (pa.array(["{}", None], pa.json_()), [b"{}", None]),
    }
    table = pa.table({"time": [1, 2], **{name: column for name, (column, _) in kinds.items()}})
    pq.write_table(table, tmp_path / "x.parquet")
    for name, (_, expected) in kinds.items():
        found = read(tmp_path / "x.parquet", "parquet", key=name, null_keys="keep")
        assert keys(found) == expected, name
    both = read(tmp_path / "x.parquet", "parquet", key="uuid,fixed,string_view,null", null_keys="keep")
    assert keys(both) == [b'["00010203-0405-0607-0809-0a0b0c0d0e0f","ab","a",null]', None]


@pytest.mark.parametrize(("name", "time"), [("flat.parquet", "t.s"), ("both.parquet", "t.s"), ("both.parquet", "a.t")])
def test_parquet_names_with_dots(name: str, time: str) -> None:
    found = parquet("43-parquet-dots", name, key="a.b", time=time)
    assert (len(found.tuples), set(keys(found))) == (30, {b"x0", b"x1", b"x2"})
    assert iso(found.tuples[0][0]) == "2020-09-13T12:26:40Z"


def test_parquet_dates_and_times_of_day(tmp_path: Path) -> None:
    table = pa.table(
        {
            "day": pa.array([19_723], pa.date32()),
            "at": pa.array([3_600_500], pa.time32("ms")),
            "key": ["a"],
        }
    )
    pq.write_table(table, tmp_path / "x.parquet")
    assert iso(read(tmp_path / "x.parquet", "parquet", time="day,at").tuples[0][0]) == "2024-01-01T01:00:00.5Z"
    with pytest.raises(UsageError, match="no time can be made of it"):
        read(tmp_path / "x.parquet", "parquet", time="at")
