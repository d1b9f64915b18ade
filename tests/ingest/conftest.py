"""Fixtures of the ingest: inputs parsed by a reader without Spark, and whole ingests with it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from streamgroup.ingest.files.inputs_and_splits import limit_splits, plan_splits, resolve_inputs
from streamgroup.ingest.make_reader import make_reader
from streamgroup.ingest.make_trace import IngestResult, ingest
from streamgroup.ingest.options import make_options
from streamgroup.ingest.pipeline.check_and_filter_rows import Contract
from streamgroup.ingest.pipeline.expand_rows import pieces
from streamgroup.spark.session import Session

RAW = Path(__file__).parents[2] / "traces" / "raw"


class Rows(NamedTuple):
    tuples: list[tuple[int, bytes | None]]
    rejects: list[tuple[int, str]]
    filtered: dict[str, int]
    rows: int
    cost: list[float]
    inferred: tuple[str, ...]
    value: list[float]
    weight: list[float]


def read(path: Path | str, reader: str, **options: Any) -> Rows:
    """Read a file in this process with the parts of the read task; lines are those of the file."""
    made = make_options(reader=reader, inputs=(str(path),), output="unused", **options)
    member, contract = make_reader(made), Contract(made)
    splits = plan_splits(member, resolve_inputs(made.inputs))
    if made.limit is not None:
        splits = limit_splits(member, member.layout, splits, made.limit)
    tuples: list[tuple[int, bytes | None]] = []
    rejects: list[tuple[int, str]] = []
    filtered: dict[str, int] = {}
    rows, kept, line = 0, 0, 0
    cost: list[float] = []
    value: list[float] = []
    weight: list[float] = []
    inferred: tuple[str, ...] = ()
    for split in splits:
        layout = member.layout(split.path)
        inferred = layout.inferred
        lines = 0
        for parsed in member.batches(split, layout):
            found = contract.apply(parsed, layout)
            for piece in pieces(found, 1 << 20):
                tuples += zip(piece.timestamp.tolist(), piece.key.to_pylist(), strict=True)
                cost += [] if piece.cost is None else piece.cost.tolist()
                value += [] if piece.value is None else piece.value.tolist()
                weight += [] if piece.weight is None else piece.weight.tolist()
            rejects += [(line + reject.line, reject.reason) for reject in found.rejects]
            for reason, count in found.filtered.items():
                filtered[reason] = filtered.get(reason, 0) + count
            rows += parsed.rows
            kept += found.rows
            lines += parsed.lines
        line += lines
    assert rows == kept + len(rejects) + sum(filtered.values())
    return Rows(tuples, rejects, filtered, rows, cost, inferred, value, weight)


@pytest.fixture
def parse(tmp_path: Path) -> Callable[..., Rows]:
    """Read bytes as if they were a file."""

    def run(content: bytes, reader: str, name: str = "input", **options: Any) -> Rows:
        path = tmp_path / name
        path.write_bytes(content)
        return read(path, reader, **options)

    return run


@pytest.fixture(scope="session")
def raw() -> Path:
    return RAW


@pytest.fixture
def make(spark: Session, tmp_path: Path) -> Callable[..., IngestResult]:
    """Ingest in the shared session; the trace is `out.trace` unless told otherwise."""

    def run(reader: str, *inputs: Path | str, output: str = "out.trace", **options: Any) -> IngestResult:
        made = make_options(
            reader=reader, inputs=tuple(str(path) for path in inputs), output=tmp_path / output, **options
        )
        return ingest(made, session=spark)

    return run
