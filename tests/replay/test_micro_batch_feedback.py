"""`--engine-model micro-batch` for groupings that listen: against a slow twin, and from one process for each source."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import streamgroup as sg
from streamgroup.base.errors import UsageError
from streamgroup.metrics.run_tables import summary
from streamgroup.replay.cut_batches import Batches
from streamgroup.replay.replay_trace import replay
from streamgroup.replay.scenario.micro_batch_option import parse_engine_model
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.traces.trace import open_trace
from tests.naive.option_texts import time_ns
from tests.naive.replay.micro_batches import Listened, listening
from tests.naive.replay.options import Options, TraceTuple
from tests.naive.replay.random_scenarios import Scenario
from tests.naive.streaming_with_feedback import choices
from tests.traces_by_hand import write_trace

LISTENING = [
    "posg:batch=8,mu=1,columns=20",
    "posg:batch=8,mu=0.5,rows=2,columns=5,sync=exec,stability=literal,reply_delay=2ms,matrix_delay=1ms",
    "posg:batch=8,mu=0.5,message_service=600us,resync_windows=2",
    "fish:interval=20ms,epoch=50,capacity=20,alpha=0.5",
    "fish:scope=global,interval=5ms,drain=literal",
    "load_aware:traverse=3,buffer=4",
    "load_aware:rule=storm,report=11ms,refresh=4ms,queue=40",
    "consistent_grouping:window=5ms,busy=0.1",
]
SIZES = [("micro-batch=70,overhead=15ms", 70, 0, "15ms"), ("micro-batch=9ms", 0, 9_000_000, "0")]


def stream(count: int, seed: int = 3, costs: bool = False) -> list[TraceTuple]:
    """Tuples about 100 us apart, some at one instant."""
    draws = np.random.default_rng(seed)
    keys = np.minimum(draws.zipf(1.3, count), 90)
    times = 1_600_000_000_000_000 + np.cumsum(draws.choice([0, 30, 100, 270], count))
    cost = draws.choice([100.0, 250.0, 900.0], count)
    return [
        (int(at), b"key %d" % key, float(us) if costs else None)
        for at, key, us in zip(times, keys, cost, strict=True)
    ]  # fmt: skip


def options(grouping: str, sources: int, **changed: Any) -> dict[str, Any]:
    return {
        "grouping": grouping, "workers": 4, "sources": sources, "source_assignment": "shuffle", "arrivals": "trace",
        "spread_ties": False, "speedup": "1", "max_pending": 1000, "service": "300us", "service_distribution": None,
        "slowdown": "half:2", "slowdown_at": (), "speed_jitter": None, "queue_capacity": None, "when_full": None,
        "join": (), "leave": (), "crash": (), "redeliver": False, "network_delay": "0", "control_delay": "0",
        "warmup": "0", "window": "10%", "aggregate_every": None, "seed": 1, "hash_seed": 1, **changed,
    }  # fmt: skip


def replayed(
    tuples: list[TraceTuple], given_options: dict[str, Any], model: str, directory: Path, interpreted: bool | None
) -> tuple[dict[str, list[Any]], dict[str, Any]]:
    """The log, in the stream's order, and the metrics."""
    trace = open_trace(write_trace(directory / "x.trace", tuples))
    outcome = replay(
        trace, ReplayOptions(**given_options, engine_model=model), log_directory=directory / "log",
        interpreted=interpreted,
    )  # fmt: skip
    log = pq.read_table(directory / "log").sort_by("seq")
    return {name: log[name].to_pylist() for name in log.column_names}, summary(outcome)


def twin(tuples: list[TraceTuple], given_options: dict[str, Any], size: int, every: int, overhead: str) -> Any:
    """The batches of the naive twin, and its grouping at the end."""
    scenario = Scenario(tuples, given_options)
    grouping = scenario.grouping()
    found = listening(
        tuples, grouping, Options(**scenario.twin_options()), tuples=size, every=every, overhead=time_ns(overhead)
    )
    return found, grouping


def agree(log: dict[str, list[Any]], expected: Listened) -> None:
    assert log["worker"] == expected.worker
    assert log["finish_ns"] == expected.committed
    assert [end - start for start, end in zip(log["start_ns"], log["finish_ns"], strict=True)] == expected.service


class _Spy:
    """Sends all to worker 0, and keeps what it was asked and what it heard, in us."""

    allowed = 0

    def __init__(self) -> None:
        self.seen: list[tuple[Any, ...]] = []

    def tick(self, now: int) -> None:
        pass

    def choose(self, source: int, key: bytes, now: int) -> int:
        self.seen.append((source, now // 1000))
        return 0

    def executed(self, worker: int, key: bytes, arrival: int, start: int, finish: int) -> None:
        self.seen.append((worker, key, arrival // 1000, start // 1000, finish // 1000))


def test_the_twin_by_hand() -> None:
    """Four tuples, 1 us apart, two a batch; a service takes 5 us, the network 1 us, the overhead 10 us."""
    spy = _Spy()
    tuples: list[TraceTuple] = [(at, b"%d" % at, None) for at in range(4)]
    found = listening(
        tuples, spy, Options(1, sources=2, service_ns=5000, network_delay_ns=1000), tuples=2, overhead=10_000
    )
    # The first batch begins at 1 us, and is served from 2 us on; the second begins when the first is committed.
    assert found.committed == [22_000, 22_000, 43_000, 43_000]
    assert spy.seen == [(0, 0), (1, 1), (0, b"0", 2, 2, 7), (0, b"1", 2, 7, 12), (0, 12), (1, 12)]


@pytest.mark.many_groupings
@pytest.mark.parametrize("grouping", LISTENING)
@pytest.mark.parametrize(("model", "size", "every", "overhead"), SIZES)
@pytest.mark.parametrize("sources", [1, 3])
def test_the_same_choices_and_commits_as_the_twin(
    grouping: str, model: str, size: int, every: int, overhead: str, sources: int, tmp_path: Path
) -> None:
    tuples = stream(900)
    given_options = options(grouping, sources, network_delay="700us")
    log, row = replayed(tuples, given_options, model, tmp_path, True)
    expected, end = twin(tuples, given_options, size, every, overhead)
    agree(log, expected)
    assert row["control_messages"] == end.control_messages
    assert row["control_bytes"] == end.control_bytes
    hot = [allowed for allowed in expected.allowed if allowed]
    assert row["choices_mean"] == (sum(hot) / len(hot) if hot else None)
    assert row["makespan_s"] == max(expected.committed) / 1e9
    # It listens: without reports it would choose otherwise.
    sg.replay(
        tmp_path / "x.trace", grouping, 4, sources=sources, arrivals="trace", service="300us", slowdown="half:2",
        seed=1, hash_seed=1, engine_model="micro-batch=900", network_delay="700us", control_delay="0",
        output=tmp_path / "deaf", log=True,
    )  # fmt: skip
    differ = pq.read_table(tmp_path / "deaf" / "assignments").sort_by("seq")["worker"].to_pylist() != log["worker"]
    assert differ or grouping.startswith("load_aware:traverse")


@settings(max_examples=25, deadline=None)
@given(
    st.integers(1, 40), st.integers(0, 2**20), st.booleans(), st.sampled_from(["trace", "rate=3000", "rate=20000"]),
    st.sampled_from([("micro-batch=7", 7, 0, "0"), ("micro-batch=5ms,overhead=2ms", 0, 5_000_000, "2ms"),
                     ("micro-batch=1ms,overhead=100us", 0, 1_000_000, "100us")]),
    st.sampled_from([None, "exponential"]),
)  # fmt: skip
def test_any_stream_is_cut_and_served_as_by_the_twin(
    tmp_path_factory: pytest.TempPathFactory, count: int, seed: int, costs: bool, arrivals: str,
    model: tuple[str, int, int, str], distribution: str | None,
) -> None:  # fmt: skip
    tuples = stream(count, seed, costs)
    given_options = options(
        "posg:batch=2,mu=9,columns=4,rows=1", 2, arrivals=arrivals, service=None if costs else "300us",
        service_distribution=distribution,
    )  # fmt: skip
    log, _ = replayed(tuples, given_options, model[0], tmp_path_factory.mktemp("any"), True)
    agree(log, twin(tuples, given_options, *model[1:])[0])


@pytest.mark.parametrize("grouping", [LISTENING[0], pytest.param(LISTENING[3], marks=pytest.mark.slow)])
def test_compiled_as_interpreted(grouping: str, tmp_path: Path) -> None:
    found = []
    for interpreted in (False, True):
        directory = tmp_path / f"{interpreted}"
        directory.mkdir()
        log, row = replayed(stream(2000, costs=True), options(grouping, 3, service=None, warmup="130"),
                            "micro-batch=100,overhead=1ms", directory, interpreted)  # fmt: skip
        found.append((log, {name: value for name, value in row.items() if "seconds" not in name}))
    assert found[0] == found[1]


@pytest.mark.parametrize("warmup", ["140", "150", "1"])
def test_messages_of_the_warm_up_do_not_count(warmup: str, tmp_path: Path) -> None:
    """Those that workers send before the first measured tuple is chosen; reports come before their batch."""
    tuples, model = stream(900), "micro-batch=70"
    given_options = options(LISTENING[0], 1, warmup=warmup)
    log, row = replayed(tuples, given_options, model, tmp_path, True)
    whole, end = twin(tuples, given_options, 70, 0, "0")
    agree(log, whole)
    before = twin(tuples[: int(warmup) // 70 * 70 + 1], given_options, 70, 0, "0")[1]
    assert row["control_messages"] == end.control_messages - before.control_messages


@pytest.mark.parametrize(("grouping", "sources"), [(LISTENING[3], 3), (LISTENING[0], 1)])
def test_sources_of_their_own_choose_the_same(grouping: str, sources: int, tmp_path: Path) -> None:
    """As in a streaming query: each source has a grouping of its own, and reports come as rows of input files."""
    tuples = stream(900)
    log, _ = replayed(tuples, options(grouping, sources), "micro-batch=70,overhead=15ms", tmp_path, True)
    batches: list[list[dict[str, Any]]] = []
    arrivals = [row[0] * 1000 - tuples[0][0] * 1000 for row in tuples]
    committed = 0
    reports: list[dict[str, Any]] = []
    for first in range(0, 900, 70):
        batch = range(first, min(first + 70, 900))
        rows = [
            {"source": seq % sources, "worker": -1, "seq": seq, "key": tuples[seq][1], "arrival": arrivals[seq]}
            for seq in batch
        ]
        batches.append([*rows, *({**report, "source": source} for report in reports for source in range(sources))])
        begins, reports = max(committed, arrivals[batch[-1]]), []
        for worker in range(4):
            now = begins
            for seq in (seq for seq in batch if log["worker"][seq] == worker):
                start, now = now, now + log["finish_ns"][seq] - log["start_ns"][seq]
                reports.append({"worker": worker, "seq": seq, "key": tuples[seq][1], "arrival": begins, "start": start,
                                "finish": now})  # fmt: skip
        committed = log["finish_ns"][first]
    found = choices(batches, grouping, 4, sources, seed=1, hash_seed=1)
    assert [found[seq] for seq in range(900)] == log["worker"]


@given(
    st.lists(st.integers(0, 60), min_size=1, max_size=30), st.sampled_from(["micro-batch=4", "micro-batch=13ns"]),
    st.integers(0, 40), st.integers(1, 9),
)  # fmt: skip
def test_a_stream_that_is_read_in_parts_has_the_same_batches(gaps: list[int], text: str, takes: int, each: int) -> None:
    arrival = np.cumsum(gaps)
    model = parse_engine_model(text)
    assert model is not None
    whole, parts = Batches(model), Batches(model)
    first, committed, read = 0, 0, 0
    while first < len(arrival):
        expected = whole.cut(arrival, first, committed)
        assert expected is not None
        while (cut := parts.cut(arrival[:read], first, committed, whole=False) if read > first else None) is None:
            if read >= len(arrival):
                cut = parts.cut(arrival, first, committed)
                break
            read += each
        assert cut == expected
        first, committed = cut.stop, cut.begin + takes


@pytest.mark.parametrize(
    ("grouping", "more", "says"),
    [
        ("full_knowledge", {}, "sees its workers"),
        ("fish:pw=oracle", {}, "sees its workers"),
        ("fish", {"control_delay": "1ms"}, "workers report with the next batch"),
        ("fish", {"control_delay": "0ms", "network_delay": "1ms"}, None),
        ("fish:hwa=false", {"control_delay": "1ms"}, None),
    ],
)
def test_what_is_refused(grouping: str, more: dict[str, Any], says: str | None, tmp_path: Path) -> None:
    trace = write_trace(tmp_path / "x.trace", stream(50))
    if says is None:
        sg.replay(trace, grouping, 4, arrivals="rate=1000", engine_model="micro-batch=10", **more)
    else:
        with pytest.raises(UsageError, match=says):
            sg.replay(trace, grouping, 4, arrivals="rate=1000", engine_model="micro-batch=10", **more)


def test_a_worker_that_does_not_exist_and_the_end_of_the_clock(tmp_path: Path) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text(
        "from typing import NamedTuple\nimport numpy as np\n"
        "from streamgroup.groupings.protocol import GroupingParams\n"
        "class Params(GroupingParams):\n    pass\n"
        "class Mine(NamedTuple):\n    heard: np.ndarray\n"
        "    def choose(self, source, key, now):\n        return 0 if self.heard[0] < 30 else 9\n"
        "    def executed(self, worker, key, arrival, start, finish):\n        self.heard[0] += 1\n"
        "def start(params, context):\n    return Mine(np.zeros(1, dtype=np.int64))\n"
    )
    trace = write_trace(tmp_path / "x.trace", stream(50))
    with pytest.raises(sg.StreamgroupError, match="a worker that does not exist, for tuple 30"):
        sg.replay(trace, mine, 4, arrivals="rate=1000", engine_model="micro-batch=10")
    with pytest.raises(sg.StreamgroupError, match="past the clock's 146 years"):
        sg.replay(trace, "posg", 4, arrivals="rate=1000", engine_model="micro-batch=10,overhead=50000d")
