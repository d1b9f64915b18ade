"""Runs the cells of a sweep as tasks of a Spark cluster, with the same outcomes as in threads."""

import contextlib
import dataclasses
import os
import platform
import warnings
from collections.abc import Callable, Generator, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from streamgroup.base.errors import EnvironmentFault
from streamgroup.base.storage.storage_path import locate
from streamgroup.base.version import VERSION
from streamgroup.spark.executor_package import ensure_package
from streamgroup.spark.options import SparkOptions
from streamgroup.spark.session import check_environment, open_session
from streamgroup.spark.task_pool import run_each
from streamgroup.study.sweep.cell import Cell, CellOutcome, failed, make_cell, run_cell
from streamgroup.traces.trace import Trace, open_trace

__all__ = ["run_on_spark"]

# Traces that each of Spark's processes keeps open, with the keys of their dictionaries.
_OPEN = 4


class _Here(NamedTuple):
    """What an executor must share with this process."""

    directory: str
    version: str


class _Packed(NamedTuple):
    """An outcome as it crosses from a task: without tables, and these compressed."""

    outcome: CellOutcome
    tables: dict[str, bytes]


def run_on_spark(
    cells: Sequence[Cell], spark: SparkOptions, note: Callable[[str], None] | None = None
) -> Generator[CellOutcome]:
    """Start Spark and run each cell in a task of its own, begun in their order; what has ended is given at once.

    Traces are read by the executors: from a URL, or from a path that is the same on all machines, as are the files that
    options name. A cell whose executor sees something else fails and says so. Executors that lack this package are sent
    it; tables come back as rows of Spark, so no disk is shared. Failures are outcomes, as `run_cell` gives them, a lost
    executor among them. EnvironmentFault when something is missing or Spark does not start, RunError when Spark ends
    before the cells have. `note` is called when Spark waits for executors. A caller that stops before the end closes
    the iterator.
    """
    if not cells:
        return
    check_environment(spark)
    here = _Here(str(Path.cwd()), VERSION)
    with open_session(spark) as session:
        ensure_package(session)
        with contextlib.closing(run_each(session, partial(_in_task, here), cells, note)) as finished:
            for number, packed, error in finished:
                yield CellOutcome(cells[number], error) if packed is None else _outcome(packed)


def _in_task(here: _Here, cell: Cell) -> _Packed:
    # Relative paths are those of the command.
    with contextlib.suppress(OSError):
        os.chdir(here.directory)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            trace = _seen(here, cell)
        except Exception as error:  # noqa: BLE001 (a cell that fails must not stop the others)
            return _Packed(failed(cell, error), {})
        outcome = run_cell(cell, trace=trace)
    return _Packed(dataclasses.replace(outcome, tables={}), _packed(outcome.tables))


def _seen(here: _Here, cell: Cell) -> Trace:
    """Open the trace of a cell as this executor sees it; EnvironmentFault when it is not what the command sees."""
    host = platform.node()
    if here.version != VERSION:
        raise EnvironmentFault(f"executor {host} has version {VERSION} of streamgroup, not {here.version}")
    if not locate(cell.trace).is_dir():
        raise EnvironmentFault(
            f"executor {host} does not see {cell.trace}",
            "name a trace by its URL, or put it at the same path on all machines of the cluster",
        )
    trace = _opened(cell.trace)
    if make_cell(trace, cell.options, baseline=cell.baseline).id != cell.id:
        raise EnvironmentFault(
            f"executor {host} sees other contents in {cell.trace}, or in a file that the options name",
            "they must lie at the same paths on all machines of the cluster",
        )
    return trace


@lru_cache(maxsize=_OPEN)
def _opened(path: str) -> Trace:
    """Open a trace once in each of Spark's processes."""
    return open_trace(path)


def _packed(tables: Mapping[str, pa.Table]) -> dict[str, bytes]:
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    packed = {}
    for name, table in tables.items():
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
            writer.write_table(table)
        packed[name] = sink.getvalue().to_pybytes()
    return packed


def _outcome(packed: _Packed) -> CellOutcome:
    tables = {name: pa.ipc.open_stream(pa.py_buffer(content)).read_all() for name, content in packed.tables.items()}
    return dataclasses.replace(packed.outcome, tables=tables)
