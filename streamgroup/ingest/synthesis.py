"""From a generator to a trace, in this process: one pass counts the keys, a second writes their ids."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ValidationError

import streamgroup
from streamgroup.base.discover import load, suggest
from streamgroup.base.errors import UsageError
from streamgroup.base.staging import staged_directory
from streamgroup.ingest.generators.protocol import Chunk, Generator, Stream
from streamgroup.traces import schema
from streamgroup.traces.keys import hash_keys
from streamgroup.traces.manifest import Manifest, measured, write_manifest
from streamgroup.traces.writer import Columns, KeyColumns, fingerprint, write_keys, write_tuples

__all__ = ["parameters", "synthesise"]

_GENERATORS = "streamgroup.ingest.generators"


def parameters(name: str, given: Mapping[str, Any]) -> BaseModel:
    """Check the parameters given to a generator; UsageError names the parameter and its range."""
    generator = cast(Generator, load(_GENERATORS, name, "generator"))
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


def synthesise(name: str, given: Mapping[str, Any], output: Path, *, overwrite: bool = False) -> Manifest:
    """Make the trace of a generator (`zipf`) with the parameters given, at `output`.

    Memory is O(keys): the draws are made twice rather than held. Key ids go by the realised frequency; a key
    that was never drawn is not in the dictionary. UsageError for a wrong parameter or an output that exists.
    """
    params = parameters(name, given)
    generator = cast(Generator, load(_GENERATORS, name, "generator"))
    with staged_directory(output, overwrite=overwrite, marker=schema.MANIFEST) as directory:
        stream = generator.generate(params)
        label, count, id_of = _number(stream)
        ids = (Columns(chunk.timestamp, id_of[chunk.label]) for chunk in _chunks(stream))
        stats = write_tuples(directory / schema.TUPLES, ids)
        write_keys(directory / schema.KEYS, _dictionary(stream, label, count))
        keys = (stream.key(each) for each in label.tolist())
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
            **measured(stats, len(label), int(count[0]), fingerprint(stats.block_digests, keys)),
        )
        write_manifest(directory, manifest)
    return manifest


def _chunks(stream: Stream) -> Iterator[Chunk]:
    for first in range(0, stream.tuples, schema.BLOCK_ROWS):
        yield stream.chunk(first, min(schema.BLOCK_ROWS, stream.tuples - first))


def _number(stream: Stream) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint32]]:
    """Number the keys that come (by count, then bytes): labels by id, counts by id, ids by label."""
    count = np.zeros(stream.labels, np.int64)
    for chunk in _chunks(stream):
        count += np.bincount(chunk.label, minlength=stream.labels)
    label = np.flatnonzero(count)
    names = np.array([stream.key(each) for each in label.tolist()])
    label = label[np.lexsort((names, -count[label]))]
    id_of = np.zeros(stream.labels, np.uint32)
    id_of[label] = np.arange(len(label), dtype=np.uint32)
    return label, count[label], id_of


def _dictionary(stream: Stream, label: NDArray[np.int64], count: NDArray[np.int64]) -> Iterator[KeyColumns]:
    for first in range(0, len(label), schema.KEY_PART_ROWS):
        part = slice(first, first + schema.KEY_PART_ROWS)
        keys = [stream.key(each) for each in label[part].tolist()]
        yield KeyColumns(keys, count[part], *hash_keys(keys))
