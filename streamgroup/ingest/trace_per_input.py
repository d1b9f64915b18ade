"""Makes a trace of each input (`--each`), with Spark started once."""

from collections.abc import Iterator
from contextlib import ExitStack

from streamgroup.base.errors import UsageError
from streamgroup.base.progress import Progress, Silent
from streamgroup.base.storage.storage_path import locate
from streamgroup.ingest.files.inputs_and_splits import InputFile, check_outside_inputs, resolve_inputs
from streamgroup.ingest.make_trace import IngestResult, ingest
from streamgroup.ingest.options import IngestOptions
from streamgroup.spark.session import Session, start_session

__all__ = ["ingest_each", "trace_name"]

# Endings of file names that say how a file is packed or written, not what it holds.
_PACKED = (".gz", ".bz2", ".xz", ".zst", ".lz4", ".zip", ".tar", ".tgz")
_WRITTEN = (".csv", ".tsv", ".txt", ".log", ".json", ".jsonl", ".ndjson", ".parquet", ".bin", ".dat")


def ingest_each(
    options: IngestOptions, progress: Progress | None = None, session: Session | None = None
) -> Iterator[IngestResult]:
    """Yield the trace of each input as it is finished: `output`/NAME.trace, by the name of the file without endings.

    UsageError when two inputs have one name, and when a trace would be in an input folder, or exists (without
    `overwrite` or `if_missing`). The first input that fails ends it; the traces made before stay, and `if_missing`
    goes on from there.
    """
    progress = progress or Silent()
    made: dict[str, InputFile] = {}
    for file in resolve_inputs(options.inputs):
        place = locate(options.output) / trace_name(file.given)
        check_outside_inputs(options.inputs, place)
        output = place.reference
        other = made.setdefault(output, file)
        if other is not file:
            raise UsageError(f"--each: {other.given} and {file.given} would both be {output}", "ingest them apart")
    with ExitStack() as opened:

        def started() -> Session:
            nonlocal session
            if session is None:
                session = opened.enter_context(start_session(options, progress))
            return session

        for output, file in made.items():
            one = options.model_copy(update={"inputs": (file.given,), "output": output})
            yield ingest(one, progress, started)


def trace_name(path: str) -> str:
    """Return the name of an input's trace: `logs/a.csv.gz` is `a.trace`."""
    name = locate(path).name
    for endings in (_PACKED, _WRITTEN):
        for ending in endings:
            if name.lower().endswith(ending) and len(name) > len(ending):
                name = name[: -len(ending)]
                break
    return f"{name}.trace"
