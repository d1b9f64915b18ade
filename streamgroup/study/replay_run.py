"""One run: a trace replayed with some options, its tables, and the directory that holds them."""

import dataclasses
import hashlib
import importlib.metadata
import json
import os
import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from streamgroup.base.arrow_numpy import column
from streamgroup.base.compiling.code_cache import sources_digest
from streamgroup.base.errors import DataError, UsageError
from streamgroup.base.progress import Progress, Silent
from streamgroup.base.run_tables_version import SCHEMA_VERSION
from streamgroup.base.storage.atomic_local_directories import staged_directory
from streamgroup.base.storage.storage_path import StoragePath
from streamgroup.base.version import VERSION
from streamgroup.metrics.metric_names import MEANINGS
from streamgroup.metrics.run_tables import tables, with_version
from streamgroup.replay.accounting.outcome import Outcome
from streamgroup.replay.accounting.replica_sets import TouchedPairs, beyond
from streamgroup.replay.compile_grouping import imported_digest
from streamgroup.replay.input.chunk_cache import ChunkCache
from streamgroup.replay.replay_trace import replay
from streamgroup.replay.scenario.app_selection import AppSelection, select_app
from streamgroup.replay.scenario.capacity_file import with_capacity
from streamgroup.replay.scenario.grouping_selection import Selection, select
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.study.rate_search import is_searched, search_rate
from streamgroup.study.read_run import MARKER
from streamgroup.study.run_option_columns import KINDS, OPTION_COLUMNS, readable
from streamgroup.study.run_warnings import warnings_of
from streamgroup.traces.manifest import Manifest
from streamgroup.traces.trace import Trace, open_trace

__all__ = [
    "RunResult", "check_top_keys", "checked", "code_of", "file_digest", "generator_of", "make_run", "named_options",
    "outside_code", "result_of", "run_to_directory", "without_changes", "write_run",
]  # fmt: skip

LOG = "assignments"

_LIBRARIES = ("numpy", "numba", "pyarrow", "polars")
# What decides the figures of a run, besides its grouping.
_DECIDING = ("apps", "cluster", "engines", "kernels", "metrics", "replay", "traces")
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
    record = _manifest(trace, options, outcome, baseline=baseline)
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


def file_digest(path: Path) -> str:
    """Return the sha256 of a file's bytes, in hex digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def content_digest(path: str) -> str | None:
    """Return the sha256 of a file that is named, None for one that cannot be read, which the run reports."""
    try:
        return file_digest(Path(path))
    except OSError:
        return None


def files_of(selection: Selection) -> dict[str, str | None]:
    """Return the digests of the files that the parameters of a grouping name, by parameter."""
    return {name: content_digest(path) for name, path in selection.params.files().items()}


def outside_code(options: ReplayOptions) -> dict[str, Any]:
    """Return the digests of files that hold an application or the aggregators' grouping, by option, and of those that
    this grouping's parameters name.
    """
    found: dict[str, AppSelection | Selection] = {}
    files: dict[str, str | None] = {}
    if options.app is not None:
        found["app"] = select_app(options.app)
    if options.aggregator_grouping is not None:
        found["aggregator_grouping"] = chosen = select(options.aggregator_grouping)
        files = files_of(chosen)
    digests = {f"{name}_digest": one.outside_digest for name, one in found.items() if one.outside_digest}
    return {**digests, **({"aggregator_grouping_files": files} if files else {})}


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


def code_of(selection: Selection) -> dict[str, str]:
    """Return the digests of the code that decides the figures of a run: the program's, and the grouping's."""
    own = selection.outside_digest or imported_digest((selection.module.__name__,))
    return {"program": sources_digest(_DECIDING, VERSION), "grouping": own}


def _touched(outcome: Outcome) -> TouchedPairs:
    assert outcome.worker.touched is not None
    return outcome.worker.touched


@cache
def _libraries() -> dict[str, str]:
    """Return the versions of libraries; finding one takes milliseconds."""
    return {name: importlib.metadata.version(name) for name in _LIBRARIES}


def generator_of(made: Manifest) -> dict[str, Any] | None:
    """Return the generator of a trace with its parameters and seed, None for one that was not generated."""
    if not made.generator:
        return None
    return {"name": made.generator, "parameters": made.generator_parameters, "seed": made.seed}


def _manifest(trace: Trace, options: ReplayOptions, outcome: Outcome, *, baseline: bool) -> dict[str, Any]:
    outside = {"file_digest": outcome.grouping_digest} if outcome.grouping_digest else {}
    selection = select(options.grouping)
    found = selection.params.facts(options.workers)
    made = trace.manifest
    facts = {"facts": found} if found else {}
    files = {"file_digests": digests} if (digests := files_of(selection)) else {}
    # A capacity file names the costs, too.
    costs = with_capacity(options).key_cost
    return {
        "schema_version": SCHEMA_VERSION,
        "trace": {
            "path": readable(str(trace.path)),
            "name": readable(trace.name),
            "fingerprint": trace.fingerprint(),
            "tuples": trace.tuples,
            "keys": trace.keys,
            "generator": generator_of(made),
        },
        "grouping": {"text": readable(outcome.grouping), "parameters": outcome.parameters, **facts, **files, **outside},
        "options": {name: readable(value) for name, value in dataclasses.asdict(options).items()},
        **({} if costs is None else {"option_digests": {"key_cost": content_digest(costs)}}),
        "baseline": baseline,
        "meanings": MEANINGS,
        "code": code_of(selection),
        **outside_code(options),
        "versions": {"streamgroup": VERSION, "python": platform.python_version(), **_libraries()},
        "timings": {"loop_seconds": outcome.loop_seconds, "replay_seconds": outcome.total_seconds},
        "host": {"system": platform.platform(), "machine": platform.machine(), "cores": os.cpu_count()},
        "finished_at": datetime.now(UTC).isoformat(timespec="seconds"),
    }
