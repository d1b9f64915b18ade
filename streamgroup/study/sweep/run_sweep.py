"""A sweep: many runs in one directory. Run again, it resumes: complete cells are not run again."""

import contextlib
import dataclasses
import fcntl
import json
import os
import re
import shutil
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from streamgroup.base.errors import EnvironmentFault, RunError, UsageError
from streamgroup.base.run_tables_version import SCHEMA_VERSION
from streamgroup.base.storage.atomic_files import write_files
from streamgroup.base.storage.atomic_local_directories import reclaim, staged_directory
from streamgroup.base.version import VERSION
from streamgroup.metrics.metric_names import METRICS
from streamgroup.replay.scenario.grouping_selection import select
from streamgroup.replay.scenario.seeds_used import seeds_used
from streamgroup.study.generator_parameter_columns import generator_columns
from streamgroup.study.make_run_record import code_of, file_digest, generator_of
from streamgroup.study.read_run import MARKER, TABLES, table_names
from streamgroup.study.replay_run import named_options, write_run
from streamgroup.study.run_option_columns import readable
from streamgroup.study.sweep.cell import Cell, CellOutcome
from streamgroup.study.sweep.summary_rows import as_table, row_of
from streamgroup.study.sweep.synth_traces import TRACES
from streamgroup.traces.trace import Trace

__all__ = ["CELLS", "SWEEP", "FoundCells", "Runner", "SweepResult", "find_cells", "run_sweep"]

SWEEP = "sweep.json"
SUMMARY = "summary.parquet"
CELLS = "cells"

# Runs cells, and gives their outcomes in any order.
Runner = Callable[[Sequence[Cell]], Generator[CellOutcome]]


@dataclass(frozen=True)
class SweepResult:
    """A row for each cell, in order; the numbers of cells run, reused and failed; and warnings by cell."""

    rows: list[dict[str, Any]]
    ran: int
    reused: int
    failed: int
    warnings: dict[str, list[str]]


@dataclass(frozen=True)
class FoundCells:
    """What a sweep's directory holds of the cells that are asked for: rows by id, and the ids of damaged ones.

    `of_other_code` are the ids of rows that other code made, of the program or of the grouping.
    """

    rows: dict[str, dict[str, Any]] = field(default_factory=dict)
    damaged: list[str] = field(default_factory=list)
    of_other_code: list[str] = field(default_factory=list)


def run_sweep(
    cells: Sequence[Cell],
    output: Path,
    traces: Mapping[str, Trace],
    run: Runner,
    note: Callable[[str], None] | None = None,
    *,
    overwrite: bool = False,
) -> SweepResult:
    """Run those of `cells` that `output` does not hold yet, and write each as a run directory as soon as it ends.

    `traces` are the open ones by path. `note` receives what is reused. With `overwrite` the cells and the summary of a
    sweep that is there are removed first, and nothing is reused. The directory says in `sweep.json` what was asked for;
    cells of earlier sweeps stay in it. `summary.parquet` comes last, a row a cell. What was begun and not ended
    leaves nothing. UsageError where `output` is something else, RunError while another process writes to it.
    """
    with _opened(output):
        if overwrite:
            for name in (SUMMARY, CELLS):
                if (output / name).exists() or (output / name).is_symlink():
                    _remove(output / name)
        found = find_cells(output, cells)
        for name in found.damaged:
            _remove(output / CELLS / name)
        missing = [cell for cell in cells if cell.id not in found.rows]
        if note is not None and (found.rows or found.damaged):
            note(_resumed(found, len(missing)))
        (output / SUMMARY).unlink(missing_ok=True)
        write_files({output / SWEEP: _as_json(_record(cells, traces))}, overwrite=True)
        (output / CELLS).mkdir(exist_ok=True)
        ended: dict[str, CellOutcome] = {}
        with contextlib.closing(run(missing)) as outcomes:
            for outcome in outcomes:
                ended[outcome.cell.id] = _written(outcome, output / CELLS / outcome.cell.id)
        rows = _rows(cells, traces, found, ended)
        write_files({output / SUMMARY: _as_parquet(as_table(rows))}, overwrite=True)
    warnings = {name: outcome.warnings for name, outcome in ended.items() if outcome.warnings}
    lost = sum(row["status"] != "ok" for row in rows)
    return SweepResult(rows, len(missing), len(found.rows), lost, warnings)


def find_cells(output: Path, cells: Sequence[Cell]) -> FoundCells:
    """Find the cells that a directory holds, whole or damaged; UsageError where it is there and no sweep."""
    if not output.exists() and not output.is_symlink():
        return FoundCells()
    if not output.is_dir():
        raise UsageError(f"{output} exists and is not a directory", "name another output")
    if not (output / SWEEP).is_file() and any(
        not entry.name.startswith(".") and entry.name != TRACES for entry in output.iterdir()
    ):
        raise UsageError(f"{output} exists and holds no {SWEEP}, so it is no sweep to resume", "name another output")
    if (output / CELLS).exists() and not (output / CELLS).is_dir():
        raise UsageError(
            f"{output / CELLS} is not a directory, so there are no cells in it", "remove it, or name another output"
        )
    found = FoundCells()
    for cell in cells:
        directory = output / CELLS / cell.id
        if not directory.exists() and not directory.is_symlink():
            continue
        row, code = _row_in(directory)
        if row is None or not _is_of(cell, row):
            found.damaged.append(cell.id)
            continue
        found.rows[cell.id] = row
        if code != code_of(select(cell.options.grouping)):
            found.of_other_code.append(cell.id)
    return found


def _row_in(directory: Path) -> tuple[dict[str, Any] | None, Any]:
    """Read the row of a cell's directory, None unless all of its tables are as written, and what code made it."""
    try:
        record = json.loads((directory / MARKER).read_bytes())
        if record["schema_version"] != SCHEMA_VERSION or not isinstance(record["trace"]["fingerprint"], str):
            return None, None
        digests = {name: file_digest(directory / f"{name}.parquet") for name in table_names(record)}
        if record["table_digests"] != digests:
            return None, None
        path = (directory / f"{TABLES[0]}.parquet").absolute()
        rows: list[dict[str, Any]] = pq.read_table(path, partitioning=None).to_pylist()
    except (OSError, ValueError, KeyError, TypeError, RecursionError, pa.ArrowException):
        return None, None
    return rows[0] if len(rows) == 1 and METRICS.keys() <= rows[0].keys() else None, record.get("code")


def _is_of(cell: Cell, row: Mapping[str, Any]) -> bool:
    """Return whether a row is of a run with a cell's options, and not one that came to its place by mistake."""
    options = cell.options
    asked = (select(options.grouping).text, options.workers, options.sources, options.arrivals)
    found = tuple(row.get(name) for name in ("grouping", "workers", "sources", "arrivals"))
    same_seed = row.get("seed") == options.seed or "seed" not in seeds_used(vars(options))
    return same_seed and found == tuple(map(readable, asked))


def _resumed(found: FoundCells, missing: int) -> str:
    text = f"{len(found.rows)} reused, {missing} to run"
    if found.damaged:
        count = len(found.damaged)
        text += f" ({count} of them {'was' if count == 1 else 'were'} damaged: {', '.join(found.damaged)})"
    if count := len(found.of_other_code):
        was = "was" if count == 1 else "were"
        text += f"; {count} of the reused {was} made by other code, --overwrite runs all again"
    return text


@contextlib.contextmanager
def _opened(output: Path) -> Iterator[None]:
    """Make the directory of a sweep if it is not there, and keep others out of it; what killed ones began goes."""
    find_cells(output, [])
    try:
        output.mkdir(parents=True, exist_ok=True)
        handle = os.open(output, os.O_RDONLY)
    except OSError as error:
        raise EnvironmentFault(f"cannot write in {output}: {error.strerror}", "choose another output") from None
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RunError(f"another sweep writes to {output} at the moment", "wait for it, or name another") from None
        except OSError:
            # A file system without locks.
            pass
        begun = (_BEGUN.fullmatch(entry.name) for entry in (output / CELLS).glob(".*"))
        for name in {match[1] for match in begun if match}:
            reclaim((output / CELLS).absolute() / name)
        yield
    finally:
        os.close(handle)


# Unfinished directories, as `staged_directory` calls them.
_BEGUN = re.compile(r"\.([0-9a-f]+)\.(?:partial|replaced)-.*")


def _written(outcome: CellOutcome, directory: Path) -> CellOutcome:
    """Write what a cell gave, and keep the rest of it: tables of hundreds of cells would fill the memory."""
    if outcome.error is None:
        with staged_directory(directory, overwrite=False, marker=MARKER) as staged:
            write_run(staged, outcome.tables, outcome.record)
    return dataclasses.replace(outcome, tables={}, record={})


def _rows(
    cells: Sequence[Cell], traces: Mapping[str, Trace], found: FoundCells, ended: Mapping[str, CellOutcome]
) -> list[dict[str, Any]]:
    rows = []
    names = _names(traces)
    for cell in cells:
        trace, options = traces[cell.trace], cell.options
        row, error = found.rows.get(cell.id), None
        if row is None:
            row, error = ended[cell.id].row, ended[cell.id].error
        naming = named_options(trace, options, select(options.grouping).text)
        rows.append(row_of(cell.id, {**naming, "trace": names[cell.trace]}, row, error))
    more = generator_columns([generator_of(traces[cell.trace].manifest) for cell in cells])
    return [
        {"trace": row["trace"], **{name: values[place] for name, values in more.items()}, **row}
        for place, row in enumerate(rows)
    ]


def _names(traces: Mapping[str, Trace]) -> dict[str, str]:
    """Name the traces by path; several of one name are distinguished by the start of their fingerprints."""
    marks: dict[str, set[str]] = {}
    for trace in traces.values():
        marks.setdefault(trace.name, set()).add(trace.fingerprint())
    return {
        path: readable(trace.name if len(marks[trace.name]) == 1 else f"{trace.name}@{trace.fingerprint()[:8]}")
        for path, trace in traces.items()
    }


def _record(cells: Iterable[Cell], traces: Mapping[str, Trace]) -> dict[str, Any]:
    listed = []
    for cell in cells:
        trace, options = traces[cell.trace], cell.options
        named = named_options(trace, options, select(options.grouping).text)
        place = {
            "path": os.fsencode(trace.path.text).decode("utf-8", "backslashreplace"),
            "fingerprint": trace.fingerprint(),
        }
        listed.append({"id": cell.id, "trace": place, "baseline": cell.baseline, "options": named})
    return {
        "schema_version": SCHEMA_VERSION,
        "versions": {"streamgroup": VERSION},
        "cells": listed,
    }


def _as_json(content: Mapping[str, Any]) -> bytes:
    return (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode()


def _as_parquet(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd", compression_level=3)
    written: bytes = sink.getvalue().to_pybytes()
    return written


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()
