"""One run: a trace replayed with some options, its tables, and the directory that holds them."""

import dataclasses
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from streamgroup.base.arrow_numpy import column
from streamgroup.base.errors import DataError, UsageError
from streamgroup.base.progress import Progress, Silent
from streamgroup.base.storage.atomic_local_directories import staged_directory
from streamgroup.base.storage.storage_path import StoragePath
from streamgroup.metrics.run_tables import tables, with_version
from streamgroup.replay.accounting.outcome import Outcome
from streamgroup.replay.accounting.replica_sets import TouchedPairs, beyond
from streamgroup.replay.input.chunk_cache import ChunkCache
from streamgroup.replay.replay_trace import replay
from streamgroup.replay.scenario.capacity_file import with_capacity
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.study.make_run_record import file_digest, made_record
from streamgroup.study.rate_search import is_searched, search_rate
from streamgroup.study.read_run import MARKER
from streamgroup.study.run_option_columns import KINDS, OPTION_COLUMNS, readable
from streamgroup.study.run_warnings import warnings_of
from streamgroup.traces.trace import Trace, open_trace

__all__ = [
    "RunResult", "check_top_keys", "checked", "make_run", "named_options", "result_of", "run_to_directory",
    "without_changes", "write_run",
]  # fmt: skip

LOG = "assignments"

_ARROW: dict[type, pa.DataType] = {bool: pa.bool_(), int: pa.int64(), str: pa.string()}


@dataclass(frozen=True)
class RunResult:
    """What a run gave: its row (options, then every metric), what to warn of, all tables, and what `run.json` says.

    `notes` say how it was run.

    `output` is where they were written, `touched` the pairs of key and worker that another run may be compared with, if
    they were to be kept.
    """

    row: dict[str, Any]
    warnings: list[str]
    tables: dict[str, pa.Table]
    record: dict[str, Any]
    output: Path | None = None
    notes: tuple[str, ...] = ()
    touched: TouchedPairs | None = None


def run_to_directory(
    trace_path: str | Path | StoragePath,
    options: ReplayOptions,
    output: Path | None = None,
    *,
    log: bool = False,
    overwrite: bool = False,
    baseline: bool = False,
    progress: Progress | None = None,
) -> RunResult:
    """Replay a trace and write the run to `output`, a directory that appears whole or not at all.

    Without `output` nothing is written. `log` adds the assignment log. `baseline` replays the trace once more, with
    workers that neither join nor leave nor crash, and sets `remapped_replicas` to the replicas that it does not have;
    nothing else of it is kept. What a capacity file says is in the row as if it had been given. `progress` receives the
    tuples of each chunk, not those of the baseline.
    All is checked before the replay: UsageError for the options, an output that exists, a log without one or a
    baseline without a change of workers, DataError for a trace that is not sound or is empty.
    """
    trace, options = checked(trace_path, options, log=log and output is None)
    without = without_changes(options) if baseline else None
    progress = progress or Silent()
    progress.start(None if is_searched(options) else trace.tuples, "replay")
    if output is None:
        return make_run(trace, options, baseline=without, progress=progress.advance)
    with staged_directory(output, overwrite=overwrite, marker=MARKER) as directory:
        log_directory = directory / LOG if log else None
        result = make_run(trace, options, baseline=without, log_directory=log_directory, progress=progress.advance)
        write_run(directory, result.tables, result.record)
    return dataclasses.replace(result, output=output)


def make_run(
    trace: Trace,
    options: ReplayOptions,
    *,
    baseline: ReplayOptions | TouchedPairs | None = None,
    log_directory: Path | None = None,
    progress: Callable[[int], None] | None = None,
    chunk_cache: ChunkCache | None = None,
    keep_pairs: bool = False,
) -> RunResult:
    """Replay a trace; `options` are as `checked` gives them. Nothing is written but the log.

    Where the rate of arrivals is to be searched, the run is that at the rate found, with a table of the `trials`.

    `baseline` is the run that `remapped_replicas` compares with: its options, or its pairs where they are known.
    `chunk_cache` shares what is read with other runs in threads of this process. With `keep_pairs` the result has the
    run's own pairs.
    """
    search = search_rate(trace, options, progress=progress) if is_searched(options) else None
    outcome = replay(
        trace, options if search is None else search.options, log_directory=log_directory, progress=progress,
        chunk_cache=chunk_cache, keep_pairs=keep_pairs or baseline is not None,
    )  # fmt: skip
    if baseline is not None:
        if isinstance(baseline, ReplayOptions):
            baseline = _touched(replay(trace, baseline, chunk_cache=chunk_cache, keep_pairs=True))
        outcome = dataclasses.replace(outcome, remapped_replicas=beyond(_touched(outcome), baseline))
    if search is not None:
        outcome = dataclasses.replace(outcome, max_rate_tps=search.rate_tps)
    notes: tuple[str, ...] = ()
    if outcome.interpreted_seconds:
        notes = (f"interpreted: {outcome.grouping} is not compiled yet, and compiling it takes longer than this run",)
    result = result_of(trace, options, outcome, baseline=baseline is not None)
    if search is not None:
        result.tables["trials"] = with_version(search.table())
        result.record.update(search.record())
    return dataclasses.replace(result, notes=notes, touched=outcome.worker.touched if keep_pairs else None)


def result_of(trace: Trace, options: ReplayOptions, outcome: Outcome, *, baseline: bool = False) -> RunResult:
    """Return the tables and the record of an outcome; `baseline` says that it was compared with one."""
    made = tables(outcome)
    naming = named_options(trace, options, outcome.grouping)
    columns = {name: column([value], _ARROW[KINDS[name]]) for name, value in naming.items()}
    summary = pa.table(columns)
    for name in made["summary"].column_names:
        summary = summary.append_column(name, made["summary"][name])
    made["summary"] = summary
    record = made_record(trace, options, outcome, baseline=baseline)
    return RunResult(summary.to_pylist()[0], warnings_of(trace, options, outcome), made, record)


def write_run(directory: Path, tables: Mapping[str, pa.Table], record: Mapping[str, Any]) -> None:
    """Write the tables of a run, and last its record with their digests, the file that makes a directory a run."""
    digests = {}
    for name, table in tables.items():
        path = directory / f"{name}.parquet"
        pq.write_table(table, path, compression="zstd", compression_level=3, row_group_size=1 << 20)
        digests[name] = file_digest(path)
    record = {**record, "table_digests": digests}
    with (directory / MARKER).open("w", encoding="utf-8") as file:
        file.write(json.dumps(record, indent=2, ensure_ascii=False, default=str) + "\n")
        file.flush()
        os.fsync(file.fileno())


def named_options(trace: Trace, options: ReplayOptions, grouping: str) -> dict[str, Any]:
    """Return what names a run in its row, by column: the trace, and every option with the grouping's canonical text."""
    values = {**dataclasses.asdict(options), "trace": trace.name, "grouping": grouping}
    return {name: readable(values[name]) for name in OPTION_COLUMNS}


def checked(trace_path: str | Path | StoragePath, options: ReplayOptions, *, log: bool) -> tuple[Trace, ReplayOptions]:
    """Open a trace that is to be replayed, and read the capacity file; `log` says that a log has nowhere to go."""
    if log:
        raise UsageError("--log needs a directory to write to", "add -o RUN")
    trace = open_trace(trace_path)
    if trace.tuples == 0:
        raise DataError(f"{trace.path}: the trace is empty, there is nothing to replay", "ingest more than nothing")
    check_top_keys(options.top_keys)
    return trace, with_capacity(options)


def check_top_keys(count: int) -> None:
    """Refuse a number of keys that is negative, or that no table holds; UsageError."""
    if not 0 <= count < 1 << 63:
        raise UsageError(f"--top-keys {count} is not between 0 and 2^63 - 1")


def without_changes(options: ReplayOptions) -> ReplayOptions:
    """Return the same options with workers that stay; UsageError when they stay anyway, or a rate is searched."""
    if is_searched(options):
        raise UsageError(
            f"--baseline compares runs at one rate, and --arrivals {options.arrivals} finds one for each",
            "use --arrivals rate=R",
        )
    if not (options.join or options.leave or options.crash):
        raise UsageError(
            "--baseline runs the same without a change of workers, and there is none", "add --join, --leave or --crash"
        )
    # The capacity file is read already; it must not fill in once more what is taken away here.
    return dataclasses.replace(options, join=(), leave=(), crash=(), redeliver=False, capacity=None)


def _touched(outcome: Outcome) -> TouchedPairs:
    assert outcome.worker.touched is not None
    return outcome.worker.touched
