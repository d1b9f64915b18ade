"""One cell of a sweep: a run named by a digest of all that it depends on; an error is recorded as its result."""

import dataclasses
import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from streamgroup.base.errors import StreamgroupError
from streamgroup.base.run_tables_version import SCHEMA_VERSION
from streamgroup.base.version import VERSION
from streamgroup.replay.accounting.replica_sets import TouchedPairs
from streamgroup.replay.input.chunk_cache import ChunkCache
from streamgroup.replay.scenario.capacity_file import with_capacity
from streamgroup.replay.scenario.grouping_selection import select
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.replay.scenario.seeds_used import SEEDS, seeds_used
from streamgroup.study.make_run_record import content_digest, files_of, outside_code
from streamgroup.study.replay_run import checked, make_run, without_changes
from streamgroup.traces.trace import Trace

__all__ = ["Cell", "CellOutcome", "failed", "make_cell", "run_cell", "simulation_of"]

_DIGITS = 16


@dataclass(frozen=True)
class Cell:
    """A run: the path or URL of its `trace` as given, its `options` with the values of the capacity file filled in.

    `baseline` asks for `remapped_replicas`.

    `id` is a digest (16 hex digits) of all that the tables depend on, see `make_cell`.
    """

    trace: str
    options: ReplayOptions
    baseline: bool
    id: str


@dataclass(frozen=True)
class CellOutcome:
    """What became of a cell: its row, warnings, tables and record as `make_run` gives them, or its `error` in a line.

    `seconds` is all that it took, `loop_seconds` the loop's part. `touched` are its pairs of key and worker, if they
    were to be kept. It can be pickled.
    """

    cell: Cell
    error: str | None
    row: dict[str, Any] | None = None
    warnings: list[str] = field(default_factory=list)
    tables: dict[str, pa.Table] = field(default_factory=dict)
    record: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    loop_seconds: float = 0.0
    touched: TouchedPairs | None = None


def make_cell(trace: Trace, options: ReplayOptions, *, baseline: bool = False) -> Cell:
    """Name a run by the content of its trace, its options, the files these name, and the version of the program.

    The capacity file, the file of costs and files that parameters name count with their content, a grouping outside
    the package with its code.
    UsageError for a grouping or a capacity file that is wrong in itself.
    """
    options = with_capacity(options)
    path = {"capacity": options.capacity, "trace": trace.name, "baseline": baseline}
    return Cell(trace.path.reference, options, baseline, _digest(path, _simulation(trace, options)))


def simulation_of(trace: Trace, options: ReplayOptions) -> str:
    """Return a digest of what is simulated, whatever the trace and the capacity file are called."""
    return _digest(_simulation(trace, options))


def run_cell(
    cell: Cell,
    *,
    trace: Trace | None = None,
    baseline: TouchedPairs | None = None,
    keep: bool = False,
    chunk_cache: ChunkCache | None = None,
    progress: Callable[[int], None] | None = None,
) -> CellOutcome:
    """Run a cell; its outcome holds any error.

    `trace` is the cell's if it is open already. `baseline` are the pairs of its baseline, if it asks for one and they
    are known: else the baseline is run, too. With `keep` the cell's own pairs are in the outcome. `chunk_cache` and
    `progress` are as `replay` takes them.
    """
    begun = time.perf_counter()
    try:
        if trace is None:
            trace, options = checked(cell.trace, cell.options, log=False)
        else:
            options = cell.options
        compared = None if not cell.baseline else baseline or without_changes(options)
        made = make_run(trace, options, baseline=compared, progress=progress, chunk_cache=chunk_cache, keep_pairs=keep)
    except (Exception, SystemExit) as error:  # noqa: BLE001 (a cell that fails must not stop the others)
        return failed(cell, error, time.perf_counter() - begun)
    return CellOutcome(
        cell, None, made.row, made.warnings, made.tables, made.record,
        time.perf_counter() - begun, made.record["timings"]["loop_seconds"], made.touched,
    )  # fmt: skip


def failed(cell: Cell, error: Exception | SystemExit, seconds: float = 0.0) -> CellOutcome:
    """Return the outcome of a cell that an error ended."""
    if isinstance(error, StreamgroupError):
        text = f"{error.message} ({error.hint})" if error.hint else error.message
    elif isinstance(error, MemoryError):
        text = "not enough memory"
    else:
        text = f"{type(error).__name__}: {error}"
    return CellOutcome(cell, " ".join(text.split()), seconds=seconds)


def _simulation(trace: Trace, options: ReplayOptions) -> dict[str, Any]:
    full = with_capacity(options)
    selection = select(full.grouping)
    named = {**dataclasses.asdict(full), "grouping": selection.text}
    del named["capacity"]
    # A seed that is not used changes nothing.
    named |= dict.fromkeys(set(SEEDS) - seeds_used(named), 0)
    # Where no file is named, digests of earlier versions stay as they are.
    files = {"files": digests} if (digests := files_of(selection)) else {}
    return {
        "options": named,
        "code": selection.outside_digest,
        "costs": None if full.key_cost is None else content_digest(full.key_cost),
        **files,
        **outside_code(full),
        "fingerprint": trace.fingerprint(),
        "versions": [VERSION, SCHEMA_VERSION],
    }


def _digest(*parts: dict[str, Any]) -> str:
    text = json.dumps(parts, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]
