"""A stretch of a trace is what a trace of those tuples alone would be."""

import itertools
from pathlib import Path

import numpy as np
import pytest

from streamgroup.replay.replay_trace import replay
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.traces.trace import Trace, open_trace
from streamgroup.traces.trace_segment import take_slice
from tests.traces_by_hand import write_trace

TUPLES = [(i * 1000, b"k%d" % (i * i % 37 if i < 300 else i % 11), 1.0 + i % 3) for i in range(600)]


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    return open_trace(write_trace(tmp_path / "t", TUPLES, parts=3))


def _texts(trace: Trace) -> list[str | None]:
    ids = np.concatenate([batch.key_id for batch in trace.batches(("key_id",)) if batch.key_id is not None])
    return trace.key_texts(ids.tolist())


@pytest.mark.parametrize(("start", "stop"), [(0, 600), (0, 1), (599, 600), (150, 450), (200, 400)])
def test_a_stretch_holds_its_tuples(trace: Trace, start: int, stop: int) -> None:
    found = take_slice(trace, start, stop)
    part = TUPLES[start:stop]
    assert _texts(found) == [key.decode() for _, key, _ in part]
    (batch,) = found.batches(("timestamp", "cost"))
    assert batch.timestamp is not None
    assert batch.cost is not None
    assert batch.timestamp.tolist() == [when for when, _, _ in part]
    assert batch.cost.tolist() == [cost for _, _, cost in part]
    assert (found.tuples, found.first_timestamp, found.last_timestamp) == (len(part), part[0][0], part[-1][0])
    assert found.total_cost_ns == sum(int(cost * 1000) for _, _, cost in part)
    counts = found.dictionary().count.tolist()
    assert counts == sorted(counts, reverse=True)
    assert sum(counts) == len(part)
    assert found.keys == len({key for _, key, _ in part})
    assert found.p1 == counts[0] / len(part)


@pytest.mark.parametrize("grouping", ["pkg", "kafka:partitions=8"])
def test_a_stretch_is_replayed_as_a_trace_of_its_own(trace: Trace, tmp_path: Path, grouping: str) -> None:
    alone = open_trace(write_trace(tmp_path / "alone", TUPLES[200:400]))
    options = ReplayOptions(grouping, 4, arrivals="utilization=0.9", warmup="20%")
    one, other = (replay(each, options, interpreted=True) for each in (take_slice(trace, 200, 400), alone))
    assert one.worker.tuples.tolist() == other.worker.tuples.tolist()
    assert one.worker.latency_sum_ns == other.worker.latency_sum_ns
    assert one.worker.keys.tolist() == other.worker.keys.tolist()


@pytest.mark.parametrize(("stop", "nulls"), [(30, 1), (5, 0)])
def test_all_keys_are_there_as_joined_bytes(tmp_path: Path, stop: int, nulls: int) -> None:
    keys = [b"long key", b"", b"b", "한".encode(), b"long key", None, b"b"]
    trace = open_trace(write_trace(tmp_path / "t", [(at, keys[at % 7], None) for at in range(30)]))
    found = take_slice(trace, 1, stop)
    data, start, null = found.packed_keys()
    packed = [data[begin:end].tobytes() for begin, end in itertools.pairwise(start)]
    listed = list(found.all_keys())
    assert packed == [key or b"" for key in listed]
    assert listed.count(None) == nulls
    assert null == (listed.index(None) if nulls else -1)


def test_what_is_handed_out_is_read_only_and_has_one_form(trace: Trace) -> None:
    found = take_slice(trace, 100, 500)
    for batch in found.batches(("timestamp", "key_id", "cost"), start=7):
        assert batch.offset == 7
        for array, kind in ((batch.timestamp, "i8"), (batch.key_id, "u4"), (batch.cost, "f4")):
            assert array is not None
            assert array.dtype == kind
            assert array.flags.c_contiguous
            assert not array.flags.writeable
    assert not any(array.flags.writeable for array in found.dictionary())


def test_stretches_have_names_of_their_own(trace: Trace) -> None:
    assert take_slice(trace, 0, 300).fingerprint() == take_slice(trace, 0, 300).fingerprint()
    assert take_slice(trace, 0, 300).fingerprint() != take_slice(trace, 300, 600).fingerprint()


@pytest.mark.parametrize(("start", "stop"), [(-1, 5), (5, 5), (6, 5), (0, 601)])
def test_there_are_only_the_tuples_of_the_trace(trace: Trace, start: int, stop: int) -> None:
    with pytest.raises(ValueError, match="of 600"):
        take_slice(trace, start, stop)


def test_columns_that_no_replay_reads_are_not_there(trace: Trace) -> None:
    with pytest.raises(ValueError, match="no columns value"):
        list(take_slice(trace, 0, 5).batches(("value",)))
