"""The groupings of engines with partitions: each key of a real stream goes where the scalar rule says."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from streamgroup.base.errors import DataError, UsageError
from streamgroup.engines.hazelcast import hazelcast_processor
from streamgroup.engines.kafka import kafka_partition
from streamgroup.engines.kafka_assignors import assign, owners
from streamgroup.engines.librdkafka import librdkafka_partition
from streamgroup.engines.pulsar import HashRanges, consistent_consumer, pulsar_partition
from streamgroup.engines.pyspark_rdd import pyspark_rdd_partition
from streamgroup.engines.spark_rdd import spark_rdd_partition
from streamgroup.engines.spark_sql import spark_sql_partition
from streamgroup.replay.replay_trace import replay
from streamgroup.replay.scenario.grouping_selection import select
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.traces.trace import Trace, open_trace
from tests.groupings.engines.replay_real_keys import KINDS, parts_of, workers_of
from tests.groupings.golden_metrics import real_trace
from tests.traces_by_hand import write_trace


def read_by(partition: Callable[[Any], int], partitions: int, live: list[int], assignor: Any) -> Callable[[Any], int]:
    reader = owners(assign(partitions, live, assignor))
    return lambda key: int(reader[partition(key)])


CREW = list(range(7))
RULES: list[tuple[str, str, Callable[[Any], int]]] = [
    *(("kafka", kind, lambda key: kafka_partition(key, 7)) for kind in KINDS),
    ("kafka:partitions=11", "long", read_by(lambda key: kafka_partition(key, 11), 11, CREW, "range")),
    (
        "kafka:partitions=11,assignor=round_robin",
        "int",
        read_by(lambda key: kafka_partition(key, 11), 11, CREW, "round_robin"),
    ),
    ("kafka_librdkafka", "string", lambda key: librdkafka_partition(key, 7)),
    ("kafka_librdkafka:partitioner=fnv1a", "int", lambda key: librdkafka_partition(key, 7, "fnv1a")),
    (
        "kafka_librdkafka:partitioner=murmur2,partitions=5,assignor=sticky",
        "string",
        read_by(lambda key: kafka_partition(key, 5), 5, CREW, "sticky"),
    ),
    *(("spark_sql", kind, lambda key: spark_sql_partition(key, 7)) for kind in KINDS),
    *(("spark_rdd", kind, lambda key: spark_rdd_partition(key, 7)) for kind in ("string", "int", "long")),
    ("pyspark_rdd", "string", lambda key: pyspark_rdd_partition(key, 7)),
    ("pyspark_rdd:python=3.10,seed=42", "string", lambda key: pyspark_rdd_partition(key, 7, "3.10", 42)),
    ("pyspark_rdd", "int", lambda key: pyspark_rdd_partition(key, 7)),
    *(("hazelcast", kind, lambda key: hazelcast_processor(key, 7)) for kind in ("string", "int", "long")),
    ("hazelcast:partition_count=5", "string", lambda key: hazelcast_processor(key, 7, 5)),
    ("pulsar", "string", lambda key: pulsar_partition(key, 7)),
    ("pulsar:mode=murmur3", "string", lambda key: pulsar_partition(key, 7, "murmur3")),
    ("pulsar:mode=auto_split", "string", lambda key: HashRanges(CREW).consumer(key)),
    ("pulsar:mode=consistent", "string", lambda key: consistent_consumer(key, [f"consumer-{at}" for at in CREW])),
]


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    """Edits of Wikipedia pages: the keys are ids of users, so they are of any type."""
    return real_trace(tmp_path_factory.mktemp("engines"))


@pytest.mark.parametrize(("text", "kind", "rule"), RULES, ids=[f"{text}-{kind}" for text, kind, _ in RULES])
def test_worker_of_every_key(trace: Trace, tmp_path: Path, text: str, kind: str, rule: Callable[[Any], int]) -> None:
    found = workers_of(trace, tmp_path, grouping=text, key_type=kind)
    assert len(found) == trace.keys > 1000
    assert found == {key: {rule(KINDS[kind](key))} for key in found}


# Who leaves, then who joins: 5 is new.
THEN = [0, 1, 3, 4, 5]


def test_a_topic_with_a_partition_for_each_worker_gets_as_many(trace: Trace, tmp_path: Path) -> None:
    for part, live in zip(parts_of(trace, tmp_path, "kafka"), ([0, 1, 2, 3, 4], [0, 1, 3, 4], THEN), strict=True):
        assert part == {key: {live[kafka_partition(key, len(live))]} for key in part}


@pytest.mark.parametrize("assignor", ["range", "round_robin", "sticky"])
def test_partitions_stay_and_their_readers_change(trace: Trace, tmp_path: Path, assignor: Any) -> None:
    owned: dict[int, list[int]] = {}
    text = f"kafka:partitions=11,assignor={assignor}"
    for part, live in zip(parts_of(trace, tmp_path, text), ([0, 1, 2, 3, 4], [0, 1, 3, 4], THEN), strict=True):
        owned = assign(11, live, assignor, owned)
        reader = owners(owned)
        assert part == {key: {reader[kafka_partition(key, 11)]} for key in part}


def test_ranges_of_slots_are_taken_over_and_split(trace: Trace, tmp_path: Path) -> None:
    ranges = HashRanges(range(5))
    changes = [lambda: None, lambda: ranges.leave(2), lambda: ranges.join(5)]
    for part, change in zip(parts_of(trace, tmp_path, "pulsar:mode=auto_split"), changes, strict=True):
        change()
        assert part == {key: {ranges.consumer(key.decode())} for key in part}


def test_names_on_the_ring_stay_and_few_keys_move(trace: Trace, tmp_path: Path) -> None:
    parts = parts_of(trace, tmp_path, "pulsar:mode=consistent")
    for part, live in zip(parts, ([0, 1, 2, 3, 4], [0, 1, 3, 4], THEN), strict=True):
        names = [f"consumer-{worker}" for worker in live]
        assert part == {key: {live[consistent_consumer(key.decode(), names)]} for key in part}
    assert all(parts[1][key] == parts[0][key] for key in parts[1].keys() & parts[0].keys() if parts[0][key] != {2})


@pytest.mark.parametrize(
    ("text", "worker"),
    [("spark_sql", 42 % 5), ("spark_rdd", 0), ("pyspark_rdd", 0), ("kafka_librdkafka:partitioner=consistent", 0)],
)
def test_null_keys_that_have_a_place(tmp_path: Path, text: str, worker: int) -> None:
    trace = open_trace(write_trace(tmp_path / "t", [(at, None if at % 2 else b"a", None) for at in range(20)]))
    for kind in ("string", "bytes"):
        if (text, kind) != ("spark_rdd", "bytes"):
            found = workers_of(trace, tmp_path / kind, workers=5, grouping=text, key_type=kind)
            assert found[None] == {worker}


@pytest.mark.parametrize("text", ["kafka", "kafka_librdkafka", "hazelcast", "pulsar", "pulsar:mode=auto_split"])
def test_null_keys_that_have_none(tmp_path: Path, text: str) -> None:
    trace = open_trace(write_trace(tmp_path / "t", [(0, b"a", None), (1, None, None)]))
    with pytest.raises(DataError, match="null key"):
        replay(trace, ReplayOptions(text, workers=5))


@pytest.mark.parametrize(("text", "kind"), [("spark_rdd", "bytes"), ("hazelcast", "bytes"), ("pulsar", "int")])
def test_types_without_a_rule(trace: Trace, text: str, kind: str) -> None:
    with pytest.raises(UsageError, match=kind):
        replay(trace, ReplayOptions(text, workers=5, key_type=kind))


@pytest.mark.parametrize(
    ("text", "workers", "facts"),
    [
        ("kafka", 5, None),
        ("kafka:partitions=11", 5, ("partitions", 2, 3, 3 * 5 / 11)),
        ("kafka:partitions=3,assignor=sticky", 5, ("partitions", 0, 1, 5 / 3)),
        ("hazelcast", 10, ("partitions", 27, 28, 280 / 271)),
        ("pulsar:mode=auto_split", 3, ("slots", 16_384, 32_768, 1.5)),
        ("pulsar:mode=auto_split", 4, ("slots", 16_384, 16_384, 1)),
        ("pulsar", 3, None),
    ],
)
def test_what_holds_whatever_the_keys(text: str, workers: int, facts: Any) -> None:
    found = select(text).params.facts(workers)
    assert tuple(found.values()) == (facts[1:] if facts else ())
    assert list(found)[:2] == ([f"{facts[0]}_per_worker_min", f"{facts[0]}_per_worker_max"] if facts else [])


def test_the_ring_has_all_slots() -> None:
    found = select("pulsar:mode=consistent").params.facts(2)
    assert found["slots_per_worker_min"] + found["slots_per_worker_max"] == 65_535


@pytest.mark.parametrize(
    ("text", "workers", "idle"), [("kafka:partitions=3", 5, 2), ("hazelcast:partition_count=7", 9, 2), ("kafka", 9, 0)]
)
def test_who_has_no_partition_is_told(text: str, workers: int, idle: int) -> None:
    told = select(text).params.doubts(workers, 1, 1000)
    assert [f": {idle} of them" in line for line in told] == ([True] if idle else [])
    assert select(text).params.doubts(1, 1, 1000) == []
