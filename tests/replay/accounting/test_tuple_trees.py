"""Tuple trees: as the twin finds them, however the stream is cut; with lost and dropped tuples; and broken columns."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgroup.base.errors import DataError
from streamgroup.metrics import tuple_trees as family
from streamgroup.metrics.run_tables import summary
from streamgroup.replay.accounting.tuple_trees import Trees
from streamgroup.replay.replay_trace import replay
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.traces.checks.validate import validate
from streamgroup.traces.read_batches import Batch
from streamgroup.traces.trace import open_trace
from streamgroup.traces.trace_segment import take_slice
from tests.metrics.compare_with_naive import assert_same
from tests.metrics.test_published_vectors_and_large_sums import outcome
from tests.naive.tuple_trees import tree_metrics
from tests.traces_by_hand import write_trace

LOST = -2


def batches(parents: list[int], size: int) -> Iterator[Batch]:
    for start in range(0, len(parents), size):
        yield Batch(start, None, None, parent=np.array(parents[start : start + size], np.int64))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 9), st.integers(0, 1 << 40), st.integers(0, 9)), min_size=1),
    st.integers(1, 5), st.integers(1, 5), st.integers(0, 4),
)  # fmt: skip
def test_as_the_twin_finds_them(rows: list[tuple[int, ...]], read: int, sent: int, warmup: int) -> None:
    parents, arrivals = np.cumsum([[row[0] for row in rows], [row[1] for row in rows]], axis=1).tolist()
    finishes = [LOST if row[3] == 0 else at + row[2] for row, at in zip(rows, arrivals, strict=True)]
    made = Trees(batches(parents, read), warmup)
    for start in range(0, len(rows), sent):
        columns = (np.array(column[start : start + sent], np.int64) for column in (arrivals, finishes))
        made.add(start, *columns)
    found = family.measure(replace(outcome(), trees=made.table()))
    expected = tree_metrics(parents, arrivals, [None if at < 0 else at for at in finishes], warmup)
    assert found.keys() == expected.keys()
    for name, value in found.items():
        if value is not None and name[13:16] in ("p50", "p95", "p99"):
            assert value == pytest.approx(expected[name], rel=0.005)
        else:
            assert_same(name, value, expected[name])


def with_parents(path: Path, parents: pa.Array, tuples: int = 300) -> Path:
    """A trace of 300 tuples, one a us, in two parts, with this column."""
    write_trace(path, [(i * 1000, b"k%d" % (i * i % 17), None) for i in range(tuples)], parts=2)
    half = -(-tuples // 2)
    for part, start in enumerate((0, half)):
        file = path / "tuples" / f"part-{part:05d}.parquet"
        table = pq.read_table(file)
        pq.write_table(table.append_column("parent", parents.slice(start, table.num_rows)), file)
    return path


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"arrivals": "saturate", "max_pending": 3},
        {"queue_capacity": 2, "when_full": "drop"},
        {"crash": ("50%",)},
        {"crash": ("50%",), "redeliver": True},
        {"warmup": "31"},
    ],
)
def test_of_a_run(tmp_path: Path, more: dict[str, Any]) -> None:
    parents = [i // 7 * 10 for i in range(300)]
    trace = open_trace(with_parents(tmp_path / "t.trace", pa.array(parents, pa.int64())))
    options = ReplayOptions("pkg", 3, **{"arrivals": "utilization=1.2", **more})
    found = summary(replay(trace, options, interpreted=True, log_directory=tmp_path / "log"))
    log = pl.read_parquet(tmp_path / "log" / "*.parquet")
    finishes, arrivals = log["finish_ns"].to_list(), log["arrival_ns"].to_list()
    expected = tree_metrics(parents, arrivals, finishes, int(more.get("warmup", 0)))
    for name, value in expected.items():
        assert found[name] == (pytest.approx(value, rel=0.005) if isinstance(value, float) else value), name
    trees = found["trees"]
    assert isinstance(trees, int)
    assert trees > 0
    assert float(found["latency_tree_p50_ms"] or 0) >= float(found["latency_p50_ms"] or 0)


def test_without_parents_there_are_no_trees(tmp_path: Path) -> None:
    trace = open_trace(write_trace(tmp_path / "t.trace", [(i, b"k", None) for i in range(9)]))
    found = summary(replay(trace, ReplayOptions("kg", 2), interpreted=True))
    assert {found[name] for name in found if "tree" in name} == {None}


def test_the_fingerprint_has_the_parents_where_there_are_some(tmp_path: Path) -> None:
    def made(name: str, parents: list[int] | None) -> str:
        path = tmp_path / name
        if parents is None:
            write_trace(path, [(i * 1000, b"k%d" % (i * i % 17), None) for i in range(300)], parts=2)
        else:
            with_parents(path, pa.array(parents, pa.int64()))
        return open_trace(path).fingerprint()

    assert len({made("none", None), made("zero", [0] * 300), made("own", list(range(300)))}) == 3
    # As before there was such a column.
    assert made("again", None) == "a562de539813f5e8be1d828499109b7f65105410925bb60aa21e2c63707c47d1"


def test_a_slice_keeps_its_parents(tmp_path: Path) -> None:
    trace = open_trace(with_parents(tmp_path / "t.trace", pa.array([i // 7 for i in range(300)], pa.int32())))
    piece = take_slice(trace, 3, 20)
    rows = [batch.parent.tolist() for batch in piece.batches(("parent",)) if batch.parent is not None]
    assert rows == [[i // 7 for i in range(3, 20)]]
    assert summary(replay(piece, ReplayOptions("kg", 2), interpreted=True))["trees"] == 3


BACK = [*range(150), 3, *range(151, 300)]


@pytest.mark.parametrize(
    ("parents", "words"),
    [
        (pa.array(BACK, pa.int64()), "tuple 150: parent 3 is smaller than the one before it"),
        (pa.array([None if i == 200 else i for i in range(300)], pa.int64()), "tuple 200 has no parent"),
        (pa.array([float(i) for i in range(300)]), "column parent is double, not an integer"),
        (pa.array([str(i) for i in range(300)]), "column parent is string, not an integer"),
        (pa.array([2**63 + i for i in range(300)], pa.uint64()), "parent 92233.* is over 2\\^63 - 1"),
    ],
)
def test_a_broken_column(tmp_path: Path, parents: pa.Array, words: str) -> None:
    path = with_parents(tmp_path / "t.trace", parents)
    with pytest.raises(DataError, match=words):
        open_trace(path)
    assert any("parent" in finding.message for finding in validate(path) if finding.level == "error")


def test_parents_that_go_back_are_seen_where_a_manifest_is_trusted() -> None:
    made = Trees(batches(BACK, 40), 0)
    made.add(0, np.zeros(150, np.int64), np.ones(150, np.int64))
    with pytest.raises(DataError, match="tuple 150 has a smaller parent"):
        made.add(150, np.zeros(150, np.int64), np.ones(150, np.int64))
