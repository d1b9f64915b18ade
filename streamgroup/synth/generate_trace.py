"""From a generator to a trace: one pass counts the keys, a second writes their ids.

The draws are made twice rather than held. Threads and Spark tasks do the same pieces of work, counts over
segments of the stream and parts of `tuples/`, so the bytes are the same. The driver needs O(keys) memory.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pydantic import BaseModel, ValidationError

from streamgroup.base.arrow_numpy import arrow, numbers
from streamgroup.base.errors import EnvironmentFault, UsageError
from streamgroup.base.modules_by_name import GENERATORS, load
from streamgroup.base.progress import Progress, Silent
from streamgroup.base.pydantic_errors import first_problem
from streamgroup.base.spelling_hint import suggest
from streamgroup.base.storage.output_on_disk_or_object_store import staged_output
from streamgroup.base.storage.storage_path import StoragePath, locate
from streamgroup.base.version import VERSION
from streamgroup.ingest.pipeline.arrow_blocks import block, rows_of
from streamgroup.ingest.pipeline.write_parts import check_visible, part_written, read_part_stats
from streamgroup.ingest.runners.local_runner import LocalRunner
from streamgroup.ingest.runners.protocol import Runner
from streamgroup.ingest.runners.spark_runner import SparkRunner
from streamgroup.ingest.runners.stop_threads import check_stopped
from streamgroup.spark.executor_package import ensure_package
from streamgroup.spark.find_java_and_spark import find_java
from streamgroup.spark.options import SparkOptions
from streamgroup.spark.session import Session, start_session, terminable
from streamgroup.synth.generators.protocol import Chunk, Generator, Stream
from streamgroup.traces import layout
from streamgroup.traces.fingerprint import fingerprint
from streamgroup.traces.hash_and_show_keys import hash_keys
from streamgroup.traces.manifest import Manifest, measured, write_manifest
from streamgroup.traces.statistics.count_ids import add_counts
from streamgroup.traces.tuple_blocks import Columns, KeyColumns
from streamgroup.traces.write_trace_files import join_stats, write_keys, write_part

__all__ = [
    "REMOTE_LABELS",
    "SPARK_TUPLES",
    "EngineName",
    "chosen_engine",
    "parameters",
    "recorded_parameters",
    "synthesise",
]

EngineName = Literal["auto", "local", "spark"]

# Tuples from which on `auto` takes Spark.
SPARK_TUPLES = 50_000_000
# Stretches for each job that is done at a time, so that the last ones do not keep most of the processors waiting.
_SEGMENTS_PER_TASK = 4
# Labels up to which their ids, 4 bytes each, fit into a message of Spark Connect, 128 MB.
REMOTE_LABELS = 30_000_000
# Labels whose counts one task adds up.
RANGE_LABELS = 1 << 20
# Keys that are Python objects at a time.
_KEY_BATCH = 1 << 16


def parameters(name: str, given: Mapping[str, Any]) -> BaseModel:
    """Check the parameters given to a generator; UsageError names the parameter and its range."""
    generator = cast(Generator, load(GENERATORS, name, "generator"))
    try:
        return generator.Params(**given)
    except ValidationError as error:
        place, reason, is_unknown = first_problem(error)
        if is_unknown:
            hint = suggest(place, generator.Params.model_fields)
            raise UsageError(f"{name} has no parameter {place!r}", hint) from None
        raise UsageError(f"{name}: {place + ': ' if place else ''}{reason}") from None


def recorded_parameters(params: BaseModel) -> tuple[dict[str, Any], int | None]:
    """Return parameters as the manifest has them: all but the seed, and the seed."""
    options = params.model_dump(mode="json")
    return options, options.pop("seed", None)


def chosen_engine(engine: EngineName, tuples: int) -> Literal["local", "spark"]:
    """Choose the engine for a stream: `auto` is Spark from 50 million tuples on, where there is Java."""
    if engine != "auto":
        return engine
    if tuples < SPARK_TUPLES:
        return "local"
    try:
        find_java()
    except EnvironmentFault:
        return "local"
    return "spark"


def synthesise(
    name: str,
    given: Mapping[str, Any],
    output: StoragePath | Path,
    *,
    engine: EngineName = "auto",
    spark: SparkOptions | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
    session: Session | None = None,
) -> Manifest:
    """Make the trace of a generator (`zipf`) with the parameters given, at `output`.

    Memory is O(keys). Key ids go by the realised frequency; a key that was never drawn is not in the dictionary.
    `spark` says how Spark is started where it is the engine; an open `session` is used as it is. UsageError for a
    wrong parameter, an output that exists or more keys than Spark Connect takes, EnvironmentFault for the engine
    `spark` without Java.
    """
    params = parameters(name, given)
    progress = progress or Silent()
    stream = cast(Generator, load(GENERATORS, name, "generator")).generate(params)
    chosen = "spark" if session is not None else chosen_engine(engine, stream.tuples)
    with (
        terminable(),
        staged_output(output, overwrite=overwrite, marker=layout.MANIFEST) as out,
        ExitStack() as opened,
    ):
        scaled = _TupleProgress(progress, stream.tuples)
        if chosen == "local":
            return _make(_StreamSource(name, params), output, out, LocalRunner(scaled), progress)
        if session is None:
            session = opened.enter_context(start_session(spark or SparkOptions(), progress))
        if session.remote and stream.labels > REMOTE_LABELS:
            raise UsageError(
                f"{stream.labels} keys are more than a Spark Connect server takes in one message ({REMOTE_LABELS})",
                "use --master or --engine local",
            )
        ensure_package(session)
        runner = SparkRunner(session, scaled)
        opened.callback(runner.close)
        return _make(_StreamSource(name, params), output, out, runner, progress)


class _TupleProgress:
    """Reports tuples where a runner reports tasks."""

    def __init__(self, progress: Progress, tuples: int) -> None:
        self._progress = progress
        self._tuples = tuples
        self._tasks = self._done = 0

    def start(self, total: int | None, text: str) -> None:
        self._tasks, self._done = total or 1, 0
        self._progress.start(self._tuples, text)

    def advance(self, done: int) -> None:
        before, self._done = self._done, min(self._done + done, self._tasks)
        self._progress.advance(self._tuples * self._done // self._tasks - self._tuples * before // self._tasks)


class _StreamSource(NamedTuple):
    """A generator and its parameters, which a task makes the stream from."""

    name: str
    params: BaseModel


class _Segment(NamedTuple):
    first: int
    tuples: int


def _make(
    source: _StreamSource, output: StoragePath | Path, out: StoragePath, runner: Runner, progress: Progress
) -> Manifest:
    stream = _stream(source)
    segments = _segments(stream, runner.parallelism)
    ranges = -(-stream.labels // RANGE_LABELS)
    counts = runner.tasks(len(segments), partial(_count, source, segments)).exchange(ranges).map(_add)
    rows = runner.run(lambda: counts.stats("sum"), len(segments) + ranges, "counting keys")
    count = np.concatenate([row.columns().column("tuples").to_numpy() for row in sorted(rows, key=lambda row: row.to)])
    progress.start(None, "ordering keys")
    ids, keys = _assign_ids(stream, count)
    progress.start(None, "writing keys")
    dictionary = keys.column("key").combine_chunks()
    write_keys(out / layout.KEYS, _key_columns(keys))
    number = -(-stream.tuples // layout.PART_ROWS)
    made = runner.tasks(number, partial(_write_tuples, source, out, ids))
    written = runner.run(lambda: made.stats("written"), number, "writing tuples")
    check_visible(out, tuples=number, keys=-(-len(dictionary) // layout.KEY_PART_ROWS))
    stats = join_stats(read_part_stats(row) for row in sorted(written, key=lambda row: row.place))
    options, seed = recorded_parameters(source.params)
    manifest = Manifest(
        format_version=layout.FORMAT_VERSION,
        name=locate(output).name.removesuffix(".trace"),
        program_version=VERSION,
        generator=source.name,
        generator_parameters=options,
        seed=seed,
        inputs=[],
        rows_read=stats.rows,
        rows_kept=stats.rows,
        rows_rejected=0,
        rejected={},
        rows_filtered=0,
        filtered={},
        in_order=True,
        out_of_order=0,
        **measured(stats, len(dictionary), int(count.max()), fingerprint(stats.block_digests, [dictionary])),
    )
    write_manifest(out, manifest)
    return manifest


@lru_cache(maxsize=1)
def _stream(source: _StreamSource) -> Stream:
    """Make a stream once in each process: the tables of a large one take seconds."""
    return cast(Generator, load(GENERATORS, source.name, "generator")).generate(source.params)


def _segments(stream: Stream, parallelism: int) -> list[_Segment]:
    """Cut a stream for counting. A count takes a number a label, so a stretch has at least as many tuples."""
    wanted = min(_SEGMENTS_PER_TASK * parallelism, -(-stream.tuples // max(layout.BLOCK_ROWS, stream.labels)))
    blocks = -(-stream.tuples // layout.BLOCK_ROWS)
    size = -(-blocks // wanted) * layout.BLOCK_ROWS
    return [_Segment(first, min(size, stream.tuples - first)) for first in range(0, stream.tuples, size)]


def _chunks(stream: Stream, segment: _Segment) -> Iterator[Chunk]:
    stop = segment.first + segment.tuples
    for first in range(segment.first, stop, layout.BLOCK_ROWS):
        check_stopped()
        yield stream.chunk(first, min(layout.BLOCK_ROWS, stop - first))


def _count(source: _StreamSource, segments: list[_Segment], number: int) -> Iterator[pa.RecordBatch]:
    """Count the labels of a stretch, and send the counts of each range of labels to the task that adds them up."""
    stream = _stream(source)
    count = np.zeros(stream.labels, np.int64)
    for chunk in _chunks(stream, segments[number]):
        add_counts(count, chunk.label)
    count = count.astype(np.min_scalar_type(count.max()))
    for label_range, first in enumerate(range(0, stream.labels, RANGE_LABELS)):
        yield block("count", {"tuples": count[first : first + RANGE_LABELS]}, to=label_range)


def _add(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    sums: dict[int, NDArray[np.int64]] = {}
    for row in rows_of(batches):
        own = row.columns().column("tuples").to_numpy().astype(np.int64)
        sums[row.to] = sums[row.to] + own if row.to in sums else own
    for label_range, total in sums.items():
        yield block("sum", {"tuples": total}, to=label_range)


def _assign_ids(stream: Stream, total: NDArray[np.int64]) -> tuple[NDArray[np.uint32], pa.Table]:
    """Return the key id of each label, and keys and counts in the order of ids: by count, then bytes."""
    label = np.flatnonzero(total)
    both = pa.Table.from_arrays([_names(stream, label), arrow(total[label])], ["key", "count"])
    order = pc.sort_indices(both, sort_keys=[("count", "descending"), ("key", "ascending")])
    ids = np.zeros(stream.labels, np.uint32)
    ids[label[numbers(order)]] = np.arange(len(label), dtype=np.uint32)
    return ids, both.take(order)


def _names(stream: Stream, label: NDArray[np.int64]) -> pa.LargeBinaryArray:
    lengths, pieces = [np.zeros(1, np.int64)], []
    for first in range(0, len(label), _KEY_BATCH):
        keys = [stream.key(each) for each in label[first : first + _KEY_BATCH].tolist()]
        lengths.append(np.fromiter(map(len, keys), np.int64, len(keys)))
        pieces.append(b"".join(keys))
    ends = np.cumsum(np.concatenate(lengths))
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(pieces))]
    return pa.Array.from_buffers(pa.large_binary(), len(label), buffers)


def _key_columns(keys: pa.Table) -> Iterator[KeyColumns]:
    for first in range(0, len(keys), layout.KEY_PART_ROWS):
        part = keys.slice(first, layout.KEY_PART_ROWS).combine_chunks()
        names = part.column("key").combine_chunks()
        yield KeyColumns(names, part.column("count").to_numpy(), *hash_keys(names))


def _write_tuples(
    source: _StreamSource, out: StoragePath, ids: NDArray[np.uint32], part: int
) -> Iterator[pa.RecordBatch]:
    stream = _stream(source)
    first = part * layout.PART_ROWS
    segment = _Segment(first, min(layout.PART_ROWS, stream.tuples - first))
    columns = (
        Columns(chunk.timestamp, ids[chunk.label], chunk.cost, chunk.value, chunk.weight)
        for chunk in _chunks(stream, segment)
    )
    yield part_written(part, write_part(out / layout.TUPLES / layout.part_name(part), columns))
