"""One run: a trace replayed with some options, its tables, and the directory that holds them."""

import dataclasses
import importlib.metadata
import json
import os
import platform
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import streamgroup
from streamgroup.base.errors import DataError, UsageError
from streamgroup.base.schema import SCHEMA_VERSION
from streamgroup.base.staging import staged_directory
from streamgroup.metrics.tables import tables
from streamgroup.replay.options import ReplayOptions
from streamgroup.replay.outcome import Outcome
from streamgroup.replay.run import replay
from streamgroup.traces.arrays import column
from streamgroup.traces.trace import Trace, open_trace

__all__ = ["MARKER", "OPTION_COLUMNS", "RunResult", "run_to_directory"]

MARKER = "run.json"
LOG = "assignments"

_LIBRARIES = ("numpy", "numba", "pyarrow", "polars")
_FIRST = ("grouping", "workers", "sources", "seed", "hash_seed")
_FIELDS = [field.name for field in dataclasses.fields(ReplayOptions)]
# What names a run in its row, ahead of the metrics.
OPTION_COLUMNS = ("trace", *_FIRST, *(name for name in _FIELDS if name not in _FIRST))

# A column has its type also where nothing was given.
_ARROW: dict[Any, pa.DataType] = {bool: pa.bool_(), int: pa.int64(), int | None: pa.int64()}
_KINDS = {field.name: _ARROW.get(field.type, pa.string()) for field in dataclasses.fields(ReplayOptions)}

_KEYS_PER_WORKER = 10
_US_PER_S = 1_000_000


@dataclass(frozen=True)
class RunResult:
    """What a run gave: its row (options, then every metric), what to warn of, all tables, where they were written."""

    row: dict[str, Any]
    warnings: list[str]
    tables: dict[str, pa.Table]
    output: Path | None


def run_to_directory(
    trace_path: str | Path,
    options: ReplayOptions,
    output: Path | None = None,
    *,
    log: bool = False,
    overwrite: bool = False,
    progress: Callable[[int], None] | None = None,
) -> RunResult:
    """Replay a trace and write the run to `output`, a directory that appears whole or not at all.

    Without `output` nothing is written. `log` adds the assignment log. `progress` is told the tuples of each chunk.
    All is checked before the replay: UsageError for the options, an output that exists or a log without one,
    DataError for a trace that is not sound or is empty.
    """
    if log and output is None:
        raise UsageError("--log needs a directory to write to", "add -o RUN")
    trace = open_trace(trace_path)
    if trace.tuples == 0:
        raise DataError(f"{trace.path}: the trace is empty, there is nothing to replay", "ingest more than nothing")
    if output is None:
        return _result(trace, options, replay(trace, options, progress=progress), None)
    with staged_directory(output, overwrite=overwrite, marker=MARKER) as directory:
        log_directory = directory / LOG if log else None
        outcome = replay(trace, options, log_directory=log_directory, progress=progress)
        result = _result(trace, options, outcome, output)
        for name, frame in result.tables.items():
            _write(frame, directory / f"{name}.parquet")
        _write_marker(directory / MARKER, _manifest(trace, options, outcome))
    return result


def _result(trace: Trace, options: ReplayOptions, outcome: Outcome, output: Path | None) -> RunResult:
    made = tables(outcome)
    values = {**dataclasses.asdict(options), "trace": trace.name, "grouping": outcome.grouping}
    naming = pa.table(
        {name: column([_readable(values[name])], _KINDS.get(name, pa.string())) for name in OPTION_COLUMNS}
    )
    for name in made["summary"].column_names:
        naming = naming.append_column(name, made["summary"][name])
    made["summary"] = naming
    return RunResult(naming.to_pylist()[0], _warnings(trace, options, outcome), made, output)


def _readable(value: Any) -> Any:
    """Make a list one text; escape bytes of a file name that are not UTF-8, which neither JSON nor Parquet holds."""
    if isinstance(value, tuple):
        value = " ".join(value)
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return value


def _warnings(trace: Trace, options: ReplayOptions, outcome: Outcome) -> list[str]:
    found = []
    load = outcome.offered_load
    if load is not None and not 0.01 <= load <= 1:
        what = "the workers cannot keep up and queues only grow" if load > 1 else "the workers are nearly always idle"
        found.append(
            f"offered load is {float(100 * load):.3g} %: {what}, so latencies say little; "
            "try --arrivals utilization=0.8"
        )
    if outcome.keys < _KEYS_PER_WORKER * outcome.workers:
        found.append(
            f"{outcome.keys} distinct keys for {outcome.workers} workers: with fewer than {_KEYS_PER_WORKER} keys a "
            "worker, some workers may get nothing whatever the grouping of keys"
        )
    if options.arrivals == "trace" and not options.spread_ties and _whole_seconds_with_ties(trace):
        found.append(
            "the trace's times are whole seconds, so its tuples arrive in bursts; --spread-ties spreads them out"
        )
    return found


def _whole_seconds_with_ties(trace: Trace) -> bool:
    """Judge by the first batch whether times are whole seconds and some are equal."""
    batch = next(trace.batches(("timestamp",)), None)
    if batch is None or batch.timestamp is None:
        return False
    times = batch.timestamp
    return not np.any(times % _US_PER_S) and bool(np.any(times[1:] == times[:-1]))


def _write(table: pa.Table, path: Path) -> None:
    pq.write_table(table, path, compression="zstd", compression_level=3, row_group_size=1 << 20)


def _manifest(trace: Trace, options: ReplayOptions, outcome: Outcome) -> dict[str, Any]:
    outside = {"file_digest": outcome.grouping_digest} if outcome.grouping_digest else {}
    libraries = {name: importlib.metadata.version(name) for name in _LIBRARIES}
    return {
        "schema_version": SCHEMA_VERSION,
        "trace": {
            "path": _readable(str(trace.path)),
            "name": _readable(trace.name),
            "fingerprint": trace.fingerprint(),
            "tuples": trace.tuples,
            "keys": trace.keys,
        },
        "grouping": {"text": _readable(outcome.grouping), "parameters": outcome.parameters, **outside},
        "options": {name: _readable(value) for name, value in dataclasses.asdict(options).items()},
        "versions": {"streamgroup": streamgroup.__version__, "python": platform.python_version(), **libraries},
        "timings": {"loop_seconds": outcome.loop_seconds, "replay_seconds": outcome.total_seconds},
        "host": {"system": platform.platform(), "machine": platform.machine(), "cores": os.cpu_count()},
        "finished_at": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _write_marker(path: Path, content: dict[str, Any]) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.write(json.dumps(content, indent=2, ensure_ascii=False, default=str) + "\n")
        file.flush()
        os.fsync(file.fileno())
