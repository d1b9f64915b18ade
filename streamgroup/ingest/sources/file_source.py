"""The source for files: divides each into splits, which a reader parses."""

import json
from collections import Counter
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any, ClassVar

from streamgroup.base.errors import StreamgroupError
from streamgroup.base.storage.storage_path import locate
from streamgroup.ingest import explain_rejected_rows
from streamgroup.ingest.files import inputs_and_splits
from streamgroup.ingest.files.inputs_and_splits import InputFile
from streamgroup.ingest.make_reader import make_reader, with_option_files
from streamgroup.ingest.options import IngestOptions
from streamgroup.ingest.parsing.column_list_text import NO_TIME
from streamgroup.ingest.pipeline.arrow_blocks import Row
from streamgroup.ingest.pipeline.check_and_filter_rows import Contract
from streamgroup.ingest.pipeline.read_splits import read_task
from streamgroup.ingest.readers.protocol import Layout, Reader, Split
from streamgroup.ingest.runners.protocol import Frame, Runner
from streamgroup.ingest.sources.protocol import Source
from streamgroup.traces.manifest import Input

__all__ = ["FileSource"]

# Bytes that one task reads, at least and at most but for one split more; little, as they may be compressed or words
# to be split.
LEAST_BYTES = 1 << 20
MOST_BYTES = 64 << 20
# Bytes of all inputs up to which they are searched for a first record before Spark starts.
_SMALL = 1 << 20
# Options that do not change the trace.
_NOT_IN_TRACE = {
    "reader", "inputs", "output", "engine", "master", "remote", "spark_conf", "driver_memory", "overwrite", "dry_run",
    "checksum", "max_rejects", "if_missing",
}  # fmt: skip


class FileSource(Source):
    """Files, in the order in which they are given, each from its first line to its last."""

    ordered: ClassVar = True

    def __init__(self, options: IngestOptions) -> None:
        """Check all that can be checked before anything is read: options, columns, that there are rows."""
        options = self._options = with_option_files(options)
        self.timed = options.time != NO_TIME
        reader = self._reader = make_reader(options)
        Contract(options)
        layout_of = cache(reader.layout)
        self.files: list[InputFile] = inputs_and_splits.resolve_inputs(options.inputs)
        self._sizes = {file.path: file.size for file in self.files}
        inputs_and_splits.check_outside_inputs(options.inputs, locate(options.output))
        inputs_and_splits.check_outside_output(self.files, locate(options.output))
        splits = inputs_and_splits.plan_splits(reader, self.files)
        self._layout = layout_of(splits[0].path)
        if options.limit is not None:
            splits = inputs_and_splits.limit_splits(reader, layout_of, splits, options.limit)
        if sum(self._sizes[split.path] for split in splits) <= _SMALL:
            _check_rows(reader, layout_of, splits)
        self._splits = {split.number: split for split in splits}
        self._first = splits[0]
        self._jobs: list[list[Split | str]] = []

    @property
    def tasks(self) -> int:
        """Return the number of tasks that read the files and digest them."""
        return len(self._jobs)

    def read(self, runner: Runner) -> Frame:
        """Read all splits; small ones share a task, so that a thousand small files do not cost a thousand starts."""
        sizes = self._sizes
        shares = Counter(split.path for split in self._splits.values())
        jobs: list[tuple[Split | str, int]] = []
        if self._options.checksum:
            jobs += [(file.path, file.size) for file in self.files]
        jobs += [(split, sizes[split.path] // shares[split.path]) for split in self._splits.values()]
        aim = sum(size for _, size in jobs) // (4 * runner.parallelism)
        aim, planned = max(LEAST_BYTES, min(MOST_BYTES, aim)), 0
        for job, size in jobs:
            if not self._jobs or planned + size > aim:
                self._jobs.append([])
                planned = 0
            self._jobs[-1].append(job)
            planned += size
        return runner.tasks(len(self._jobs), partial(read_task, self._options, self._jobs)).keep()

    def origin(self, split: int) -> tuple[int, str]:
        """Return the number of the file, and its path as it was given."""
        number = self._splits[split].file
        return number, self.files[number].given

    def inputs(self, found: list[Row]) -> list[Input]:
        """Return path, size and digest of each file."""
        inputs_and_splits.check_unchanged(self.files)
        digests = dict(json.loads(row.stats or "") for row in found if row.kind == "digest")
        return [Input(path=file.given, bytes=file.size, sha256=digests.get(file.path)) for file in self.files]

    def describe(self) -> dict[str, Any]:
        """Return the reader and the options that say what it read."""
        own = self._options.model_dump(mode="json", exclude=_NOT_IN_TRACE, exclude_defaults=True)
        layout = self._layout
        types = layout.key_types or ("string",) * len(layout.key_parts)
        parts = [{"name": layout.names[at], "type": kind} for at, kind in zip(layout.key_parts, types, strict=True)]
        return {
            "reader": self._options.reader,
            "reader_options": own,
            "key_parts": parts or None,
            "times": None if self.timed else NO_TIME,
        }

    def advise(self, rejected: Counter[str], examples: Mapping[str, str], otherwise: str) -> str:
        """Suggest the option that reads rows like those that were rejected."""
        try:
            shown = explain_rejected_rows.first_time(self._reader, self._first)
        except (OSError, StreamgroupError):
            # It was removed or changed since: give the hint without it.
            shown = None
        return explain_rejected_rows.hint_of(self._reader, rejected, examples, shown, otherwise)


def _check_rows(reader: Reader, layout_of: Callable[[str], Layout], splits: list[Split]) -> None:
    """Raise a DataError for inputs without a record, of only headers or blank lines."""
    rows, filtered = 0, Counter[str]()
    for split in splits:
        for parsed in reader.batches(split, layout_of(split.path)):
            if len(parsed.line) or parsed.rejects:
                return
            rows += parsed.rows
            filtered.update(parsed.filtered)
    raise explain_rejected_rows.no_tuples_left(rows, filtered, Counter())
