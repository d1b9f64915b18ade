"""Conditions on rows (`--where`): against a slow twin, and in every reader that has them."""

import csv
import io
import re
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgroup.base.errors import UsageError
from streamgroup.base.modules_by_name import READERS, load, names
from streamgroup.ingest.make_reader import make_reader
from streamgroup.ingest.make_trace import ingest
from streamgroup.ingest.options import make_options
from streamgroup.ingest.parsing.condition_text import parse_where
from streamgroup.ingest.pipeline.row_conditions import meets
from tests.ingest.naive_ingest import tuples_of

REASON = "does not meet --where"
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")

texts = st.one_of(
    st.sampled_from(["", "a", "b", "10", "10.0", "+10", "1e1", "9", "-3", ".5", "x1", "NA", "null", "a,b", 'say "a"']),
    st.text(st.characters(codec="utf-8", exclude_characters='\r\n"\x00'), max_size=4),
)
values = st.sampled_from(["a", "b", "10", "1e1", "null", "NA", '"a,b"', '"null"', "-3", "9.5", '"say ""a"""'])


def twin(condition: str, field: str | None) -> bool:
    """Compare one field with one condition."""
    found = re.fullmatch(r'\w+(>=|<=|!=|=|>|<)(".*"|[^"]*)', condition)
    assert found is not None
    sign, value = found.groups()
    absent = field in (None, "", "NA")
    if value == "null":
        return absent == (sign == "=")
    if absent:
        return False
    assert field is not None
    wanted = value[1:-1].replace('""', '"') if value.startswith('"') else value
    both = NUMBER.fullmatch(value) and NUMBER.fullmatch(field)
    if sign in ("=", "!="):
        equal = field == wanted or bool(both and float(field) == float(value))
        return equal == (sign == "=")
    if not both:
        return False
    left, right = float(field), float(value)
    return {"<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right}[sign]


@st.composite
def conditions(draw: st.DrawFn) -> str:
    sign = draw(st.sampled_from(["=", "!=", "<", "<=", ">", ">="]))
    value = draw(values)
    if sign not in ("=", "!=") and not NUMBER.fullmatch(value):
        value = "9.5"
    return f"{draw(st.sampled_from(['x', 'y']))}{sign}{value}"


@settings(deadline=None)
@given(st.lists(st.tuples(texts, texts), min_size=1, max_size=30), st.lists(conditions(), min_size=1, max_size=3))
def test_against_a_slow_twin(rows: list[tuple[str, str]], asked: list[str]) -> None:
    found = parse_where(",".join(asked))
    columns = {"x": [row[0] for row in rows], "y": [row[1] for row in rows]}
    arrays = tuple(pa.array([text.encode() for text in columns[one.column]], pa.binary()) for one in found)
    mask = meets(found, arrays, pa.array([b"NA"], pa.binary()))
    wanted = [all(twin(one, columns[one[0]][row]) for one in asked) for row in range(len(rows))]
    assert mask.tolist() == wanted


def kept(tmp_path: Path, reader: str, content: bytes, where: str, **options: Any) -> list[tuple[int, str | None]]:
    """Ingest a file with a condition, and without: what is left, and that every row is counted."""
    data = tmp_path / options.pop("name", "raw")
    data.write_bytes(content)
    asked = {"reader": reader, "inputs": (str(data),), "engine": "local", "overwrite": True, **options}
    result = ingest(make_options(output=str(tmp_path / "t"), where=where, **asked))
    every = ingest(make_options(output=str(tmp_path / "all"), **asked))
    facts, all_facts = result.manifest, every.manifest
    assert facts.reader_options is not None
    assert facts.reader_options["where"] == where
    lost = (facts.filtered or {}).get(REASON, 0)
    assert facts.rows_read == all_facts.rows_read
    assert (facts.rows_kept or 0) + lost >= (all_facts.rows_kept or 0)
    left = tuples_of(tmp_path / "t")
    assert set(left) <= set(tuples_of(tmp_path / "all"))
    return left


@settings(deadline=None)
@given(st.lists(st.tuples(texts, texts), min_size=1, max_size=12), conditions(), st.booleans())
def test_csv_against_the_library(tmp_path_factory: Any, rows: list[tuple[str, str]], asked: str, ragged: bool) -> None:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["time", "key", "x", "y"])
    for number, row in enumerate([*rows, ("10", "10"), ("a", "a"), ("", "")]):
        writer.writerow([number, f"k{number}", *row])
    own = {"reader_options": {"ragged": ragged}, "time_format": "s", "null_values": ("NA",)}
    fields = list(csv.DictReader(io.StringIO(out.getvalue())))
    wanted = [(int(row["time"]) * 1_000_000, row["key"]) for row in fields if twin(asked, row[asked[0]])]
    if wanted:
        folder = tmp_path_factory.mktemp("csv")
        assert kept(folder, "csv", out.getvalue().encode(), asked, **own) == wanted


LOG = b'1.2.3.4 - - [10/Oct/2000:13:55:3%d -0700] "GET /%s HTTP/1.0" %d %s "-" "curl"\n'
REVIEW = (
    b"product/productId: %s\nreview/userId: u\nreview/score: %s\nreview/time: %d\nreview/summary: s\nreview/text: t\n\n"
)


@pytest.mark.parametrize(
    ("reader", "content", "where", "keys", "options"),
    [
        ("csv", b"time,key,x\n1,a,1\n2,b,2\nnever,c,1\n", "x=2", "b", {}),
        ("csv", b"time,key,x\n1,a,1\n2,b,2\n", "3=1", "a", {}),
        ("csv", b'time,key,"x,y"\n1,a,1\n2,b,2\n', '"x,y">1', "b", {}),
        ("text", b"1 a 5\n2 b 7\n", "3>=7", "b", {}),
        ("slb", b"1\tthe cat\n2\tthe dog\n", "key=the dog", ["the dog"], {}),
        ("wikibench", b"1 1194892620.003 a -\n2 1194892621.003 b save\n", "flag=save", "b", {}),
        ("jsonl", b'{"time":1,"key":"a","u":{"ok":true}}\n{"time":2,"key":"b"}\n', "u.ok=true", "a", {}),
        ("jsonl", b'{"time":1,"key":"a","u":{"ok":true}}\n{"time":2,"key":"b"}\n', "u.ok=null", "b", {}),
        ("access-log", LOG % (6, b"a", 200, b"10") + LOG % (7, b"b", 503, b"-"), "status>=500", ["/b"], {}),
        ("access-log", LOG % (6, b"a", 200, b"10") + LOG % (7, b"b", 503, b"-"), "bytes!=null", ["/a"], {}),
        ("cache-trace", b"1,a,1,10,1,get,0\n2,b,1,900,1,set,0\n", "value_size>100", "b", {}),
        ("amazon-reviews", REVIEW % (b"a", b"5.0", 1) + REVIEW % (b"b", b"1.0", 2), "score=5", "a", {}),
        ("trades", b"time,symbol,price,size\n1000,A,5,1\n2000,B,6,1\n", "price>5.5", "B", {"time_format": "s"}),
        ("tweets-csv", b"date,text,lang\n2014-01-01,one,en\n2014-01-02,zwei,de\n", "lang=de", ["zwei"], {}),
    ],
)  # fmt: skip
def test_readers(tmp_path: Path, reader: str, content: bytes, where: str, keys: Any, options: dict[str, Any]) -> None:
    found = kept(tmp_path, reader, content, where, max_rejects="100%", **options)
    assert [key for _, key in found] == list(keys)


def test_oracle_general(tmp_path: Path) -> None:
    record = struct.Struct("<IQIq")
    content = b"".join(record.pack(1_000_000_000 + n, n, 2**20 * n, -1) for n in range(4))
    assert [key for _, key in kept(tmp_path, "oracle-general", content, "size>=2097152")] == ["2", "3"]


def test_parquet(tmp_path: Path) -> None:
    columns = {
        "time": pa.array([1, 2, 3, 4]),
        "key": list("abcd"),
        "size": pa.array([1.5, None, 3.0, 10.0]),
        "ok": pa.array([True, False, None, True]),
        "tags": pa.array([["x"]] * 4),
    }
    pq.write_table(pa.table(columns), tmp_path / "raw")
    content = (tmp_path / "raw").read_bytes()
    for where, keys in (("size>2", "cd"), ("ok=true,size<5", "a"), ("size=null", "b"), ("size=10", "d")):
        assert [key for _, key in kept(tmp_path, "parquet", content, where)] == list(keys)
    with pytest.raises(UsageError, match=r"'tags' is list<.*no condition of --where can be made of it"):
        kept(tmp_path, "parquet", content, "tags=x")


def test_rows_that_are_not_wanted_are_not_rejected(tmp_path: Path) -> None:
    data = tmp_path / "raw.csv"
    data.write_text("time,key,x\n" + "never,a,no\n" * 50 + "1,b,yes\nnever,c,yes\n")
    asked = {"reader": "csv", "inputs": (str(data),), "output": str(tmp_path / "t"), "engine": "local"}
    found = ingest(make_options(where="x=yes", max_rejects="1", **asked)).manifest
    assert (found.tuples, found.filtered, found.rejected) == (1, {"header": 1, REASON: 50}, {"time cannot be read": 1})


def test_every_reader_has_it_or_refuses_it() -> None:
    for name in names(READERS):
        reader = load(READERS, name, "reader").Reader
        if "where" in reader.Options.unused:
            with pytest.raises(UsageError, match="has no --where"):
                make_reader(make_options(reader=name, inputs=("x",), output="y", where="a=1"))
        else:
            make_reader(make_options(reader=name, inputs=("x",), output="y", where="a=1"))


@pytest.mark.parametrize("text", ["", "x", "x=", "=1", "x>a", 'x<"5"', "x=1,", 'x="a', "x=1,y"])
def test_what_is_no_condition(text: str) -> None:
    with pytest.raises(UsageError, match=r"--where|where: "):
        make_options(reader="csv", inputs=("x",), output="y", where=text)


def test_an_unknown_column_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no column 'z' \(--where\)"):
        kept(tmp_path, "csv", b"time,key\n1,a\n", "z=1")


def test_numbers_of_any_arrow_type() -> None:
    column = pa.array(np.array([1, 2, 3], np.int16))
    assert meets(parse_where("x>=2"), (column,), pa.array([], pa.binary())).tolist() == [False, True, True]
