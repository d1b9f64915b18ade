"""The key dictionary, on Spark: counts over all segments, ids by frequency, and each segment's way to the
ids.
"""

import itertools
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from streamgroup.ingest.segments import Scratch, Segment, whole_file
from streamgroup.traces.keys import hash_keys, not_utf8

__all__ = ["KeyRun", "map_segments", "rank_keys"]

# Keys that one task ranks, about.
RUN_KEYS = 1 << 20
_RUN_BATCH = 64 << 10

_LOCAL = "segment long, local int, key binary, count long"
_RANKED = "run int, place long, key binary, count long, hash_lo long, hash_hi long"


class KeyRun(NamedTuple):
    """A stretch of the ranked dictionary that one task wrote: keys, whether one is not UTF-8, the first
    count.
    """

    run: int
    keys: int
    odd: bool
    top: int


def _partition() -> int:
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    return int(context.partitionId())


def _write_run(scratch: Scratch, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Hash ranked keys and write them as one run (inside a task)."""
    run, place, odd, top = _partition(), 0, False, 0
    path = scratch.folder("ranked") / f"{run:06d}.parquet"

    def write(temporary: Any) -> None:
        nonlocal place, odd, top
        writer: Any = None
        for batch in batches:
            if not batch.num_rows:
                continue
            keys = batch.column("key").cast(pa.large_binary())
            odd = odd or bool(not_utf8(keys))
            top = top or int(batch.column("count")[0].as_py())
            low, high = hash_keys(keys)
            columns = {
                "run": pa.array(np.full(len(keys), run, np.int32)),
                "place": pa.array(np.arange(place, place + len(keys))),
                "key": keys.cast(pa.binary()),
                "count": batch.column("count"),
                "hash_lo": pa.array(low),
                "hash_hi": pa.array(high),
            }
            table = pa.table(columns)
            writer = writer or pq.ParquetWriter(temporary, table.schema, compression="lz4")
            writer.write_table(table, row_group_size=_RUN_BATCH)
            place += len(keys)
        if writer is not None:
            writer.close()
        else:
            temporary.touch()

    whole_file(path, write)
    if not place:
        path.unlink()
    stats = {"run": [run], "keys": [place], "odd": [odd], "top": [top]}
    yield pa.RecordBatch.from_pydict(
        stats, pa.schema([("run", "int64"), ("keys", "int64"), ("odd", "bool"), ("top", "int64")])
    )


def rank_keys(spark: Any, scratch: Scratch, tasks: int) -> list[KeyRun]:
    """Add up the counts of all segments, order keys by (count down, key bytes up, null first), write runs.

    Key ids are places in the runs one after the other. Returns one entry a run, in order.
    """
    from pyspark.sql import functions as fn

    local = spark.read.schema(_LOCAL).parquet(str(scratch.folder("dictionaries")))
    order = [fn.desc("count"), fn.asc_nulls_first("key")]
    ranked = (
        local.where("count > 0")
        .groupBy("key")
        .agg(fn.sum("count").alias("count"))
        .repartitionByRange(tasks, *order)
        .sortWithinPartitions(*order)
    )
    found = ranked.mapInArrow(
        partial(_write_run, scratch), "run long, keys long, odd boolean, top long"
    ).collect()
    return [KeyRun(*row) for row in sorted(map(tuple, found)) if row[1]]


def _write_mappings(
    scratch: Scratch, sizes: dict[int, int], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Write key ids by local number, one array a segment (inside a task; rows come segment by segment)."""
    current: int | None = None
    ids = np.empty(0, np.uint32)

    def save() -> None:
        if current is None:
            return

        def write(temporary: Any) -> None:
            with temporary.open("wb") as file:
                np.save(file, ids)

        whole_file(scratch.mapping(current), write)

    for batch in batches:
        segments = batch.column("segment").to_numpy()
        numbers, values = batch.column("local").to_numpy(), batch.column("id").to_numpy()
        borders = [0, *(np.flatnonzero(np.diff(segments)) + 1).tolist(), len(segments)]
        for low, high in itertools.pairwise(borders):
            if low == high:
                continue
            segment = int(segments[low])
            if segment != current:
                save()
                current, ids = segment, np.zeros(sizes[segment], np.uint32)
            ids[numbers[low:high]] = values[low:high].astype(np.uint32)
    save()
    yield pa.RecordBatch.from_pydict({"done": []}, pa.schema([("done", "int64")]))


def map_segments(
    spark: Any, scratch: Scratch, segments: list[Segment], runs: list[KeyRun], tasks: int
) -> None:
    """Write each segment's key ids by local number, found by joining its dictionary with the ranked one."""
    from pyspark.sql import functions as fn

    first = np.concatenate([[0], np.cumsum([run.keys for run in runs])])
    bases = {run.run: int(base) for run, base in zip(runs, first[:-1], strict=True)}
    offsets = fn.array(*[fn.lit(bases.get(run, 0)).cast("long") for run in range(max(bases) + 1)])
    ranked = spark.read.schema(_RANKED).parquet(str(scratch.folder("ranked")))
    ids = ranked.select(
        fn.col("key").alias("ranked_key"), (offsets[fn.col("run")] + fn.col("place")).alias("id")
    )
    local = spark.read.schema(_LOCAL).parquet(str(scratch.folder("dictionaries"))).where("count > 0")
    joined = (
        local.join(ids, local["key"].eqNullSafe(ids["ranked_key"]))
        .select("segment", "local", "id")
        .repartition(tasks, "segment")
        .sortWithinPartitions("segment", "local")
    )
    sizes = {segment.number: segment.keys for segment in segments}
    joined.mapInArrow(partial(_write_mappings, scratch, sizes), "done long").collect()
