"""The groupings of Storm, Flink and Heron: each key of a real stream goes where the scalar rule says."""

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from streamgroup.base.errors import DataError, UsageError
from streamgroup.engines import flink, heron, pyflink, storm
from streamgroup.replay.compile_grouping import Code, compiled
from streamgroup.replay.replay_trace import replay
from streamgroup.replay.scenario.grouping_selection import family, select
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.replay.simulation.choose import choose_block
from streamgroup.traces.trace import Trace, open_trace
from tests.engines.recorded_vectors import rows
from tests.groupings.engines import test_topics_and_partitions
from tests.groupings.engines.replay_real_keys import KINDS, parts_of, rules_of_engines, workers_of
from tests.groupings.golden_metrics import real_trace
from tests.traces_by_hand import write_trace

NUMBERS = ("string", "int", "long")
RULES: list[tuple[str, str, Callable[[Any], int]]] = [
    *(("storm_fields", kind, lambda key: storm.fields_task(key, 7)) for kind in KINDS),
    *(("storm_trident", kind, lambda key: storm.trident_task(key, 7)) for kind in KINDS),
    *(("flink_keyby", kind, lambda key: flink.keyby_subtask(key, 7)) for kind in NUMBERS),
    ("flink_keyby:max_parallelism=9", "string", lambda key: flink.keyby_subtask(key, 7, 9)),
    *(("flink_sql", kind, lambda key: flink.sql_subtask(key, 7)) for kind in NUMBERS),
    ("flink_sql:max_parallelism=1000", "long", lambda key: flink.sql_subtask(key, 7, 1000)),
    *(("flink_pyflink", kind, lambda key: pyflink.pyflink_subtask(key, 7)) for kind in KINDS),
    *(
        ("flink_pyflink:declared=true", kind, lambda key: pyflink.pyflink_subtask(key, 7, declared=True))
        for kind in NUMBERS
    ),
    ("flink_pyflink:max_parallelism=9", "string", lambda key: pyflink.pyflink_subtask(key, 7, 9)),
    ("flink_pyflink:mode=thread", "long", lambda key: pyflink.pyflink_subtask(key, 7, mode="thread")),
    *(("heron_fields", kind, lambda key: heron.fields_task(key, 7)) for kind in NUMBERS),
    ("heron_fields:serializer=kryo5", "string", lambda key: heron.fields_task(key, 7, "kryo5")),
    ("heron_fields:serializer=kryo3-4", "long", lambda key: heron.fields_task(key, 7, "kryo3-4")),
]
PAIRS = [(version, mode) for version in ("1", "2") for mode in ("fields", "first")]


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    """Edits of Wikipedia pages: the keys are ids of users, so they are of any type."""
    return real_trace(tmp_path_factory.mktemp("engines"))


def test_every_rule_of_an_engine_is_compared() -> None:
    compared = [text.partition(":")[0] for text, _, _ in (*RULES, *test_topics_and_partitions.RULES)]
    assert sorted({*compared, "storm_pkg"}) == rules_of_engines()
    assert len(rules_of_engines()) < len(family())


@pytest.mark.parametrize(("text", "kind", "rule"), RULES, ids=[f"{text}-{kind}" for text, kind, _ in RULES])
def test_worker_of_every_key(trace: Trace, tmp_path: Path, text: str, kind: str, rule: Callable[[Any], int]) -> None:
    found = workers_of(trace, tmp_path, grouping=text, key_type=kind)
    assert len(found) == trace.keys > 1000
    assert found == {key: {rule(KINDS[kind](key))} for key in found}


@pytest.mark.parametrize(("version", "mode"), PAIRS)
def test_storm_sends_a_sequence_as_it_did(version: Any, mode: str, tmp_path: Path) -> None:
    """The very tasks that Storm's class chose, tuple by tuple, from one executor."""
    checked = 0
    for place, row in enumerate(rows(f"storm-pkg-{version}x-sequence")):
        if row["mode"] != mode:
            continue
        tuples = [(at, key.encode(), None) for at, key in enumerate(row["keys"])]
        trace = open_trace(write_trace(tmp_path / f"{place}.trace", tuples))
        text = f"storm_pkg:version={version},mode={mode}"
        replay(trace, ReplayOptions(text, row["n"], sources=1), log_directory=tmp_path / f"log-{place}")
        assert pq.read_table(tmp_path / f"log-{place}")["worker"].to_pylist() == row["expected"]
        checked += 1
    assert checked == 2


@pytest.mark.parametrize("kind", NUMBERS)
def test_storm_pkg_counts_by_executor(trace: Trace, kind: str, tmp_path: Path) -> None:
    options = ReplayOptions("storm_pkg:mode=first", 7, sources=3, arrivals="rate=1000", key_type=kind)
    replay(trace, options, log_directory=tmp_path)
    logged, keys = pq.read_table(tmp_path), list(trace.all_keys())
    loads = [[0] * 7 for _ in range(3)]
    tasks = [storm.pkg_tasks(KINDS[kind](key or b""), 7, mode="first") for key in keys]
    columns = [logged[name].to_pylist() for name in ("key_id", "source", "worker")]
    for key, source, worker in itertools.islice(zip(*columns, strict=True), 5000):
        assert worker == storm.pkg_choose(tasks[key], loads[source])


def test_groups_of_keys_stay_and_are_assigned_anew(trace: Trace, tmp_path: Path) -> None:
    """128 groups at the start, for 5 subtasks, and as many when there are more or fewer."""
    for part, live in zip(parts_of(trace, tmp_path, "flink_keyby"), ([0, 1, 2, 3, 4], [0, 1, 3, 4], [0, 1, 3, 4, 5]),
                          strict=True):  # fmt: skip
        assert part == {key: {live[flink.keyby_subtask(key.decode(), len(live), 128)]} for key in part}


def test_tasks_are_places_in_the_list_of_the_live(trace: Trace, tmp_path: Path) -> None:
    for part, live in zip(parts_of(trace, tmp_path, "storm_fields"), ([0, 1, 2, 3, 4], [0, 1, 3, 4], [0, 1, 3, 4, 5]),
                          strict=True):  # fmt: skip
        assert part == {key: {live[storm.fields_task(key.decode(), len(live))]} for key in part}


@pytest.mark.parametrize(
    ("text", "worker"),
    [
        ("storm_fields", 31 % 5),
        ("storm_trident", 0),
        ("flink_sql", flink.sql_subtask(None, 5)),
        ("flink_pyflink", pyflink.pyflink_subtask(None, 5)),
        ("flink_pyflink:declared=true", pyflink.pyflink_subtask(None, 5, declared=True)),
    ],
)
def test_null_keys_that_have_a_place(tmp_path: Path, text: str, worker: int) -> None:
    trace = open_trace(write_trace(tmp_path / "t", [(at, None if at % 2 else b"1", None) for at in range(20)]))
    for kind in NUMBERS:
        assert workers_of(trace, tmp_path / kind, workers=5, grouping=text, key_type=kind)[None] == {worker}


@pytest.mark.parametrize("text", ["flink_keyby", "heron_fields", "storm_pkg:mode=first"])
def test_null_keys_that_have_none(tmp_path: Path, text: str) -> None:
    trace = open_trace(write_trace(tmp_path / "t", [(0, b"a", None), (1, None, None)]))
    with pytest.raises(DataError, match="null"):
        replay(trace, ReplayOptions(text, workers=5))


@pytest.mark.parametrize(
    "text", ["flink_keyby", "flink_pyflink:declared=true", "flink_sql", "heron_fields", "storm_pkg:mode=first"]
)
def test_types_without_a_rule(trace: Trace, text: str) -> None:
    with pytest.raises(UsageError, match="bytes"):
        replay(trace, ReplayOptions(text, workers=5, key_type="bytes"))


def test_a_key_that_is_not_of_its_type_is_named(tmp_path: Path) -> None:
    trace = open_trace(write_trace(tmp_path / "t", [(0, b"12", None), (1, b"1.5", None)]))
    with pytest.raises(DataError, match=r"'1.5' is no long"):
        replay(trace, ReplayOptions("storm_fields", workers=5, key_type="long"))
    with pytest.raises(UsageError, match="float"):
        replay(trace, ReplayOptions("kg", workers=5, key_type="float"))


@pytest.mark.parametrize(
    ("text", "workers", "facts"),
    [
        ("flink_keyby", 48, (128, 2, 3, 3 * 48 / 128)),
        ("flink_keyby", 64, (128, 2, 2, 1)),
        ("flink_keyby", 100, (256, 2, 3, 3 * 100 / 256)),
        ("flink_sql:max_parallelism=128", 100, (128, 1, 2, 2 * 100 / 128)),
    ],
)
def test_key_groups_are_told_whatever_the_keys(text: str, workers: int, facts: tuple[float, ...]) -> None:
    found = select(text).params.facts(workers)
    assert tuple(found.values()) == facts
    assert list(found) == [
        "max_parallelism", "key_groups_per_worker_min", "key_groups_per_worker_max", "structural_peak_to_mean",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "workers", "keys", "said"),
    [
        ("flink_keyby", 48, 10_000, ["max_parallelism that 48 divides, as 144,"]),
        ("flink_keyby", 64, 10_000, []),
        ("storm_pkg", 16, 1000, ["power of two, here 16"]),
        ("storm_pkg", 15, 1000, []),
        ("storm_pkg", 4, 1000, []),
        ("storm_pkg:version=1", 16, 1000, []),
        ("storm_fields", 16, 1000, []),
    ],
)
def test_traps_are_told(text: str, workers: int, keys: int, said: list[str]) -> None:
    told = select(text).params.doubts(workers, 1, keys)
    assert len(told) == len(said)
    assert all(part in line for part, line in zip(said, told, strict=True))


def test_a_file_of_ones_own_may_look_at_keys(trace: Trace, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        """
from typing import NamedTuple
import numpy as np
from streamgroup.groupings.protocol import Context, GroupingParams
class Params(GroupingParams):
    def facts(self, workers):
        return {"half": workers / 2}
class ByRemainder(NamedTuple):
    worker_of: np.ndarray
    def choose(self, source, key, now):
        return self.worker_of[key]
def start(params, context):
    keys = context.typed_keys("long")
    return ByRemainder((keys.number % context.workers).astype(np.uint16))
"""
    )
    found = workers_of(trace, tmp_path / "log", grouping=str(tmp_path / "mine.py"))
    assert found == {key: {int(key or b"") % 7} for key in found}
    assert select(str(tmp_path / "mine.py")).params.facts(7) == {"half": 3.5}


def test_max_parallelism_that_is_too_small() -> None:
    trace = select("flink_keyby:max_parallelism=4")
    with pytest.raises(UsageError, match="less than the parallelism 5"):
        trace.params.facts(5)


@pytest.mark.parametrize(
    ("shared", "module", "texts"),
    [
        ("one_worker", "_engine_rule", ["storm_fields", "heron_fields:serializer=kryo5", "spark_sql", "hazelcast"]),
        (
            "followed",
            "_engine_rule_with_membership_history",
            [
                "flink_keyby",
                "flink_sql:max_parallelism=50",
                "flink_pyflink",
                "kafka:partitions=11",
                "pulsar:mode=consistent",
            ],
        ),
    ],
)
def test_rules_of_one_shape_share_compiled_code(trace: Trace, shared: str, module: str, texts: list[str]) -> None:
    """The second one compiles nothing."""
    modules = ("streamgroup.cluster.service_time", f"streamgroup.groupings.{module}")
    loop: Any = compiled(choose_block, Code(shared, modules))
    counts = []
    for text in texts:
        assert select(text).code_name == shared
        replay(trace, ReplayOptions(text, 7, sources=2, arrivals="rate=1000"), interpreted=False)
        counts.append(len(loop.signatures))
    assert counts == [counts[0]] * len(texts)
    assert counts[0] > 0


def test_who_shares_code_has_states_of_one_class() -> None:
    starts: dict[str, set[Any]] = {}
    for name in rules_of_engines():
        selection = select(name)
        starts.setdefault(selection.code_name, set()).add(selection.module.start)
    assert {shared: len(found) for shared, found in starts.items()} == {"one_worker": 1, "followed": 1, "storm_pkg": 1}
