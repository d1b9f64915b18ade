"""Keys that a rule of a real engine does not take: the same words from a run and from a dry run, and the trace."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from streamgroup.engines.keys.typed_key_values import Long
from streamgroup.engines.storm import fields_task
from streamgroup.traces.trace import Trace
from tests.traces_by_hand import write_trace


@pytest.mark.parametrize("dry", [(), ("--dry-run",)], ids=["run", "dry run"])
@pytest.mark.parametrize(
    ("grouping", "kind", "keys", "code", "said"),
    [
        ("kafka", "int", [b"1", b"5.0"], 4, "bad: key '5.0' is no int"),
        ("storm_fields", "int", [b"1", b"2147483648"], 4, "--key-type long"),
        ("storm_pkg", "long", [b" 5"], 4, "bad: key ' 5' is no long"),
        ("hazelcast", "long", ["٣".encode()], 4, "bad: key '٣' is no long"),
        ("flink_sql", "int", [b""], 4, "bad: key '' is no int"),
        ("heron_fields", "string", [b"a", None], 4, "refuses a null key"),
        ("pulsar:mode=consistent", "long", [b"1"], 2, "take --key-type string"),
        ("flink_keyby", "bytes", [b"1"], 2, "take --key-type string or int or long"),
        ("flink_keyby:max_parallelism=2", "string", [b"1"], 2, "max_parallelism=2"),
    ],
)
def test_refused(
    invoke: Any, tmp_path: Path, grouping: str, kind: str, keys: list[Any], code: int, said: str, dry: tuple[str, ...]
) -> None:
    trace = write_trace(tmp_path / "bad", [(at, key, None) for at, key in enumerate(keys)])
    out = tmp_path / "run"
    told = invoke("replay", trace, "-g", grouping, "-n", 3, "--key-type", kind, "-o", out, *dry)
    assert (told.exit_code, told.stdout) == (code, ""), told.stderr
    assert said in told.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["bad"]


def test_composite_keys_go_as_the_tuples_that_they_are(invoke: Any, tmp_path: Path) -> None:
    keys = [b'["de",42]', b'["fr",7]', b'["de",7]', None]
    trace = write_trace(tmp_path / "composite", [(at, key, None) for at, key in enumerate(keys)])
    parts = [{"name": "country", "type": "string"}, {"name": "id", "type": "long"}]
    (trace / "trace.json").write_text(json.dumps({"format_version": 1, "key_parts": parts}))
    places = [fields_task(key, 50) for key in (("de", Long(42)), ("fr", Long(7)), ("de", Long(7)), (None, None))]
    for kind in ((), ("--key-type", "string,long")):
        run = tmp_path / f"run{len(kind)}"
        told = invoke("replay", trace, "-g", "storm_fields", "-n", 50, "--log", "-o", run, *kind)
        assert told.exit_code == 0, told.stderr
        assert pq.read_table(run / "assignments", columns=["worker"])["worker"].to_pylist() == places
    as_bytes = invoke(
        "replay", trace, "-g", "storm_fields", "-n", 50, "--log", "-o", tmp_path / "bytes", "--key-type", "bytes"
    )
    assert as_bytes.exit_code == 0
    found = pq.read_table(tmp_path / "bytes" / "assignments", columns=["worker"])["worker"].to_pylist()
    assert found == [fields_task(key, 50) for key in keys]
    one = invoke("replay", trace, "-g", "kafka", "-n", 50)
    assert (one.exit_code, one.stdout) == (2, "")
    assert "looks at one value, and the keys are composite: string,long" in one.stderr


def test_who_looks_at_no_key_takes_any_type(invoke: Any, tmp_path: Path) -> None:
    trace = write_trace(tmp_path / "bad", [(0, b"5.0", None)])
    assert invoke("replay", trace, "-g", "kg", "-n", 3, "--key-type", "int", "--dry-run").exit_code == 0


def test_a_dry_sweep_names_the_cells_that_would_fail(invoke: Any, tmp_path: Path) -> None:
    trace = write_trace(tmp_path / "bad", [(0, b"5.0", None)])
    told = invoke(
        "sweep", trace, "-g", "kafka", "-g", "kg", "-n", 3, "--key-type", "int", "-o", tmp_path / "out",
        "--dry-run", "--format", "csv",
    )  # fmt: skip
    assert told.exit_code == 1
    assert "key '5.0' is no int" in told.stdout
    assert told.stdout.count("to run") == 1


def test_a_dry_sweep_reads_the_keys_of_a_trace_once(
    invoke: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = []

    def watched(trace: Trace) -> Any:
        read.append(trace.path.name)
        return whole(trace)

    whole = Trace.packed_keys
    monkeypatch.setattr(Trace, "packed_keys", watched)
    traces = [write_trace(tmp_path / name, [(0, b"5", None)]) for name in ("one", "two")]
    told = invoke(
        "sweep", *traces, "-g", "kafka", "-g", "kg", "-g", "flink_sql", "-n", "3,4", "--key-type", "int",
        "-o", tmp_path / "out", "--dry-run",
    )  # fmt: skip
    assert told.exit_code == 0, told.stderr
    assert read == ["one", "two"]
