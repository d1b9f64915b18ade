"""A synthetic trace is the same whoever makes it, and is there whole or not at all."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pydantic import BaseModel

from streamgroup.base import modules_by_name
from streamgroup.base.errors import EnvironmentFault, RunError, UsageError
from streamgroup.base.progress import Silent
from streamgroup.base.storage.storage_path import locate
from streamgroup.ingest.pipeline.arrow_blocks import block
from streamgroup.ingest.pipeline.write_parts import check_visible
from streamgroup.ingest.runners.local_runner import LocalRunner
from streamgroup.ingest.runners.stop_threads import check_stopped
from streamgroup.spark.options import SparkOptions, checked
from streamgroup.spark.session import Session
from streamgroup.synth import generate_trace
from streamgroup.synth.generate_trace import REMOTE_LABELS, SPARK_TUPLES, chosen_engine, synthesise
from streamgroup.synth.generators.protocol import Chunk, Stream
from streamgroup.traces.checks.validate import validate
from streamgroup.traces.trace import open_trace
from tests.spark.session_on_cluster import Cluster

# Two parts, nine blocks, and a last block that is not full.
GIVEN = {"tuples": 8_500_000, "keys": 3000, "exponent": 1.1, "rate": 1_000_000, "seed": 4}


class Told:
    """Keeps what progress was told."""

    def __init__(self) -> None:
        self.steps: list[tuple[str, int | None, int]] = []

    def start(self, total: int | None, text: str) -> None:
        self.steps.append((text, total, 0))

    def advance(self, done: int) -> None:
        text, total, before = self.steps[-1]
        self.steps[-1] = (text, total, before + done)


STEPS = [
    ("counting keys", GIVEN["tuples"], GIVEN["tuples"]),
    ("ordering keys", None, 0),
    ("writing keys", None, 0),
    ("writing tuples", GIVEN["tuples"], GIVEN["tuples"]),
]


def tree(trace: Path) -> dict[str, bytes]:
    return {str(path.relative_to(trace)): path.read_bytes() for path in trace.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("local") / "z.trace"
    told = Told()
    synthesise("zipf", GIVEN, path, engine="local", progress=told)
    assert told.steps == STEPS
    return path


def test_a_trace_of_two_parts_is_sound(local: Path) -> None:
    assert validate(local) == []
    assert sorted(tree(local)) == [
        "keys/part-00000.parquet", "trace.json", "tuples/part-00000.parquet", "tuples/part-00001.parquet",
    ]  # fmt: skip
    assert list(local.parent.iterdir()) == [local]


@pytest.mark.parametrize("threads", [1, 3])
def test_the_number_of_threads_changes_nothing(
    local: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int
) -> None:
    monkeypatch.setattr(LocalRunner, "parallelism", threads)
    synthesise("zipf", GIVEN, tmp_path / "z.trace", engine="local")
    assert tree(tmp_path / "z.trace") == tree(local)


@pytest.mark.spark
def test_spark_makes_the_same_bytes(spark: Session, local: Path, tmp_path: Path) -> None:
    told = Told()
    synthesise("zipf", GIVEN, tmp_path / "z.trace", session=spark, progress=told)
    assert tree(tmp_path / "z.trace") == tree(local)
    assert told.steps == STEPS
    assert [entry.name for entry in tmp_path.iterdir()] == ["z.trace"]


@pytest.mark.spark
def test_every_generator_can_be_made_by_tasks(spark: Session, tmp_path: Path) -> None:
    """Its parameters and its stream cross to other processes."""
    for name in modules_by_name.names(modules_by_name.GENERATORS):
        given = {"dataset": "ct", "scale": "0.1"} if name == "stand_in" else {"tuples": 1000}
        made = synthesise(name, given, tmp_path / "local" / name, engine="local")
        assert synthesise(name, given, tmp_path / "spark" / name, session=spark) == made
    assert tree(tmp_path / "spark") == tree(tmp_path / "local")


@pytest.mark.spark
def test_the_same_bytes_from_a_cluster(local: Path, tmp_path: Path, cluster: Cluster) -> None:
    output = tmp_path / "made" / "z.trace"
    cluster.call("tests.spark.calls_on_cluster:make_synthetic", "zipf", GIVEN, str(output))
    assert tree(output) == tree(local)
    assert list(output.parent.iterdir()) == [output]


@pytest.mark.spark
def test_the_same_bytes_from_one_core(local: Path, tmp_path: Path) -> None:
    """By the command line, in a process of its own, as a session cannot be open twice."""
    output, temporary = tmp_path / "made" / "z.trace", tmp_path / "tmp"
    temporary.mkdir()
    given = [f"--{name}={value}" for name, value in GIVEN.items()]
    flags = ["--engine", "spark", "--master", "local[1]", "--driver-memory", "1g", "--json", "--quiet"]
    told = subprocess.run(
        [sys.executable, "-W", "error", "-m", "streamgroup", "synth", "zipf", *given, "-o", output, *flags],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "TMPDIR": str(temporary)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (told.returncode, told.stderr) == (0, "")
    assert tree(output) == tree(local)
    assert list(output.parent.iterdir()) == [output]
    assert list(temporary.iterdir()) == []


def test_more_keys_than_a_message_of_spark_connect_holds(tmp_path: Path) -> None:
    class Remote:
        __module__ = "pyspark.sql.connect.session"

    session = Session(Remote(), "sc://h", None, tmp_path)  # type: ignore[arg-type]
    assert session.remote
    with pytest.raises(UsageError, match="30000001 keys are more than") as wrong:
        synthesise("uniform", {"tuples": 9, "keys": REMOTE_LABELS + 1}, tmp_path / "x.trace", session=session)
    assert "--engine local" in (wrong.value.hint or "")
    assert list(tmp_path.iterdir()) == []
    # What stays below goes on, and asks the session for its executors.
    with pytest.raises(AttributeError):
        synthesise("uniform", {"tuples": 9, "keys": 9}, tmp_path / "x.trace", session=session)


CODE = """
import sys
from pathlib import Path
from streamgroup.spark.options import SparkOptions
from streamgroup.synth.generate_trace import synthesise

class Tell:
    def start(self, total, text): print(text, flush=True)
    def advance(self, done): pass

if __name__ == "__main__":
    try:
        synthesise("zipf", {"tuples": int(sys.argv[3]), "keys": 3000, "exponent": 1.1, "rate": 1_000_000, "seed": 4},
            Path(sys.argv[1]), engine=sys.argv[2], spark=SparkOptions(master="local[2]"), progress=Tell())
    except KeyboardInterrupt:
        sys.exit(130)
"""


def _started(output: Path, engine: str, step: str, tuples: int, temporary: Path) -> subprocess.Popen[str]:
    """Begin to make a trace; come back when the step is under way."""
    process = subprocess.Popen(
        [sys.executable, "-W", "error", "-c", CODE, str(output), engine, str(tuples)],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "TMPDIR": str(temporary)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert any(line.strip() == step for line in process.stdout)
    time.sleep(0.5)
    return process


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
@pytest.mark.parametrize("engine", ["local", pytest.param("spark", marks=pytest.mark.spark)])
def test_an_interrupt_leaves_nothing(tmp_path: Path, engine: str, number: signal.Signals) -> None:
    place, temporary = tmp_path / "traces", tmp_path / "tmp"
    temporary.mkdir()
    process = _started(place / "z.trace", engine, "counting keys", 10**10, temporary)
    process.send_signal(number)
    try:
        _, errors = process.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        # The bridge to the JVM can swallow one that comes while it closes a socket; one asks again then.
        process.send_signal(number)
        _, errors = process.communicate(timeout=300)
    assert (process.returncode, errors) == (130, "")
    assert not place.exists()
    assert list(temporary.iterdir()) == []


@pytest.mark.spark
def test_after_a_kill_the_same_command_makes_the_trace(local: Path, tmp_path: Path, spark: Session) -> None:
    place, temporary = tmp_path / "traces", tmp_path / "tmp"
    temporary.mkdir()
    process = _started(place / "z.trace", "spark", "writing tuples", int(GIVEN["tuples"]), temporary)
    process.kill()
    process.communicate(timeout=300)
    assert not (place / "z.trace").exists()
    assert [entry.name.startswith(".z.trace.partial-") for entry in place.iterdir()] == [True]
    synthesise("zipf", GIVEN, place / "z.trace", session=spark)
    assert list(place.iterdir()) == [place / "z.trace"]
    assert tree(place / "z.trace") == tree(local)


def test_a_failure_in_a_thread_ends_all_of_them(tmp_path: Path) -> None:
    def chunk(first: int, rows: int) -> Chunk:
        if first >= 3 << 20:
            raise RunError("no more")
        none = np.zeros(rows, np.int64)
        return Chunk(none, none)

    stream = Stream(10**12, 1, chunk, lambda label: b"k")

    def work(job: int) -> Iterator[pa.RecordBatch]:
        for first in range(job << 20, 10**12, 1 << 20):
            check_stopped()
            stream.chunk(first, 1 << 20)
        yield block("never")

    runner = LocalRunner(Silent())
    with pytest.raises(RunError, match="no more"):
        runner.run(lambda: runner.tasks(3, work).stats("never"), 3, "x")


class _None(BaseModel, frozen=True):
    """No parameters."""


def test_keys_go_by_count_and_then_bytes_and_tuples_carry_what_they_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [b"b", b"a\0", b"a", b"", b"long" * 40, b"rare"]

    def chunk(first: int, rows: int) -> Chunk:
        place = np.arange(first, first + rows)
        return Chunk(place, np.minimum(place, 5), cost=place.astype(np.float32) / 4, weight=place / 2)

    stream = Stream(11, 100, chunk, lambda label: texts[label])
    few = SimpleNamespace(Params=_None, generate=lambda params: stream)
    monkeypatch.setattr(generate_trace, "load", lambda *names: few)
    manifest = synthesise("few", {}, tmp_path / "x.trace")
    assert validate(tmp_path / "x.trace") == []
    trace = open_trace(tmp_path / "x.trace")
    assert list(trace.all_keys()) == [b"rare", b"", b"a", b"a\0", b"b", b"long" * 40]
    assert trace.dictionary().count.tolist() == [6, 1, 1, 1, 1, 1]
    (batch,) = trace.batches(("key_id", "cost", "value", "weight"))
    assert batch.key_id is not None
    assert batch.cost is not None
    assert batch.weight is not None
    assert batch.value is None
    assert batch.key_id.tolist() == [4, 3, 2, 1, 5, 0, 0, 0, 0, 0, 0]
    assert batch.cost.tolist() == [i / 4 for i in range(11)]
    assert batch.weight.tolist() == [i / 2 for i in range(11)]
    assert manifest.total_cost_ns == 250 * 55


def test_stretches_hold_at_least_as_many_tuples_as_there_are_labels() -> None:
    def of(tuples: int, labels: int, parallelism: int) -> list[int]:
        stream = Stream(tuples, labels, lambda *_: None, lambda _: b"")  # type: ignore[arg-type, return-value]
        found = generate_trace._segments(stream, parallelism)
        ends = [stretch.first + stretch.tuples for stretch in found]
        assert [stretch.first for stretch in found] == [0, *ends[:-1]]
        assert ends[-1] == tuples
        return [stretch.tuples for stretch in found]

    assert of(1, 1, 2) == [1]
    assert len(of(10**8, 10**5, 2)) == 8
    assert min(of(10**8, 10**7, 100)[:-1]) >= 10**7
    assert of(10**7, 10**8, 4) == [10**7]


def test_where_it_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generate_trace, "find_java", lambda: ("java", 17))
    assert chosen_engine("auto", SPARK_TUPLES - 1) == "local"
    assert chosen_engine("auto", SPARK_TUPLES) == "spark"
    assert chosen_engine("local", SPARK_TUPLES) == "local"
    assert chosen_engine("spark", 1) == "spark"

    def none() -> None:
        raise EnvironmentFault("no Java")

    monkeypatch.setattr(generate_trace, "find_java", none)
    assert chosen_engine("auto", SPARK_TUPLES) == "local"


def test_no_java_is_told_at_once_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    with pytest.raises(EnvironmentFault, match="no Java") as caught:
        synthesise("zipf", {"tuples": 10}, tmp_path / "x.trace", engine="spark")
    assert "install Java 17" in (caught.value.hint or "")
    assert list(tmp_path.iterdir()) == []


def test_files_of_tasks_that_are_not_seen_here(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFault, match=r"of 1 parts of tuples/ .* 0 are visible here"):
        check_visible(locate(tmp_path), tuples=1, keys=1)


@pytest.mark.parametrize(
    ("given", "words"), [({"driver_memory": "lots"}, "--driver-memory: "), ({"spark_conf": ("x=1",)}, "--spark-conf: ")]
)
def test_wrong_settings_of_spark(given: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        checked(SparkOptions, given)


def test_keys_framed_in_arrays_are_the_same_as_one_by_one() -> None:
    from streamgroup.traces.fingerprint import fingerprint

    keys = [b"", b"a", b"x" * 70_000, b"", b"\xff\xfe", b"b"]
    array = pa.array([b"before", *keys, b"after"], pa.large_binary()).slice(1, len(keys))
    one_by_one = fingerprint([b"d"], keys)
    assert fingerprint([b"d"], [array]) == one_by_one
    assert fingerprint([b"d"], [array.slice(0, 2), array.slice(2, 0), array.slice(2)]) == one_by_one
    with_null = pa.array([b"a", None, b"b"], pa.large_binary())
    assert fingerprint([], [with_null]) == fingerprint([], [b"a", None, b"b"])
    assert fingerprint([], [pa.array([b"", b""], pa.large_binary())]) == fingerprint([], [b"", b""])
