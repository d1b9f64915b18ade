"""The load of workers by head and tail, in truth, by hand; and thresholds that are none."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamgroup.base.errors import UsageError
from streamgroup.metrics.run_tables import tables
from streamgroup.replay.replay_trace import replay
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.traces.trace import Trace, open_trace
from tests.traces_by_hand import write_trace


def trace_of(place: Path, keys: str) -> Trace:
    return open_trace(write_trace(place, [(1000 * i, key.encode(), None) for i, key in enumerate(keys)]))


def parts(trace: Trace, **options: Any) -> list[tuple[int, int]]:
    made = tables(replay(trace, ReplayOptions("kg", **options), interpreted=True))["workers"].to_pydict()
    assert made["tuples"] == [
        head + tail for head, tail in zip(made["true_head_tuples"], made["true_tail_tuples"], strict=True)
    ]
    return list(zip(made["true_head_tuples"], made["true_tail_tuples"], strict=True))


@pytest.mark.parametrize(
    ("threshold", "head"),
    [("1/5n", 8), ("1/2", 6), ("0.6", 6), ("0.61", 0), ("1/(5n)", 8), ("1/n", 0), ("0.2", 8), ("1/10", 10), ("own", 8)],
)
def test_the_head_is_of_the_keys_with_the_share_of_all_tuples(tmp_path: Path, threshold: str, head: int) -> None:
    """Of ten tuples a has 6, b 2, c and d one each; on one worker 1/5n is a fifth, and 1/n all of them."""
    trace = trace_of(tmp_path / "t", "aabacaabda")
    assert parts(trace, workers=1, hot_threshold=threshold) == [(head, 10 - head)]


def test_heads_are_of_the_whole_trace_and_loads_of_what_is_measured(tmp_path: Path) -> None:
    """b is in the head by its four tuples of the warm-up alone."""
    trace = trace_of(tmp_path / "t", "bbbbaaacab")
    assert parts(trace, workers=1, hot_threshold="0.4", warmup="4") == [(5, 1)]


@pytest.mark.parametrize("threshold", ["0", "1.5", "3/2", "hot", "1/0", "-0.1", "1%"])
def test_a_threshold_that_is_none(tmp_path: Path, threshold: str) -> None:
    with pytest.raises(UsageError, match="--hot-threshold"):
        parts(trace_of(tmp_path / "t", "ab"), workers=1, hot_threshold=threshold)


def test_heads_do_not_depend_on_the_numbers_of_keys(tmp_path: Path) -> None:
    """That ids go by descending count is a promise of our writer only: here the most frequent key is the last."""
    text, order = "aabacaabda", "dbca"
    path = tmp_path / "t"
    (path / "tuples").mkdir(parents=True)
    (path / "keys").mkdir()
    tuples = {
        "timestamp": pa.array(range(len(text)), pa.int64()),
        "key_id": pa.array([order.index(key) for key in text], pa.uint32()),
    }
    keys = {
        "key_id": pa.array(range(len(order)), pa.uint32()),
        "key": pa.array(list(order)),
        "count": pa.array([text.count(key) for key in order], pa.uint64()),
    }
    pq.write_table(pa.table(tuples), path / "tuples" / "part-00000.parquet")
    pq.write_table(pa.table(keys), path / "keys" / "part-00000.parquet")
    (path / "trace.json").write_text('{"format_version": 1}')
    shuffled = open_trace(path)
    for threshold, head in {"1/2": 6, "1/5n": 8, "0.61": 0, "1/10": 10}.items():
        assert parts(shuffled, workers=1, hot_threshold=threshold) == [(head, 10 - head)]
    # A crash sends those that were not served once more: these are heads, too.
    changes: dict[str, Any] = {"workers": 3, "hot_threshold": "0.2", "crash": ("50%:0",), "redeliver": True}
    assert parts(shuffled, **changes) == parts(trace_of(tmp_path / "s", text), **changes)
