"""`ingest --dry-run` on the command line."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any


def test_on_the_command_line(invoke: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(b"time,key,w\n1.5,\x00\xff,2\n2,b,x\n")
    command = ("ingest", "csv", path, "--weight", "w", "-o", tmp_path / "t", "--dry-run")
    table = invoke(*command)
    assert table.exit_code == 0
    assert table.stdout.splitlines()[0].split() == ["timestamp", "key", "weight"]
    assert "1970-01-01T00:00:01.5Z" in table.stdout
    for text in (
        "columns time, key, w", "compression: none, header: line 1", "delimiter: ','", "time: time (s)", "weight: w",
        "of 3 rows looked at, 1 rejected, 1 filtered", f"rejected: {path}:3: weight is not a number: '2,b,x'",
    ):  # fmt: skip
        assert text in table.stderr
    made = json.loads(invoke(*command, "--format", "json").stdout)
    assert made["tuples"] == [{"timestamp": "1970-01-01T00:00:01.5Z", "key": "\x00\ufffd", "weight": 2.0}]
    reject = {"file": str(path), "line": 3, "reason": "weight is not a number", "text": "2,b,x"}
    assert made["rejects"] == [reject]
    assert (made["delimiter"], made["header"], made["columns"]) == (",", 1, ["time", "key", "w"])
    assert not (tmp_path / "t").exists()
