"""Rows that make several tuples: lists of keys, repeats, words; and the weight that a tuple may carry."""

import itertools
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgroup.base.errors import UsageError
from streamgroup.base.progress import Silent
from streamgroup.ingest.options import make_options
from streamgroup.ingest.parsing.times import KNOWN, TimeFormat
from streamgroup.ingest.pipeline import count_late_rows, tuple_segments
from streamgroup.ingest.pipeline.check_and_filter_rows import MAX_REPEAT, Contract
from streamgroup.ingest.pipeline.expand_rows import Tuples, pieces
from streamgroup.ingest.pipeline.first_tuples import cut_head
from streamgroup.ingest.pipeline.tuple_segments import SegmentWriter, read_segment
from streamgroup.ingest.readers.protocol import Each, Layout, Parsed
from streamgroup.ingest.runners.local_runner import LocalFrame, LocalRunner
from tests.ingest.naive_ingest import Outcome, Row, contract_of
from tests.random_cases import random_cases

LAYOUT = Layout(("time", "key"), 0, 1, time_format=TimeFormat("s", 6, ""))


def parsed_of(rows: list[Row], *, lists: bool, costs: bool, repeat: bool) -> Parsed:
    key = pa.array([row.key for row in rows], pa.list_(pa.binary()) if lists else pa.binary())
    return Parsed(
        rows=len(rows),
        lines=len(rows),
        consumed=0,
        line=np.arange(1, len(rows) + 1),
        time=pa.array([row.time for row in rows], pa.binary()),
        key=key,
        cost=pa.array([row.cost for row in rows], pa.list_(pa.binary()) if costs else pa.binary()),
        value=pa.array([row.value for row in rows], pa.binary()),
        weight=pa.array([row.weight for row in rows], pa.binary()),
        repeat=np.array([row.repeat for row in rows], np.int64) if repeat else None,
        text=lambda entry: repr(rows[entry]).encode(),
        rejects=[],
        filtered={},
    )


def contract(**options: Any) -> Contract:
    return Contract(make_options(reader="csv", inputs=("x",), output="y", **options))


def expand(found: Tuples, size: int) -> Outcome:
    tuples: list[Any] = []
    kept = 0
    for piece in pieces(found, size):
        assert 0 < len(piece.timestamp) <= size
        assert piece.cost is not None
        assert piece.value is not None
        assert piece.weight is not None
        rows = (piece.row + kept - piece.continued).tolist()
        columns = (piece.timestamp, piece.cost, piece.value, piece.weight)
        stamps, costs, values, weights = (column.tolist() for column in columns)
        tuples += zip(stamps, piece.key.to_pylist(), costs, values, weights, rows, strict=True)
        kept += piece.rows
    return Outcome(tuples, [(reject.line, reject.reason) for reject in found.rejects], found.filtered, kept)


keys = st.sampled_from([None, b"", b"a", b"b", b"NA", b"the", b"\x00", b"\xff"])
numbers = st.sampled_from([b"0", b"1", b"2.5", b"1", b"2", b"-1", b"x", b"", None, b"nan", b"1e40"])
fine = st.sampled_from([b"0", b"1", b"2.5"])
few = st.one_of(fine, fine, fine, numbers)


@st.composite
def tables(draw: Any) -> tuple[list[Row], dict[str, bool]]:
    lists, repeat = draw(st.booleans()), draw(st.booleans())
    costs = lists and draw(st.booleans())
    rows = []
    for _ in range(draw(st.integers(0, 12))):
        key = draw(st.lists(keys, max_size=4)) if lists else draw(keys)
        cost = draw(few)
        if costs:
            size = len(key) + draw(st.sampled_from([0, 0, 0, 0, 1]))
            cost = draw(st.lists(few, min_size=size, max_size=size))
        times = draw(st.sampled_from([b"1", b"2", b"3", b"3", b"x"]))
        count = draw(st.sampled_from([1, 2, 3, 7, 0, -1, MAX_REPEAT + 1])) if repeat else 1
        rows.append(Row(times, key, cost, draw(few), draw(few), count))
    return rows, {"lists": lists, "costs": costs, "repeat": repeat}


@random_cases(400)
@given(tables(), st.sampled_from(["drop", "keep", "fail"]), st.sampled_from([1, 3, 1000]))
def test_as_the_twin_says(table: tuple[list[Row], dict[str, bool]], null_keys: str, size: int) -> None:
    rows, shape = table
    asked = contract(null_keys=null_keys, null_values=("NA",), since="2")
    found = asked.apply(parsed_of(rows, **shape), LAYOUT)
    twin = contract_of(rows, null_keys=null_keys, null_values={b"NA"}, stopwords=set(), since=2)
    assert expand(found, size) == twin
    assert found.rows == twin.kept
    assert len(rows) == found.rows + len(found.rejects) + found.filtered.total()


@settings(max_examples=100, deadline=None)
@given(tables())
def test_stopwords_as_the_twin_says(tmp_path_factory: pytest.TempPathFactory, table: Any) -> None:
    rows, shape = table
    path = tmp_path_factory.getbasetemp() / "stopwords"
    path.write_bytes(b"the\na\n")
    found = contract(stopwords=path, null_keys="keep").apply(parsed_of(rows, **shape), LAYOUT)
    assert expand(found, 2) == contract_of(rows, null_keys="keep", null_values=set(), stopwords={b"the", b"a"}, since=0)


def test_a_list_that_is_null_is_a_null_key() -> None:
    rows = [Row(b"1", key, [b"1"], b"1", b"1") for key in ([b"a"], None, [b"b"])]  # type: ignore[arg-type]
    parsed = parsed_of(rows, lists=True, costs=True, repeat=False)
    found = contract(null_keys="keep").apply(parsed, LAYOUT)
    assert (found.key.to_pylist(), found.row.tolist()) == ([b"a", None, b"b"], [0, 1, 2])
    assert contract().apply(parsed, LAYOUT).filtered == {"null key": 1}


def test_sampled_keys_of_a_list_and_words_of_keys() -> None:
    names = [f"k{number}".encode() for number in range(100)]
    parsed = parsed_of([Row(b"1", [*names], b"1", b"1", b"1")], lists=True, costs=False, repeat=False)
    some = contract(sample_keys="0.2").apply(parsed, LAYOUT)
    assert 5 < len(some.key) < 40
    assert (some.rows, some.filtered) == (1, {})
    none = parsed_of([Row(b"1", [names[0]], b"1", b"1", b"1")], lists=True, costs=False, repeat=False)
    assert contract(sample_keys="0.0000001").apply(none, LAYOUT).filtered == {"key not in --sample-keys": 1}
    texts = [[b"a b", b"", b" c"], [b" "], [None]]
    costs = [[b"1", b"2", b"3"], [b"4"], [b"5"]]
    rows = [Row(b"1", text, cost, b"1", b"1") for text, cost in zip(texts, costs, strict=True)]
    parsed = parsed_of(rows, lists=True, costs=True, repeat=False)  # type: ignore[arg-type]
    found = contract(split_words=True, null_keys="keep").apply(parsed, LAYOUT)
    assert found.key.to_pylist() == [b"a", b"b", b"c", None]
    assert found.cost is not None
    assert found.cost.tolist() == [1, 1, 3, 5]
    assert (found.filtered, found.row.tolist()) == ({"no words": 1}, [0, 0, 0, 1])


def test_times_that_the_reader_knows() -> None:
    parsed = parsed_of([Row(b"1", b"a", b"1", b"1", b"1")], lists=False, costs=False, repeat=False)
    parsed = parsed._replace(time=pa.array([7_000_001], pa.timestamp("us")))
    for form in (None, KNOWN):
        assert contract().apply(parsed, LAYOUT._replace(time_format=form)).timestamp.tolist() == [7_000_001]


def test_a_billion_of_a_long_key_take_little_memory() -> None:
    row = Row(b"1", b"k" * (1 << 20), b"1", b"1", b"1", 10**9)
    found = contract().apply(parsed_of([row], lists=False, costs=False, repeat=True), LAYOUT)
    assert (found.rows, len(found.timestamp)) == (1, 1)
    tracemalloc.start()
    before = pa.total_allocated_bytes()
    some: list[tuple[int, int, bool]] = []
    for piece in itertools.islice(pieces(found, tuple_segments.BLOCK_TUPLES), 3):
        some.append((len(piece.timestamp), piece.rows, piece.continued))
        held = pa.total_allocated_bytes() - before + tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    size = tuple_segments.BLOCK_TUPLES
    assert some == [(size, 1, False), (size, 0, True), (size, 0, True)]
    assert held < 200 << 20


def batch(*rows: tuple[bytes, list[int]]) -> Tuples:
    """Give rows of a key, at each of some times."""
    names, times = zip(*rows, strict=True)
    counts = np.array(list(map(len, times)), np.int64)

    def each(entry: Any, place: Any) -> Each:
        moments = [times[row][at] for row, at in zip(entry.tolist(), place.tolist(), strict=True)]
        return Each(np.array(moments, np.int64), entry * 10.0 + place)

    return Tuples(
        np.zeros(len(rows), np.int64), pa.array(names, pa.binary()), None, None, np.arange(len(rows)), len(rows), [],
        Counter(), np.arange(len(rows), dtype=np.float64), counts, each=each,
    )  # fmt: skip


def slow(tuples: list[tuple[int, int]]) -> tuple[int, int]:
    """Rows, and late rows, of (time, row) in input order."""
    latest, late = -(2**63), set()
    for stamp, row in tuples:
        if stamp < latest:
            late.add(row)
        latest = max(latest, stamp)
    return len({row for _, row in tuples}), len(late)


times = st.lists(st.integers(-3, 9), min_size=1, max_size=9) | st.integers(0, 9).map(lambda moment: [moment] * 5)


@random_cases(120)
@given(
    st.lists(
        st.lists(st.tuples(st.sampled_from([b"a", b"b", b"c"]), times | times.map(sorted)), min_size=1, max_size=5),
        min_size=1, max_size=4,
    ),
    st.integers(1, 5), st.integers(1, 9), st.data(),
)  # fmt: skip
def test_rows_that_segments_cut_count_once(batches: list[Any], size: int, bound: int, data: Any) -> None:
    runner = LocalRunner(Silent())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tuple_segments, "BLOCK_TUPLES", size)
        patch.setattr(tuple_segments, "MAX_TUPLES", bound)
        frame = runner.tasks(1, lambda _: blocks([batch(*rows) for rows in batches])).keep()
        found = sorted(read_segment(row) for row in frame.stats("segment"))
    every = [row for rows in batches for row in rows]
    expected = [(stamp, key, number) for number, (key, moments) in enumerate(every) for stamp in moments]
    assert all(segment.tuples < bound + size for segment in found)
    assert read(frame) == [(stamp, key) for stamp, key, _ in expected]
    rows, late = slow([(stamp, number) for stamp, _, number in expected])
    assert sum(segment.rows for segment in found) == rows
    assert count_late_rows.count_late(found, count_late_rows.late_rows(frame, found)) == late
    assert count_late_rows.in_order(found) == (late == 0)
    first_tuples = data.draw(st.integers(1, len(expected)))
    cut, left = cut_head(frame, found, first_tuples, ordered=True)
    first = sorted(range(len(expected)), key=lambda place: (expected[place][0], place))[:first_tuples]
    assert read(cut) == [expected[place][:2] for place in sorted(first)]
    assert sum(segment.rows for segment in left) == len({expected[place][2] for place in first})


def blocks(batches: list[Tuples]) -> Iterator[pa.RecordBatch]:
    writer = SegmentWriter(0)
    for tuples in batches:
        yield from writer.add(tuples)
    yield from writer.close()


def read(frame: LocalFrame) -> list[tuple[int, bytes]]:
    found = {(row.segment, row.kind): row.columns() for row in frame.stats("dictionary", "places")}
    tuples: list[tuple[int, bytes]] = []
    for row in frame.stats("tuples"):
        keys = found[row.segment, "dictionary"].column("key").to_pylist()
        names = [keys[place] for place in found[row.segment, "places"].column("place").to_pylist()]
        stamps, local = (row.columns().column(name).to_pylist() for name in ("timestamp", "local"))
        tuples += [(stamp, names[number]) for stamp, number in zip(stamps, local, strict=True)]
    return tuples


@pytest.mark.parametrize("value", ["", "x", "nan", "inf", "-inf", "1e999"])
def test_a_weight_that_is_no_number(parse: Callable[..., Any], value: str) -> None:
    rows = parse(f"time,key,w\n1,a,{value}\n2,b,-2.5\n".encode(), "csv", weight="w")
    assert rows.rejects == [(2, "weight is not a number")]
    assert rows.weight == [-2.5]


def test_weights_of_every_reader(parse: Callable[..., Any], tmp_path: Path) -> None:
    assert parse(b"1 a 3 4\n", "text", value="3", weight="4")[-2:] == ([3], [4])
    assert parse(b'{"time":1,"key":"a","q":{"n":5.5}}\n', "jsonl", weight="q.n").weight == [5.5]
    pq.write_table(pa.table({"time": [1], "key": ["a"], "w": [6], "s": ["7"]}), tmp_path / "x.parquet")
    content = (tmp_path / "x.parquet").read_bytes()
    assert parse(content, "parquet", weight="w").weight == [6]
    with pytest.raises(UsageError, match="no weight can be made of it"):
        parse(content, "parquet", weight="s")


@pytest.mark.spark
def test_weights_come_through_the_sort(make: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("time,key,w\n3,a,0.3\n1,b,0.1\n2,a,x\n2,a,0.2\n")
    made = make("csv", tmp_path / "in.csv", weight="w", max_rejects="1")
    table = pq.read_table(made.trace / "tuples")
    assert table.schema.field("weight").type == pa.float64()
    assert table.column("weight").to_pylist() == [0.1, 0.2, 0.3]
    assert made.manifest.rejected == {"weight is not a number": 1}
