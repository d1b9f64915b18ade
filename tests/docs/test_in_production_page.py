"""The code of the page on production: with kafka-python where it is installed, else in its shape, and in PyFlink's."""

import re
import sys
import types
import warnings
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from streamgroup.base.errors import UsageError
from streamgroup.online import Partitioner
from streamgroup.replay.scenario.grouping_selection import family
from tests.docs.console_blocks import DOCS

KEYS = [b"k%d" % (i * i % 23) for i in range(60)]
EXPECTED = Partitioner("pkg", 4, sources=1, interpreted=True).choose_batch(KEYS).tolist()


class _KafkaPartitioner:
    """As `kafka.partitioner.Partitioner` of kafka-python 3."""

    def partition(self, topic: Any, key: Any, serialized_key: Any, value: Any, value_bytes: Any, cluster: Any) -> int:
        raise NotImplementedError


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Run the code of the page."""
    try:
        # It uses what Python deprecates.
        with warnings.catch_warnings(action="ignore"):
            import kafka.partitioner
            import kafka.producer.kafka
    except ImportError:
        kafka = types.ModuleType("kafka")
        kafka.partitioner = types.ModuleType("kafka.partitioner")  # type: ignore[attr-defined]
        kafka.partitioner.Partitioner = _KafkaPartitioner  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "kafka", kafka)
        monkeypatch.setitem(sys.modules, "kafka.partitioner", kafka.partitioner)
    scope: dict[str, Any] = {}
    text = (DOCS / "in-production.md").read_text()
    # The first block compiles what takes seconds.
    code = re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    exec("from streamgroup.online import Partitioner\n" + "\n".join(code[1:]), scope)
    scope["Partitioner"] = lambda *given, **more: Partitioner(*given, **more, interpreted=True)
    return scope


def test_kafka_calls_it(page: dict[str, Any]) -> None:
    grouped = page["Grouped"]("pkg", 4)
    found = [grouped.partition("topic", None, key, None, b"", None) for key in KEYS]
    assert found == EXPECTED
    partition = page["grouped"]("pkg", 4)
    assert [partition(key, [0, 1, 2, 3], [0, 2]) for key in KEYS] == EXPECTED


def test_a_kafka_producer_calls_it(page: dict[str, Any]) -> None:
    kafka = pytest.importorskip("kafka", reason="kafka-python is not installed")
    producer = pytest.importorskip("kafka.producer.kafka", reason="kafka-python is not installed")
    cluster = SimpleNamespace(topics=lambda: {"t"}, partitions_for_topic=lambda _: {0, 1, 2, 3})
    itself = SimpleNamespace(_metadata=cluster, config={"partitioner": page["Grouped"]("pkg", 4)})
    assert isinstance(itself.config["partitioner"], kafka.partitioner.Partitioner)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = [producer.KafkaProducer._partition(itself, "t", None, None, None, key, b"") for key in KEYS]
    assert found == EXPECTED


def test_flink_calls_it(page: dict[str, Any]) -> None:
    partitioner = page["FlinkPartitioner"]("pkg", 0, 1)
    assert [partitioner.partition(key.decode(), 4) for key in KEYS] == EXPECTED


def test_a_spark_task_calls_it(page: dict[str, Any]) -> None:
    batches = [pa.record_batch({"key": KEYS[:25]}), pa.record_batch({"key": KEYS[25:]})]
    found = list(page["with_worker"]("pkg", 4, 0, 1, iter(batches)))
    assert [worker for batch in found for worker in batch["worker"].to_pylist()] == EXPECTED


def test_the_table_says_what_each_grouping_decides_by() -> None:
    rows = re.findall(
        r"^\| (the key|also what).* \| (.*) \| .* \|$", (DOCS / "in-production.md").read_text(), re.MULTILINE
    )
    assert [by for by, _ in rows] == ["the key", "also what"]
    named = set()
    for by, groupings in rows:
        several, one = (re.findall(r"`(\w+)`", part) for part in groupings.split("with one source"))
        named |= {*several, *one}
        for grouping in several:
            assert Partitioner(grouping, 4, sources=2, interpreted=True).listens == (by == "also what"), grouping
        for grouping in one:
            assert Partitioner(grouping, 4, sources=1, interpreted=True).listens == (by == "also what"), grouping
            with pytest.raises(UsageError):
                Partitioner(grouping, 4, sources=2, interpreted=True)
    engines = {name for name in family() if (DOCS / "groupings" / f"{name}.md").read_text().find("../engines/") > 0}
    refused = {"full_knowledge", "oracle", "salted"}
    assert {*family()} - named - refused == engines
    for grouping in engines:
        assert not Partitioner(grouping, 4, sources=2, interpreted=True).listens, grouping
    for grouping in refused:
        with pytest.raises(UsageError):
            Partitioner(grouping, 4, sources=1, interpreted=True)
