"""The steps of an ingest, run in this process, against lists that are sorted and counted."""

import struct
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgroup.base.errors import RunError
from streamgroup.base.progress import Silent
from streamgroup.base.storage.storage_path import StoragePath, locate
from streamgroup.ingest.make_trace import ingest
from streamgroup.ingest.options import make_options
from streamgroup.ingest.parsing import lines
from streamgroup.ingest.pipeline import key_ids_by_frequency, order_segments, sort_tuples, tuple_segments, write_parts
from streamgroup.ingest.pipeline.expand_rows import Tuples
from streamgroup.ingest.pipeline.make_parts import Made, Rejects, Wanted, make_parts
from streamgroup.ingest.pipeline.tuple_segments import SegmentWriter, read_segment
from streamgroup.ingest.runners.local_runner import LocalRunner
from streamgroup.traces import layout
from tests.random_cases import random_cases


class Given(NamedTuple):
    """A tuple of the input: time, key, and what else it carries."""

    time: int
    key: bytes | None
    cost: float
    value: float


names = st.sampled_from([None, b"", b"a", b"b", b"aa", b"\xff", b"z" * 300])
floats = st.sampled_from([0.0, -0.0, 1.5, -2.0])
rows = st.builds(Given, st.integers(-3, 5) | st.integers(-(2**62), 2**62), names, st.sampled_from([0.0, 1.0]), floats)
inputs = st.lists(st.lists(rows, max_size=12), min_size=1, max_size=5).filter(any)


def blocks(splits: list[list[Given]], number: int) -> Iterator[pa.RecordBatch]:
    """Write the segments of a split, which come in batches of three."""
    writer, own = SegmentWriter(number), splits[number]
    for start in range(0, len(own), 3):
        some = own[start : start + 3]
        row = np.arange(len(some))
        yield from writer.add(
            Tuples(
                np.array([each.time for each in some]),
                pa.array([each.key for each in some], pa.binary()),
                np.array([each.cost for each in some], np.float32),
                np.array([each.value for each in some]),
                row,
                len(row),
                [],
                Counter(),
            )
        )
    yield from writer.close()


def by_bits(number: float) -> tuple[float, bool]:
    """Tell -0.0 from 0.0, which it comes before."""
    return number, not str(number).startswith("-")


def expected_order(splits: list[list[Given]], ordered: bool) -> list[Given]:
    every = [each for split in splits for each in split]
    if ordered:
        return sorted(every, key=lambda each: each.time)
    key_order = {
        key: place for place, key in enumerate(sorted({e.key for e in every}, key=lambda k: (k is not None, k)))
    }
    return sorted(every, key=lambda e: (e.time, key_order[e.key], e.cost, by_bits(e.value)))


def made_of(folder: Path) -> list[tuple[int, bytes | None, float, bytes]]:
    keys = pq.read_table(folder / "keys")
    names = [
        text.encode() if odd is None and text is not None else odd
        for text, odd in zip(
            keys.column("key").to_pylist(),
            keys.column("key_bytes").to_pylist() if "key_bytes" in keys.column_names else [None] * len(keys),
            strict=True,
        )
    ]
    found = pq.read_table(folder / "tuples").to_pylist()
    return [(row["timestamp"], names[row["key_id"]], row["cost"], struct.pack("d", row["value"])) for row in found]


def run(folder: Path, splits: list[list[Given]], *, ordered: bool, head: int | None) -> Made:
    runner = LocalRunner(Silent())
    frame = runner.tasks(len(splits), lambda number: blocks(splits, number)).keep()
    found = sorted(read_segment(row) for row in frame.stats("segment"))
    return make_parts(runner, frame, found, locate(folder), Rejects({}, 0), Wanted(ordered=ordered, first=head))


@random_cases(150)
@given(inputs, st.booleans(), st.none() | st.integers(1, 40), st.integers(2, 9), st.integers(1, 6))
def test_as_lists_say(
    tmp_path_factory: pytest.TempPathFactory,
    splits: list[list[Given]],
    ordered: bool,
    head: int | None,
    part: int,
    small: int,
) -> None:
    folder = tmp_path_factory.mktemp("trace")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layout, "PART_ROWS", part)
        patch.setattr(layout, "ROW_GROUP_ROWS", part)
        patch.setattr(layout, "KEY_PART_ROWS", 2)
        patch.setattr(sort_tuples, "RANGE_TUPLES", small)
        patch.setattr(sort_tuples, "SAMPLES", small)
        patch.setattr(order_segments, "SORTED_TUPLES", small)
        patch.setattr(order_segments, "LEAST_TUPLES", small)
        patch.setattr(order_segments, "MOST_TUPLES", small)
        patch.setattr(tuple_segments, "MAX_TUPLES", small)
        patch.setattr(tuple_segments, "BLOCK_TUPLES", small)
        patch.setattr(key_ids_by_frequency, "RANGE_KEYS", 2)
        patch.setattr(key_ids_by_frequency, "BLOCK_KEYS", 1)
        made = run(folder, splits, ordered=ordered, head=head)
    expected = expected_order(splits, ordered)[:head]
    found = made_of(folder)
    assert found == [(each.time, each.key, each.cost, struct.pack("d", each.value)) for each in expected]
    counts = Counter(each.key for each in expected)
    table = pq.read_table(folder / "keys")
    ranked = sorted(counts, key=lambda key: (-counts[key], key is not None, key))
    assert [counts[key] for key in ranked] == table.column("count").to_pylist()
    ids = dict(zip(ranked, range(len(ranked)), strict=True))
    assert pq.read_table(folder / "tuples").column("key_id").to_pylist() == [ids[each.key] for each in expected]
    sizes = [pq.read_metadata(path).num_rows for path in sorted((folder / "tuples").iterdir())]
    assert sizes == [part] * (len(expected) // part) + [len(expected) % part] * bool(len(expected) % part)
    assert (made.keys, made.top, made.rows) == (len(counts), max(counts.values()), len(expected))
    every, latest, late = [each.time for split in splits for each in split], -(2**63), 0
    for time in every:
        late += time < latest
        latest = max(latest, time)
    assert (made.in_order, made.late) == ((late == 0, late) if ordered else (None, None))


def test_one_time_and_one_key_fill_several_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tuples that the order does not tell apart are shared between parts, none is in two."""
    monkeypatch.setattr(layout, "PART_ROWS", 1000)
    monkeypatch.setattr(sort_tuples, "RANGE_TUPLES", 300)
    splits = [[Given(7, b"a", 0.0, 0.0)] * 2500, [Given(3, b"b", 0.0, 0.0), *[Given(7, b"a", 0.0, 0.0)] * 900]]
    run(tmp_path, splits, ordered=False, head=None)
    assert made_of(tmp_path) == [(3, b"b", 0.0, bytes(8)), *[(7, b"a", 0.0, bytes(8))] * 3400]
    assert len(list((tmp_path / "tuples").iterdir())) == 4


def test_keys_that_a_head_leaves_out_are_gone(tmp_path: Path) -> None:
    splits = [[Given(1, b"a", 0.0, 0.0), Given(9, b"b", 0.0, 0.0)], [Given(9, b"c", 0.0, 0.0)]]
    made = run(tmp_path, splits, ordered=True, head=1)
    assert (made.keys, made_of(tmp_path)) == (1, [(1, b"a", 0.0, bytes(8))])


def test_rejects_are_cut_exactly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write_parts, "REJECT_ROWS", 4)

    def with_rejects(number: int) -> Iterator[pa.RecordBatch]:
        yield from blocks([[Given(1, b"a", 0.0, 0.0)], [Given(2, b"a", 0.0, 0.0)]], number)
        for start in (0, 3):
            columns = {"line": [start + n for n in range(3)], "reason": ["r"] * 3, "text": [f"{number}"] * 3}
            yield write_parts.block("rejects", columns, segment=number, place=start)

    runner = LocalRunner(Silent())
    frame = runner.tasks(2, with_rejects).keep()
    found = sorted(read_segment(row) for row in frame.stats("segment"))
    rejects = Rejects({0: write_parts.RejectsOf("x", 0, 0), 1: write_parts.RejectsOf("x", 10, 6)}, 12)
    make_parts(runner, frame, found, locate(tmp_path), rejects, Wanted())
    tables = [pq.read_table(path) for path in sorted((tmp_path / "rejects").iterdir())]
    assert [len(table) for table in tables] == [4, 4, 4]
    assert pa.concat_tables(tables).column("line").to_pylist() == [*range(6), *range(10, 16)]


def test_opens_grow_with_the_splits_and_no_faster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A split is opened a few times, however many others there are: nothing opens what other tasks have written."""
    source = tmp_path / "x.csv"
    source.write_text("time,key\n" + "".join(f"{n},k{n % 97}\n" for n in range(4000)))
    opened = 0
    open_input = StoragePath.open_input

    def counted(place: StoragePath) -> Any:
        nonlocal opened
        opened += 1
        return open_input(place)

    monkeypatch.setattr(StoragePath, "open_input", counted)
    found, prints = [], set()
    for splits in (10, 20, 40, 80):
        monkeypatch.setattr(lines, "SPLIT_BYTES", -(-source.stat().st_size // splits))
        options = make_options(
            reader="csv", inputs=(str(source),), output=tmp_path / "x.trace", engine="local", overwrite=True
        )
        opened = 0
        prints.add(ingest(options).manifest.fingerprint)
        found.append(opened)
    assert len(prints) == 1
    assert all(count <= 4 * splits + 16 for splits, count in zip((10, 20, 40, 80), found, strict=True)), found


@pytest.mark.parametrize("later", [[[Given(1, b"b", 0, 0)], [Given(2, b"a", 0, 0)]], [[Given(1, b"a", 0, 0)] * 2, []]])
def test_a_source_that_gives_other_rows_the_second_time_makes_no_trace(tmp_path: Path, later: Any) -> None:
    """As a partition that was lost with its executor, and is computed again by a query without an order."""
    source = [[Given(1, b"a", 0.0, 0.0)], [Given(2, b"b", 0.0, 0.0)]]
    runner = LocalRunner(Silent())
    frame = runner.tasks(2, lambda number: blocks(source, number))
    found = sorted(read_segment(row) for row in frame.stats("segment"))
    source[:] = later
    with pytest.raises(RunError, match="gave other rows"):
        make_parts(runner, frame, found, locate(tmp_path), Rejects({}, 0), Wanted())
    assert list(tmp_path.iterdir()) == []
