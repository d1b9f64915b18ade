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


def test_people_see_every_digit_and_which_key_is_null(invoke: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(b"time,key,price,n,us\n1,-,45134.11,3,0.1\n2,NA,123456.789,4000000,7\n")
    options = ("--null-values", "NA", "--null-keys", "keep", "--value", "price", "--weight", "n", "--cost", "us")
    command = ("ingest", "csv", path, *options, "-o", tmp_path / "t", "--dry-run")
    lines = [line.split()[1:] for line in invoke(*command).stdout.splitlines()[2:]]
    assert lines == [["-", "0.1", "45134.11", "3"], ["(null)", "7", "123456.789", "4000000"]]
    made = json.loads(invoke(*command, "--format", "json").stdout)
    assert made["tuples"][1]["key"] is None
    assert made["tuples"][0]["cost"] == 0.1
