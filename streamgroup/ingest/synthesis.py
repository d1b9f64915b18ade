"""From a generator to a trace: one pass counts the keys, a second writes their ids.

The draws are made twice rather than held. Whoever does the work, threads or Spark tasks, does the same pieces of it:
counts over stretches of the stream, parts of `tuples/` and `keys/`; so the bytes are the same. What one step leaves for
the next lies in files beside the parts, O(keys) of them.
"""

import shutil
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pydantic import BaseModel, ValidationError

import streamgroup
from streamgroup.base.discover import GENERATORS, load, suggest
from streamgroup.base.errors import EnvironmentFault, UsageError
from streamgroup.base.progress import Progress, Silent
from streamgroup.base.staging import staged_directory
from streamgroup.ingest.engines import Engine, OnSpark, OnThreads
from streamgroup.ingest.generators.protocol import Chunk, Generator, Stream
from streamgroup.ingest.segments import map_array, map_table, whole_file, write_array, write_table
from streamgroup.spark.java import find_java
from streamgroup.spark.options import SparkOptions
from streamgroup.spark.session import Session, open_session, terminable
from streamgroup.traces import schema
from streamgroup.traces.arrays import add_counts, arrow, numbers
from streamgroup.traces.dictionary import key_chunks
from streamgroup.traces.keys import hash_keys
from streamgroup.traces.manifest import Manifest, measured, write_manifest
from streamgroup.traces.parts import list_parts, open_part
from streamgroup.traces.writer import (
    Columns,
    KeyColumns,
    PartStats,
    fingerprint,
    join_stats,
    write_keys_part,
    write_part,
)

__all__ = ["SPARK_TUPLES", "EngineName", "chosen_engine", "parameters", "synthesise"]

EngineName = Literal["auto", "local", "spark"]

# Tuples from which on `auto` takes Spark.
SPARK_TUPLES = 50_000_000
# Stretches for each job that is done at a time, so that the last ones do not keep most of the processors waiting.
_SHARES = 4
# Keys that are Python objects at a time.
_AT_ONCE = 1 << 16


def parameters(name: str, given: Mapping[str, Any]) -> BaseModel:
    """Check the parameters given to a generator; UsageError names the parameter and its range."""
    generator = cast(Generator, load(GENERATORS, name, "generator"))
    try:
        return generator.Params(**given)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(piece) for piece in first["loc"])
        if first["type"] == "extra_forbidden":
            hint = suggest(where, generator.Params.model_fields)
            raise UsageError(f"{name} has no parameter {where!r}", hint) from None
        what = first["msg"].removeprefix("Value error, ")
        raise UsageError(f"{name}: {where + ': ' if where else ''}{what}") from None


def chosen_engine(engine: EngineName, tuples: int) -> Literal["local", "spark"]:
    """Tell where a stream of some length is made: `auto` is Spark from 50 million tuples on, where there is Java."""
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
    output: Path,
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
    wrong parameter or an output that exists, EnvironmentFault for the engine `spark` without Java.
    """
    params = parameters(name, given)
    progress = progress or Silent()
    stream = cast(Generator, load(GENERATORS, name, "generator")).generate(params)
    chosen = "spark" if session is not None else chosen_engine(engine, stream.tuples)
    with terminable(), staged_directory(output, overwrite=overwrite, marker=schema.MANIFEST) as out:
        make = partial(_make, name, params, output, out, stream)
        if session is not None:
            return make(OnSpark(name, params, session, progress), progress)
        if chosen == "local":
            return make(OnThreads(stream, progress), progress)
        find_java()
        asked = spark or SparkOptions()
        progress.start(None, "starting Spark")
        with open_session(asked) as opened:
            return make(OnSpark(name, params, opened, progress), progress)


class _Folder(NamedTuple):
    """The trace as it is made, and where its steps leave files for each other; all machines must see it."""

    root: str

    def path(self, *names: str) -> Path:
        return Path(self.root, *names)

    def counts(self, first: int) -> Path:
        return self.path("scratch", f"count-{first:015d}.npy")

    @property
    def ids(self) -> Path:
        """The file of the key id of each label."""
        return self.path("scratch", "ids.npy")

    def keys(self, part: int) -> Path:
        """The file of keys and counts, in id order, of a part of the dictionary."""
        return self.path("scratch", f"keys-{part:05d}.arrow")


class _Stretch(NamedTuple):
    first: int
    tuples: int


def _make(
    name: str, params: BaseModel, output: Path, out: Path, stream: Stream, engine: Engine, progress: Progress
) -> Manifest:
    folder = _Folder(str(out))
    for made in ("scratch", schema.TUPLES, schema.KEYS):
        folder.path(made).mkdir()
    stretches = _stretches(stream, engine.parallelism)
    engine.run(partial(_count, folder), stretches, stream.tuples, "counting keys")
    progress.start(None, "ordering keys")
    keys, top = _number(folder, stream, [_counted(folder, stretch) for stretch in stretches])
    engine.run(partial(_write_keys, folder), range(-(-keys // schema.KEY_PART_ROWS)), None, "writing keys")
    parts = range(-(-stream.tuples // schema.PART_ROWS))
    stats = join_stats(engine.run(partial(_write_tuples, folder), parts, stream.tuples, "writing tuples"))
    dictionary = (chunk for _, chunk in key_chunks([open_part(path) for path in list_parts(out, schema.KEYS)]))
    options = params.model_dump(mode="json")
    seed = options.pop("seed", None)
    manifest = Manifest(
        format_version=schema.FORMAT_VERSION,
        name=output.name.removesuffix(".trace"),
        program_version=streamgroup.__version__,
        generator=name,
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
        **measured(stats, keys, top, fingerprint(stats.block_digests, dictionary)),
    )
    shutil.rmtree(folder.path("scratch"))
    write_manifest(out, manifest)
    return manifest


def _stretches(stream: Stream, parallelism: int) -> list[_Stretch]:
    """Cut a stream for counting. A count takes a number a label, so a stretch has at least as many tuples."""
    wanted = min(_SHARES * parallelism, -(-stream.tuples // max(schema.BLOCK_ROWS, stream.labels)))
    blocks = -(-stream.tuples // schema.BLOCK_ROWS)
    size = -(-blocks // wanted) * schema.BLOCK_ROWS
    return [_Stretch(first, min(size, stream.tuples - first)) for first in range(0, stream.tuples, size)]


def _chunks(stream: Stream, stretch: _Stretch) -> Iterator[Chunk]:
    stop = stretch.first + stretch.tuples
    for first in range(stretch.first, stop, schema.BLOCK_ROWS):
        yield stream.chunk(first, min(schema.BLOCK_ROWS, stop - first))


def _count(folder: _Folder, stream: Stream, stretch: _Stretch) -> None:
    """Count the labels of a stretch into a file."""
    count = np.zeros(stream.labels, np.int64)
    for chunk in _chunks(stream, stretch):
        add_counts(count, chunk.label)
    write_array(folder.counts(stretch.first), count.astype(np.min_scalar_type(count.max())))


def _counted(folder: _Folder, stretch: _Stretch) -> NDArray[Any]:
    try:
        return map_array(folder.counts(stretch.first))
    except FileNotFoundError:
        raise EnvironmentFault(
            "what Spark's tasks wrote is not to be seen here",
            "name an output in a directory that all machines of the cluster share",
        ) from None


def _number(folder: _Folder, stream: Stream, counts: list[NDArray[Any]]) -> tuple[int, int]:
    """Give ids to the keys that come, by count and then bytes, and leave them in files; tells keys, highest count."""
    total = np.zeros(stream.labels, np.int64)
    for own in counts:
        total += own
    label = np.flatnonzero(total)
    count = total[label]
    del total
    both = pa.Table.from_arrays([_names(stream, label), arrow(count)], ["key", "count"])
    order = pc.sort_indices(both, sort_keys=[("count", "descending"), ("key", "ascending")])
    for part, first in enumerate(range(0, len(order), schema.KEY_PART_ROWS)):
        held = both.take(order.slice(first, schema.KEY_PART_ROWS)).combine_chunks()
        write_table(folder.keys(part), {name: held.column(name).chunk(0) for name in held.column_names})
    ids = np.zeros(stream.labels, np.uint32)
    ids[label[numbers(order)]] = np.arange(len(label), dtype=np.uint32)
    write_array(folder.ids, ids)
    return len(label), int(count.max())


def _names(stream: Stream, label: NDArray[np.int64]) -> pa.LargeBinaryArray:
    lengths, pieces = [np.zeros(1, np.int64)], []
    for first in range(0, len(label), _AT_ONCE):
        keys = [stream.key(each) for each in label[first : first + _AT_ONCE].tolist()]
        lengths.append(np.fromiter(map(len, keys), np.int64, len(keys)))
        pieces.append(b"".join(keys))
    ends = np.cumsum(np.concatenate(lengths))
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(pieces))]
    return pa.Array.from_buffers(pa.large_binary(), len(label), buffers)


def _write_keys(folder: _Folder, stream: Stream, part: int) -> None:
    del stream
    table = map_table(folder.keys(part))
    keys = table.column("key")
    first = part * schema.KEY_PART_ROWS
    columns = KeyColumns(keys, numbers(table.column("count")), *hash_keys(keys))
    whole_file(folder.path(schema.KEYS, schema.part_name(part)), lambda to: write_keys_part(to, first, columns))


def _write_tuples(folder: _Folder, stream: Stream, part: int) -> PartStats:
    first = part * schema.PART_ROWS
    stretch = _Stretch(first, min(schema.PART_ROWS, stream.tuples - first))
    id_of: NDArray[np.uint32] = np.asarray(map_array(folder.ids))
    columns = (
        Columns(chunk.timestamp, id_of[chunk.label], chunk.cost, chunk.value, chunk.weight)
        for chunk in _chunks(stream, stretch)
    )
    stats: list[PartStats] = []
    path = folder.path(schema.TUPLES, schema.part_name(part))
    whole_file(path, lambda to: stats.append(write_part(to, columns)))
    return stats[0]
