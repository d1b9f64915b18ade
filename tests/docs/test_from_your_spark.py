"""The commands of the page on Spark's own sources run, but for those that need a network or a server."""

import datetime as dt
import functools
from pathlib import Path

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

from streamgroup.traces.trace import open_trace
from tests.docs.console_blocks import DOCS, commands_of, run, run_here, steps

PAGE = DOCS / "from-your-spark.md"
# What this machine cannot have: packages from a network, a metastore.
ELSEWHERE = ("spark.jars.packages", "thrift://")
ROWS = 40


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    noon = dt.datetime(2024, 3, 1, 12, tzinfo=dt.UTC)
    table = pa.table(
        {
            "at": pa.array([noon + dt.timedelta(seconds=second) for second in range(ROWS)], pa.timestamp("us", "UTC")),
            "user": [f"U{number % 7}" for number in range(ROWS)],
            "country": [("de", "fr", None)[number % 3] for number in range(ROWS)],
            "id": [number % 5 for number in range(ROWS)],
            "price": [float(number - 1) for number in range(ROWS)],
            "service_ms": [0.5] * ROWS,
        }
    )
    pq.write_table(table, tmp_path / "events.parquet")
    orc.write_table(table, tmp_path / "logs.orc")
    (tmp_path / "export.csv").write_text(
        'at,user,service_ms\n2024-03-01T12:00:00Z,"say \\"hi\\", you",0.5\n2024-03-01T12:00:01Z,"two\nlines",1.5\n'
    )
    return tmp_path


def test_commands_that_need_a_network_are_few() -> None:
    commands = commands_of(PAGE)
    assert len(commands) == 9
    assert sum(any(word in command for word in ELSEWHERE) for command in commands) == 4


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.usefixtures("_shared_session")
def test_commands(directory: Path) -> None:
    here = [command for command in commands_of(PAGE) if not any(word in command for word in ELSEWHERE)]
    files = {path.name: str(path) for path in directory.iterdir()}
    for command in here:
        # The session of the tests has another directory: but for the first, which has one of its own, names are whole.
        whole = functools.reduce(lambda text, name: text.replace(name, files[name]), files, command)
        told = run(command, directory) if command == here[0] else run_here(whole, directory)
        assert told.returncode == 0, f"{command}\n{told.stderr}"
        if command.endswith("--dry-run"):
            assert "column service_ms: double" in told.stderr
            assert told.stdout.count("2024-03-01T12:00:0") == 10
    found = {path.name: open_trace(path) for path in directory.glob("*.trace")}
    assert {name: trace.tuples for name, trace in found.items()} == {
        "events.trace": ROWS,
        "paid.trace": ROWS - 2,
        "export.trace": 2,
        "visits.trace": ROWS - ROWS // 3,
    }
    assert set(found["export.trace"].all_keys()) == {b'say "hi", you', b"two\nlines"}
    assert found["export.trace"].total_cost_ns == 2_000_000
    assert sorted(found["visits.trace"].all_keys())[0] == b'["de",0]'
    assert set(found["paid.trace"].columns) == {"timestamp", "key_id", "cost", "value"}


@pytest.mark.spark
def test_the_notebook(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Half of what its JVM does is to make code fast that runs once.
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--driver-java-options -XX:TieredStopAtLevel=1 pyspark-shell")
    (script,) = [step for step in steps(PAGE.read_text()) if step.file]
    (directory / script.file).write_text(script.command)
    told = run(f"python {script.file}", directory)
    assert told.returncode == 0, told.stderr
    assert told.stdout == f"{ROWS - 2} tuples of 21 keys\n"
    assert open_trace(directory / "notebook.trace").tuples == ROWS - 2
