"""What workers report in a streaming run, on its way to the sources, without Spark."""

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import streamgroup as sg
from streamgroup.base.errors import RunError, UsageError
from streamgroup.engine_runs.engine_options import EngineOptions
from streamgroup.engine_runs.engine_outcome import sent
from streamgroup.engine_runs.run_on_engine import _tuples, check_run
from streamgroup.engine_runs.source_task import SourceJob
from streamgroup.engine_runs.spark_streaming.checkpoint import WARM_UPS, Checkpoint, belongings, file_name, opened
from streamgroup.engine_runs.spark_streaming.query_columns import READ
from streamgroup.engine_runs.spark_streaming.source_operator import SourceOperator
from streamgroup.engine_runs.spark_streaming.worker_reports import (
    choice_times,
    delays,
    reports_of,
    rows_for_sources,
    tuples_of,
)
from streamgroup.replay.prepared_run import Run
from streamgroup.replay.replay_trace import prepared
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.study.summary.predicted_and_measured import listened
from streamgroup.traces.trace import open_trace
from tests.naive.streaming_with_feedback import choices

N, TUPLES, SIZE = 4, 400, 60
ORIGIN = 1_700_000_000 * 10**9
# In the state of a source whose sketches are small, so that they come soon.
POSG = "posg:batch=5,rows=2,columns=16"
FISH = "fish:interval=100ms,epoch=50"


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("reports") / "z.trace"
    sg.synth("zipf", path, tuples=TUPLES, keys=50, exponent=1.1, seed=3)
    return path


def run(trace: Path, grouping: str, sources: int) -> Run:
    options = ReplayOptions(grouping, N, sources=sources, service="1ms", slowdown="half:2", arrivals="utilization=0.8")
    return prepared(open_trace(trace), options)


def served(rows: list[tuple[int, int, int, int]]) -> pa.Table:
    """Tuples as workers return them (seq, worker, start, finish), and a row that is a report."""
    names = ("seq", "worker", "start", "finish")
    columns = {name: [*(row[i] for row in rows), -1] for i, name in enumerate(names)}
    return pa.table({**columns, "report": [*([None] * len(rows)), "{}"]})


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9)), min_size=1, max_size=20),
    st.lists(st.integers(-30, 30), min_size=4, max_size=4),
    st.integers(0, 40),
    st.randoms(use_true_random=False),
)
def test_reports_of_a_batch(services: list[tuple[int, int]], behind: list[int], heard: int, random: Any) -> None:
    """Workers begin at 50 by clocks that are off; tuples arrived until 40, and a report of before is of `heard`."""
    clock = [50 + off for off in behind]
    first, rows, expected = {}, [], []
    for seq, (worker, takes) in enumerate(services, 7):
        start = clock[worker]
        clock[worker] = start + takes
        first.setdefault(worker, start)
        rows.append((seq, worker, ORIGIN + start, ORIGIN + clock[worker]))
        # No worker starts before the last choice.
        late = max(0, max(40, heard) - first[worker])
        expected.append((clock[worker] + late, worker, seq, first[worker] + late, start + late))
    blank = {"label": 1, "source": 0, "key_id": 5, "key": b"k", "cost": None}
    read = [
        {**blank, "seq": seq, "key_id": seq, "key": b"%d" % seq, "arrival": at, "worker": -1, "start": -1, "finish": -1}
        for seq, at in zip(range(7, 7 + len(rows)), np.linspace(0, 40, len(rows) + 1)[1:].astype(int), strict=True)
    ]
    if heard:
        read.append({**blank, "seq": 3, "arrival": 0, "worker": 2, "start": 0, "finish": heard})
    random.shuffle(rows)
    random.shuffle(read)
    found = reports_of(pa.Table.from_pylist(read, schema=READ), served(rows), ORIGIN).to_pylist()
    assert [(row["finish"], row["worker"], row["seq"], row["arrival"], row["start"]) for row in found] == sorted(
        expected
    )
    assert all((row["key_id"], row["key"]) == (row["seq"], b"%d" % row["seq"]) for row in found)
    if all(one >= max(40, heard) for one in first.values()):
        # By clocks that are right nothing is moved.
        assert sorted((row["seq"], row["start"] + ORIGIN, row["finish"] + ORIGIN) for row in found) == sorted(
            (seq, start, finish) for seq, _, start, finish in rows
        )


def test_reports_of_other_tuples_are_an_error() -> None:
    read = pa.Table.from_pylist(
        [{"label": 1, "source": 0, "seq": 0, "key_id": 0, "key": b"k", "arrival": 0, "cost": None, "worker": -1,
          "start": -1, "finish": -1}], schema=READ,
    )  # fmt: skip
    with pytest.raises(RunError, match="other batches than it was given"):
        reports_of(read, served([(1, 0, ORIGIN, ORIGIN)]), ORIGIN)


class _State:
    """The value state of an operator, and what keeps it."""

    def __init__(self) -> None:
        self.value: Any = None

    def getValueState(self, name: str, schema: str) -> "_State":  # noqa: N802
        assert (name, schema) == ("grouping", "decided long, saved binary")
        return self

    def exists(self) -> bool:
        return self.value is not None

    def get(self) -> Any:
        return self.value

    def update(self, value: Any) -> None:
        self.value = value


def batch_of(operator: SourceOperator, rows: pa.Table) -> pd.DataFrame:
    """What the operator of a source yields for its rows of an input file, which come in any order, in two pieces."""
    frame = rows.to_pandas().sample(frac=1, random_state=len(rows))
    pieces: Iterator[pd.DataFrame] = iter([frame[: len(frame) // 2], frame[len(frame) // 2 :]])
    found: list[pd.DataFrame] = list(operator.handleInputRows(None, pieces, None))  # type: ignore[arg-type]
    return pd.concat(found)


def serve(checkpoint: Checkpoint, one: Run, batch: int, states: list[_State], behind: int) -> dict[int, int]:
    """Run a delivered batch as the query does, by a clock: sources choose, workers serve, the batch is committed."""
    read = pq.read_table(checkpoint.path / "input" / file_name(batch))
    rows: list[tuple[int, int, int, int]] = []
    frames = []
    job = SourceJob(dataclasses.replace(one.plan.options, control_delay="0"), one.service)
    for source, state in enumerate(states):
        operator = SourceOperator(job, list(range(N)))
        operator.init(state)  # type: ignore[arg-type]
        frames.append(batch_of(operator, read.filter(pa.compute.equal(read["source"], source))))
    chosen = pd.concat(frames)
    tuples = chosen[chosen["seq"] >= 0].sort_values("seq")
    begins = max([0, *(row["arrival"] for row in read.to_pylist())]) + 5_000_000 * batch
    for worker in range(N):
        # The clock of worker 1 is behind.
        clock = ORIGIN + begins + 1000 * worker - (behind if worker == 1 else 0)
        for seq, takes in tuples[tuples["worker"] == worker][["seq", "service"]].itertuples(index=False):
            rows.append((int(seq), worker, clock, clock + int(takes)))
            clock += int(takes)
    (checkpoint.path / "output").mkdir(exist_ok=True)
    pq.write_table(served(rows), checkpoint.path / "output" / file_name(batch))
    commits = checkpoint.path / "spark" / "commits"
    commits.mkdir(parents=True, exist_ok=True)
    (commits / str(batch)).write_text("v1")
    assert checkpoint.look() == 1
    return dict(zip(tuples["seq"].tolist(), tuples["worker"].tolist(), strict=True))


@pytest.mark.parametrize(
    ("grouping", "sources", "behind"),
    [(POSG, 1, 0), (POSG, 1, 10**9), (FISH, 3, 0), (FISH, 3, 10**9), ("consistent_grouping:window=20ms,busy=0.1", 1, 0),
     ("load_aware:rule=storm,report=20ms,refresh=10ms,queue=20", 1, 0)],
)  # fmt: skip
def test_sources_hear_of_a_batch_before_they_choose_for_the_next(
    trace: Path, tmp_path: Path, grouping: str, sources: int, behind: int
) -> None:
    """Through the operator and the files, broken off and opened again; then from the files, tuple by tuple."""
    one = run(trace, grouping, sources)
    table, belongs = _tuples(one), belongings(one, "sleep", SIZE)
    states = [_State() for _ in range(sources)]
    found: dict[int, int] = {}
    for stop in (WARM_UPS + 3, WARM_UPS + 7):
        with opened(tmp_path / "c", belongs, table, N, listens=True) as checkpoint:
            while len(checkpoint.commits) < stop:
                due = checkpoint.due()
                assert due is not None
                checkpoint.deliver()
                batch = len(checkpoint.commits)
                if checkpoint.origin_ns is not None:
                    # Nothing goes on before the batch is committed.
                    assert checkpoint.due() is None
                found |= serve(checkpoint, one, batch, states, behind)
                if batch == WARM_UPS - 1:
                    assert (checkpoint.origin_ns, checkpoint.due()) == (None, None)
                    checkpoint.begin(ORIGIN)
    assert not list((tmp_path / "c" / "waiting").iterdir())
    files = [pq.read_table(tmp_path / "c" / "input" / file_name(batch)) for batch in range(WARM_UPS + 7)]
    times = [(tmp_path / "c" / "input" / file_name(batch)).stat().st_mtime for batch in range(WARM_UPS + 7)]
    assert times == sorted(set(times))
    sizes = [SIZE] * 6 + [TUPLES - 6 * SIZE]
    assert [len(tuples_of(file)) for file in files[WARM_UPS:]] == sizes
    # All sources hear of all tuples of the batch before.
    assert [len(file) - len(tuples_of(file)) for file in files[WARM_UPS:]] == [0, *(sources * n for n in sizes[:-1])]
    assert found == choices([file.to_pylist() for file in files], grouping, N, sources)
    assert len(found) == TUPLES
    deaf = choices([tuples_of(file).to_pylist() for file in files], grouping, N, sources)
    assert found != deaf


def test_a_delivery_that_was_broken_off_is_the_same_once_more(trace: Path, tmp_path: Path) -> None:
    one = run(trace, POSG, 1)
    table, belongs = _tuples(one), belongings(one, "sleep", SIZE)
    place, states = tmp_path / "c", [_State()]
    with opened(place, belongs, table, N, listens=True) as checkpoint:
        for batch in range(WARM_UPS + 2):
            checkpoint.deliver()
            serve(checkpoint, one, batch, states, 0)
            checkpoint.begin(ORIGIN)
        name = file_name(WARM_UPS + 2)
        waiting = (place / "waiting" / name).read_bytes()
        checkpoint.deliver()
        delivered = (place / "input" / name).read_bytes()
    # As if it had been killed before the file was in its place, and while it wrote.
    (place / "input" / name).unlink()
    (place / "waiting" / name).write_bytes(waiting)
    (place / "waiting" / name).with_suffix(".whole").write_bytes(delivered[:100])
    with opened(place, belongs, table, N, listens=True) as again:
        again.deliver()
        assert (place / "input" / name).read_bytes() == delivered
        # As if it had been killed before what had been waiting was removed.
        (place / "waiting" / name).write_bytes(waiting)
    with opened(place, belongs, table, N, listens=True) as last:
        assert last.due() is None
        serve(last, one, WARM_UPS + 2, states, 0)
        last.deliver()
        assert (place / "input" / file_name(WARM_UPS + 3)).exists()


def test_a_source_chooses_at_the_latest_report_or_the_arrival() -> None:
    assert choice_times(np.array([3, 5, 9]), 6).tolist() == [6, 6, 9]
    assert choice_times(np.array([3, 5, 9]), 0).tolist() == [3, 5, 9]


def test_rows_are_for_every_source() -> None:
    reports = pa.Table.from_pylist(
        [{"label": -1, "source": -1, "seq": 4, "key_id": 2, "key": None, "arrival": 1, "cost": None, "worker": 0,
          "start": 2, "finish": 3}], schema=READ,
    )  # fmt: skip
    found = rows_for_sources(reports, [17, 4]).to_pylist()
    assert [(row.pop("source"), row.pop("label")) for row in found] == [(0, 17), (1, 4)]
    assert found[0] == found[1] == {name: reports.to_pylist()[0][name] for name in READ.names[2:]}


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 50)), min_size=1, max_size=20), st.data())
def test_delays_are_those_of_each_report_at_each_source(tuples: list[tuple[int, int]], data: st.DataObject) -> None:
    batch, finish = (np.array(column) for column in zip(*tuples, strict=True))
    taken = data.draw(st.dictionaries(st.integers(1, 4), st.lists(st.integers(60, 99), min_size=1, max_size=3)))
    expected = [
        at - tuples[i][1] for i in range(len(tuples)) for at in taken.get(tuples[i][0] + 1, [])
    ]  # fmt: skip
    found = delays(finish, batch, taken)
    assert found["reports"] == len(expected)
    if not expected:
        assert (found["delay_mean_ms"], found["delay_max_ms"]) == (None, None)
    else:
        assert found["delay_mean_ms"] == pytest.approx(sum(expected) / len(expected) / 1e6)
        assert found["delay_max_ms"] == max(expected) / 1e6


def test_messages_of_workers_count_once() -> None:
    """Each source that listens has all workers, and what these send to all sources, in its state."""
    reports = [{"state": 5, "messages": 6, "bytes": 80}, {"state": 4, "messages": 6, "bytes": 90}]
    assert sent(reports) == (5, 12, 170)
    assert sent(reports, listens=True) == (5, 6, 90)
    assert sent([]) == sent([], listens=True) == (0, 0, 0)


@pytest.mark.parametrize(
    ("given_options", "size", "says"),
    [
        ({"grouping": "posg", "sources": 1}, 60, None),
        ({"grouping": "fish", "sources": 3, "control_delay": "0ms", "network_delay": "5ms"}, 60, None),
        ({"grouping": "fish", "sources": 3, "control_delay": "2ms"}, 60, "their reports take the time that they take"),
        ({"grouping": "posg", "sources": 2}, 60, "count what all sources sent them: use one source"),
        ({"grouping": "posg:message_service=1us", "sources": 1}, 60, "message_service: control servers are simulated"),
        ({"grouping": "posg", "sources": 1}, TUPLES, "--micro-batch holds the whole trace"),
        ({"grouping": "posg", "sources": 1}, TUPLES - 1, None),
        ({"grouping": "fish:hwa=false", "sources": 3, "control_delay": "2ms"}, TUPLES, None),
    ],
)
def test_what_is_refused(trace: Path, given_options: dict[str, Any], size: int, says: str | None) -> None:
    options = ReplayOptions(**{"workers": N, "arrivals": "rate=100", **given_options})
    engine = EngineOptions(micro_batch=size)
    if says is None:
        check_run(trace, options, engine)
    else:
        with pytest.raises(UsageError, match=says):
            check_run(trace, options, engine)


def test_a_comparison_says_why_assignments_differ() -> None:
    assert listened({"engine": {}}) is None
    assert listened({}) is None
    text = listened({"engine": {"feedback": {"reports": 3, "delay_mean_ms": 20.5, "delay_max_ms": 30.0}}})
    assert "20.5 ms late on average" in str(text)
    assert "not expected to be equal" in str(text)
