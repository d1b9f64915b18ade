"""The column `parent`: which tuples came of one row, in whatever order and pieces the rows come."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streamgroup.ingest.make_trace import IngestResult, ingest
from streamgroup.ingest.options import make_options
from streamgroup.ingest.pipeline import tuple_segments
from streamgroup.traces import layout
from streamgroup.traces.checks.validate import validate
from streamgroup.traces.export import export
from streamgroup.traces.trace import open_trace

Line = tuple[int, str]


def twin(lines: list[Line], head: int | None = None) -> list[tuple[int, str, int]]:
    """Time in s, word and parent of each tuple: rows by time, and of one time as they came."""
    found: list[tuple[int, str, int]] = []
    for time, text in sorted(lines, key=lambda line: line[0]):
        first = len(found)
        found += [(time, word, first) for word in text.split()]
    return found[:head]


def tuples_of(path: Path) -> list[tuple[int, str, int]]:
    keys = pq.read_table(path / "keys").column("key").to_pylist()
    table = pq.read_table(path / "tuples")
    columns = (table.column(name).to_pylist() for name in ("timestamp", "key_id", "parent"))
    return [(at // 1_000_000, keys[key], parent) for at, key, parent in zip(*columns, strict=True)]


def made(path: Path, lines: list[Line], **options: Any) -> Path:
    (path / "in.tsv").write_text("".join(f"{time}\t{text}\n" for time, text in lines))
    asked: dict[str, Any] = {"reader": "slb", "engine": "local", "split_words": True, "overwrite": True, **options}
    ingest(make_options(inputs=(str(path / "in.tsv"),), output=path / "out.trace", **asked))
    return path / "out.trace"


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.tuples(st.integers(1, 5), st.text("ab ", min_size=1, max_size=9).filter(str.strip)), min_size=1),
    st.integers(1, 4), st.integers(1, 6), st.integers(2, 7), st.none() | st.integers(1, 20),
)  # fmt: skip
def test_as_the_twin_says(
    tmp_path: Path, lines: list[Line], block: int, segment: int, part: int, head: int | None
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tuple_segments, "BLOCK_TUPLES", block)
        patch.setattr(tuple_segments, "MAX_TUPLES", segment)
        for name in ("PART_ROWS", "ROW_GROUP_ROWS", "BLOCK_ROWS"):
            patch.setattr(layout, name, part)
        path = made(tmp_path, lines, head=head)
        assert tuples_of(path) == twin(lines, head)
        assert validate(path) == []


def test_rows_of_one_word_each(tmp_path: Path) -> None:
    assert [parent for *_, parent in tuples_of(made(tmp_path, [(1, "a"), (2, "b"), (3, "a")]))] == [0, 1, 2]


def test_words_that_are_left_out_are_in_no_tree(tmp_path: Path) -> None:
    (tmp_path / "words").write_text("the\n")
    path = made(tmp_path, [(2, "the end"), (1, "the"), (3, "of the line")], stopwords=str(tmp_path / "words"))
    assert tuples_of(path) == [(2, "end", 0), (3, "of", 1), (3, "line", 1)]


def test_a_list_of_keys_is_a_tree(tmp_path: Path) -> None:
    tweets = [
        {"created_at": f"2020-11-20T04:32:4{at}.000Z", "author": {"id": "1"}, "text": text}
        for at, text in ((7, "#a #b"), (6, "none"), (5, "#c #a #d"))
    ]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(tweet) + "\n" for tweet in tweets))
    asked = make_options(
        reader="twitter", inputs=(str(tmp_path / "in.jsonl"),), output=tmp_path / "t", engine="local",
        reader_options={"keys": "hashtags"},
    )  # fmt: skip
    ingest(asked)
    assert pq.read_table(tmp_path / "t" / "tuples").column("parent").to_pylist() == [0, 0, 0, 3, 3]


def test_rows_of_one_tuple_have_no_parents(tmp_path: Path) -> None:
    path = made(tmp_path, [(1, "a b")], split_words=False)
    assert open_trace(path).columns == ("timestamp", "key_id")


@pytest.mark.parametrize(("kind", "text"), [("csv", b"1000000,b,0\n"), ("jsonl", b'"key":"b","parent":0')])
def test_an_export_has_them(tmp_path: Path, kind: str, text: bytes) -> None:
    trace = open_trace(made(tmp_path, [(1, "a b"), (2, "b")]))
    assert export(trace, kind, tmp_path / "out") == 3
    assert text in (tmp_path / "out").read_bytes()
    export(trace, "parquet", tmp_path / "out.parquet")
    assert pq.read_table(tmp_path / "out.parquet").column("parent").to_pylist() == [0, 0, 2]


@pytest.mark.spark
def test_on_spark_as_in_this_process(make: Callable[..., IngestResult], tmp_path: Path) -> None:
    draw = random.Random(7)
    lines = [(draw.randrange(1, 60), " ".join(draw.choices("abcdef", k=draw.randrange(1, 6)))) for _ in range(500)]
    path = made(tmp_path, lines)
    spark = make("slb", tmp_path / "in.tsv", output="spark.trace", split_words=True)
    assert tuples_of(tmp_path / "spark.trace") == tuples_of(path) == twin(lines)
    assert spark.manifest.fingerprint == open_trace(path).fingerprint()
