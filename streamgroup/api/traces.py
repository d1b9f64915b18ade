"""Traces: `ingest`, `from_dataframe`, `synth` and `describe`."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack

from streamgroup.api.option_types import IngestKeywords
from streamgroup.base.progress import Progress

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from streamgroup.base.storage.storage_path import StoragePath
    from streamgroup.ingest import options as checked_options
    from streamgroup.ingest.make_trace import IngestResult
    from streamgroup.traces.statistics.describe import Description

__all__ = ["describe", "from_dataframe", "ingest", "ingest_each", "ingest_options", "synth"]

_SPARK = ("master", "remote", "spark_conf", "driver_memory")


def ingest(
    reader: str,
    inputs: str | Path | Sequence[str | Path],
    output: "str | Path | StoragePath",
    *,
    reader_options: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
    **options: Unpack[IngestKeywords],
) -> "IngestResult":
    """Make a trace of raw data, on Spark or, with `engine="local"`, in this process.

    `inputs` are files, globs, directories or URLs. `time` and `key` may be lists of columns. Options are the flags of
    `streamgroup ingest READER`; those of the reader alone go into `reader_options`.

    Returns `trace` (its place), `manifest` (what `trace.json` says), and sentences in `notes` and `warnings`. Raises
    UsageError for options, columns or inputs, DataError for data that are damaged or of which too little can be read,
    EnvironmentFault without Java. A failed ingest leaves nothing behind.
    """
    from streamgroup.ingest.make_trace import ingest

    return ingest(ingest_options(reader, inputs, output, reader_options, options), progress)


def ingest_each(
    reader: str,
    inputs: str | Path | Sequence[str | Path],
    output: "str | Path | StoragePath",
    *,
    reader_options: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
    **options: Unpack[IngestKeywords],
) -> "Iterator[IngestResult]":
    """Make a trace of each input in the folder `output`, by the file's name; yield each when it is finished.

    Spark starts once. The first input that fails ends it; with `if_missing` the same call continues. Otherwise as
    `ingest`; UsageError also for two inputs of one name.
    """
    from streamgroup.ingest.trace_per_input import ingest_each

    return ingest_each(ingest_options(reader, inputs, output, reader_options, options), progress)


def ingest_options(
    reader: str,
    inputs: Any,
    output: Any,
    reader_options: Mapping[str, Any] | None,
    options: Mapping[str, Any],
) -> "checked_options.IngestOptions":
    """Check the options of an ingest; UsageError for what is wrong in itself."""
    from streamgroup.api.make_options import known_only
    from streamgroup.api.option_texts import columns_text, listed, spark_values, text
    from streamgroup.ingest.options import IngestOptions, make_options

    known_only("ingest", options, IngestOptions.model_fields.keys() - {"reader", "inputs", "output", "reader_options"})
    values = {name: value for name, value in options.items() if value is not None and name not in _SPARK}
    for name in {"time", "key"} & values.keys():
        values[name] = columns_text(values[name])
    for name in {"since", "until", "sample_keys", "max_rejects"} & values.keys():
        values[name] = text(values[name])
    if "null_values" in values:
        values["null_values"] = tuple(listed(values["null_values"]))
    return make_options(
        reader=reader, inputs=tuple(listed(inputs)), output=output, reader_options=dict(reader_options or {}),
        **values, **spark_values(options),
    )  # fmt: skip


def from_dataframe(
    df: "DataFrame", *, time: str, key: str | Sequence[str], output: "str | Path | StoragePath", **options: Any
) -> "IngestResult":
    """Make a trace of a Spark DataFrame, in its own session, which stays as it was; classic or Connect.

    `time` and `key` (several make a composite key) are Spark SQL expressions, as are `cost` (us), `value`, `weight` and
    `where` among the options, which are those of `streamgroup ingest spark`.
    """
    from streamgroup.ingest.sources.table_to_trace import from_dataframe

    return from_dataframe(df, time=time, key=key, output=output, **options)


def synth(
    generator: str,
    output: "str | Path | StoragePath",
    *,
    engine: Literal["auto", "local", "spark"] = "auto",
    overwrite: bool = False,
    progress: Progress | None = None,
    **parameters: Any,
) -> "IngestResult":
    """Make a synthetic trace: `synth("zipf", "zipf.trace", tuples=100_000, keys=1000, exponent=1.2, seed=1)`.

    Parameters are those of the generator (docs/generators.md), besides `master`, `remote`, `spark_conf` and
    `driver_memory`, which say where Spark runs. The bytes are the same from every engine. Returns what `ingest` does;
    UsageError for a wrong parameter.
    """
    from streamgroup.api.option_texts import spark_values
    from streamgroup.base.storage.storage_path import locate
    from streamgroup.ingest.make_trace import IngestResult
    from streamgroup.spark.options import SparkOptions, check_no_spark, checked
    from streamgroup.synth.generate_trace import synthesise

    where = spark_values(parameters)
    own = {name: value for name, value in parameters.items() if name not in _SPARK}
    if engine == "local":
        check_no_spark({name: value for name, value in where.items() if name != "driver_memory"})
    chosen = "spark" if {"master", "remote"} & where.keys() else engine
    place = locate(output)
    manifest = synthesise(
        generator, own, place, engine=chosen, spark=checked(SparkOptions, where), overwrite=overwrite, progress=progress
    )
    return IngestResult(place, manifest, [], [])


def describe(trace: "str | Path | StoragePath", top_keys: int = 10) -> "Description":
    """Compute the statistics of a trace, in one pass; `top_keys` is how many of the most frequent keys are listed."""
    from streamgroup.traces.statistics.describe import describe
    from streamgroup.traces.trace import open_trace

    return describe(open_trace(trace), top_keys)
