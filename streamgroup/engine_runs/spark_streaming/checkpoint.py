"""The directory of a streaming run: what it belongs to, its input cut into batches, Spark's checkpoint, its output.

checkpoint.json   what the run is of: only the same goes on with it
clock.json        when its time began, how often it was started, when each batch was committed
waiting/, input/  a Parquet file for each batch, before and after its tuples have arrived; where the grouping listens to
                  its workers, one in input/ also has what these report of the batch before
spark/, output/   Spark's own, but with such a grouping output/ has a Parquet file for each batch that was served
"""

import contextlib
import dataclasses
import fcntl
import importlib.metadata
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from streamgroup.base.errors import DataError, UsageError
from streamgroup.base.storage.atomic_files import write_files
from streamgroup.base.storage.atomic_local_directories import staged_directory
from streamgroup.engine_runs.spark_streaming.one_worker_per_partition import partition_labels
from streamgroup.engine_runs.spark_streaming.query_columns import READ
from streamgroup.engine_runs.spark_streaming.worker_reports import reports_of, rows_for_sources
from streamgroup.replay.prepared_run import Run
from streamgroup.replay.scenario.grouping_selection import select
from streamgroup.study.make_run_record import code_of, outside_code
from streamgroup.study.run_option_columns import readable

__all__ = ["WARM_UPS", "Checkpoint", "belongings", "file_name", "opened"]

I64 = NDArray[np.int64]
MARKER, _CLOCK, _LOCK = "checkpoint.json", "clock.json", ".lock"
_FORMAT = 2
# Batches before the first tuple, in which processes start: in the first one they do, the second finds them there.
WARM_UPS = 2
_PATTERN = re.compile(r"[][*?{}\\]")
# Spark takes files by their times: this one is the first's, in s.
_FIRST_TIME = 1_000_000_000


class Checkpoint:
    """An open checkpoint; `batch_ends` has for each batch the place behind its last tuple.

    `source_labels` are those of the sources where these listen to workers, else None.
    """

    def __init__(self, path: Path, batch_ends: I64, arrival: I64, source_labels: Sequence[int] | None) -> None:
        self.path = path
        self._source_labels = source_labels
        self._last_arrival = arrival[batch_ends - 1]
        # Including those before the first tuple.
        self.batches = WARM_UPS + len(batch_ends)
        clock = _read(path / _CLOCK) if (path / _CLOCK).exists() else {"origin_ns": None, "starts": 0, "commits": {}}
        self.origin_ns: int | None = clock["origin_ns"]
        self.starts: int = clock["starts"]
        self.commits: dict[int, int] = {int(batch): at for batch, at in clock["commits"].items()}
        self._arrived = sum(1 for _ in (path / "input").iterdir())

    @property
    def is_complete(self) -> bool:
        """Return whether all batches are committed."""
        return len(self.commits) == self.batches

    def start(self) -> None:
        """Count a start of the query, but for one more before time began."""
        self.starts = max(self.starts + (self.origin_ns is not None), 1)
        self._write()

    def begin(self, origin_ns: int) -> None:
        """Let time begin, at so many ns since the epoch."""
        self.origin_ns = origin_ns
        self._write()

    def due(self) -> int | None:
        """Return when the next batch is complete, in ns since the epoch; None if there is none, or time has not begun.

        Batches without tuples are due at once. Where sources listen to workers, there is none before these have
        reported: the batch before is committed, and what it left stays as it is.
        """
        if self._arrived < WARM_UPS:
            return 0
        if self._arrived == self.batches or self.origin_ns is None:
            return None
        if self._wants_reports and self._arrived - 1 not in self.commits:
            return None
        return self.origin_ns + int(self._last_arrival[self._arrived - WARM_UPS])

    @property
    def listens(self) -> bool:
        """Return whether sources listen to workers."""
        return self._source_labels is not None

    @property
    def _wants_reports(self) -> bool:
        """Return whether the next batch carries reports: batches without tuples have none."""
        return self.listens and self._arrived > WARM_UPS

    def deliver(self) -> None:
        """Hand the next batch to Spark."""
        name = file_name(self._arrived)
        waiting, place = self.path / "waiting" / name, self.path / "input" / name
        if self._wants_reports:
            assert self._source_labels is not None
            assert self.origin_ns is not None
            before = file_name(self._arrived - 1)
            files = (self.path / folder / before for folder in ("input", "output"))
            read, served = (pq.read_table(one, partitioning=None) for one in files)
            reports = rows_for_sources(reports_of(read, served, self.origin_ns), self._source_labels)
            whole = waiting.with_suffix(".whole")
            _write(pa.concat_tables([pq.read_table(waiting, partitioning=None), reports]), whole, self._arrived)
            whole.rename(place)
            waiting.unlink()
        else:
            waiting.rename(place)
        self._arrived += 1

    def look(self) -> int:
        """Note when Spark committed batches, by the times of its own files; return how many are new."""
        new = {}
        with contextlib.suppress(FileNotFoundError):
            for entry in os.scandir(self.path / "spark" / "commits"):
                if entry.name.isdigit() and int(entry.name) not in self.commits:
                    with contextlib.suppress(FileNotFoundError):
                        new[int(entry.name)] = entry.stat().st_mtime_ns
        if new:
            self.commits.update(new)
            self._write()
        return len(new)

    def _write(self) -> None:
        clock = {"origin_ns": self.origin_ns, "starts": self.starts, "commits": self.commits}
        write_files({self.path / _CLOCK: json.dumps(clock).encode()}, overwrite=True)


def belongings(run: Run, service_mode: str, micro_batch: int) -> dict[str, Any]:
    """Return what must be the same for a run to go on: trace, options, and the code of grouping and state."""
    options = run.plan.options
    selection = select(options.grouping)
    return {
        "format": _FORMAT, "trace": run.trace.fingerprint(), "micro_batch": micro_batch, "service_mode": service_mode,
        **{name: readable(value) for name, value in dataclasses.asdict(options).items()},
        "grouping": selection.text, "files": {name: str(one) for name, one in selection.params.files().items()},
        **{f"code_of_{name}": digest for name, digest in code_of(selection).items()}, **outside_code(options),
        "pyspark": importlib.metadata.version("pyspark"),
    }  # fmt: skip


@contextlib.contextmanager
def opened(
    path: Path, belongs: Mapping[str, Any], table: pa.Table, partitions: int, *, listens: bool = False
) -> Iterator[Checkpoint]:
    """Open the checkpoint of a run, or begin one where there is none; `table` has the tuples of its trace.

    With `listens` sources take in what workers report. UsageError where the directory is of another run, no checkpoint,
    or in use.
    """
    if odd := _PATTERN.search(str(path)):
        raise UsageError(
            f"--checkpoint {path} has a {odd[0]} in its path, which Spark takes for a pattern", "name another directory"
        )
    size, labels = belongs["micro_batch"], partition_labels(belongs["sources"], partitions)
    ends = np.minimum(np.arange(size, len(table) + size, size), len(table))
    if not path.exists() or (path.is_dir() and not any(path.iterdir())):
        with staged_directory(path, overwrite=True, marker=MARKER) as directory:
            _prepare(directory, belongs, table, ends, labels)
    if not (path / MARKER).is_file():
        raise UsageError(f"--checkpoint {path} holds no {MARKER}, so it is none of ours", "name another directory")
    if found := _differences(_read(path / MARKER), json.loads(_text(belongs))):
        raise UsageError(
            f"--checkpoint {path} is of another run: {'; '.join(found)}",
            "give the trace and options of that run, or name another directory",
        )
    with (path / _LOCK).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise UsageError(f"--checkpoint {path} is in use by another process", "wait until it ends") from None
        yield Checkpoint(path, ends, table["arrival"].to_numpy(), labels if listens else None)


def _prepare(directory: Path, belongs: Mapping[str, Any], table: pa.Table, ends: I64, source_labels: list[int]) -> None:
    """Write a file for each batch, and what they belong to."""
    for name in ("waiting", "input"):
        (directory / name).mkdir()
    sources, labels = len(source_labels), np.array(source_labels, dtype=np.int32)
    empty = {name: [None if name == "key" else -1] * sources for name in READ.names}
    warm_up = pa.table({**empty, "source": np.arange(sources), "label": labels}, schema=READ)
    of_tuples = {name: table[name] for name in table.column_names}
    of_tuples["label"] = pa.array(labels[table["source"].to_numpy()])
    no_report = pa.array(np.full(len(table), -1))
    tuples = pa.table({name: of_tuples.get(name, no_report) for name in READ.names}, schema=READ)
    begins = np.concatenate([[0], ends[:-1]])
    batches = [warm_up] * WARM_UPS + [
        tuples.slice(begin, end - begin) for begin, end in zip(begins.tolist(), ends.tolist(), strict=True)
    ]
    for number, batch in enumerate(batches):
        _write(batch, directory / "waiting" / file_name(number), number)
    (directory / MARKER).write_text(_text(belongs), encoding="utf-8")


def _write(batch: pa.Table, path: Path, number: int) -> None:
    """Write an input file, with a time that puts it into its place."""
    pq.write_table(batch, path)
    os.utime(path, (_FIRST_TIME + number, _FIRST_TIME + number))


def file_name(batch: int) -> str:
    """Name the files of a batch."""
    return f"batch-{batch:09d}.parquet"


def _text(belongs: Mapping[str, Any]) -> str:
    return json.dumps(belongs, indent=2, ensure_ascii=False, default=str) + "\n"


def _read(path: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(path.read_bytes())
    except ValueError:
        raise DataError(f"{path} is damaged", "begin again, without this checkpoint") from None
    return found


def _differences(there: Mapping[str, Any], here: Mapping[str, Any]) -> list[str]:
    """Say what differs; the code only where nothing else does, as another grouping has other code."""
    names = [*here, *(name for name in there if name not in here)]
    differ = [name for name in names if there.get(name) != here.get(name)]
    shown = [name for name in differ if not name.startswith("code_of_")] or differ
    return [f"{name.replace('_', '-')} {there.get(name)} there, {here.get(name)} here" for name in shown]
