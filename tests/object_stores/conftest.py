"""A trace to put into a store, its files, and the command line in this process."""

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from streamgroup.cli.app import app
from tests.traces_by_hand import write_trace

ROWS = [(at * 1000, b"k%d" % (at % 7), float(at % 3)) for at in range(300)]
TRACE = ["keys/part-00000.parquet", "trace.json", "tuples/part-00000.parquet"]


def invoke(*args: object) -> Any:
    return CliRunner().invoke(app, [str(arg) for arg in args])


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return write_trace(tmp_path / "x.trace", ROWS, parts=3)
