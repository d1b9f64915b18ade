"""Whether the trace of an ingest is there already (`--if-missing`)."""

from collections.abc import Mapping
from itertools import zip_longest

from streamgroup.base.errors import UsageError
from streamgroup.base.storage.storage_path import locate
from streamgroup.ingest.options import IngestOptions
from streamgroup.ingest.pipeline.read_splits import digest_of
from streamgroup.ingest.sources.file_source import FileSource
from streamgroup.traces import layout
from streamgroup.traces.manifest import Input, Manifest, read_manifest

__all__ = ["up_to_date"]


def up_to_date(options: IngestOptions, source: FileSource) -> Manifest | None:
    """Return the manifest of the trace at the output if it was made of these inputs with these options.

    None where there is no trace, or another one that may be replaced (`overwrite`). UsageError for one that may not.
    An input is the same by its path and size; if it was not changed before the trace was made, by its sha256.
    """
    marker = locate(options.output) / layout.MANIFEST
    if not marker.is_file():
        return None
    manifest = read_manifest(options.output)
    what = _difference(manifest, source, marker.stat().changed)
    if what is None:
        return manifest
    if options.overwrite:
        return None
    raise UsageError(f"{options.output} exists, but {what}", "name another output, or add --overwrite to replace it")


def _difference(manifest: Manifest, source: FileSource, made: int) -> str | None:
    """Say how a trace made at `made` (ns since 1970) differs from what would be made now."""
    asked = source.describe()
    if manifest.reader != asked["reader"]:
        return f"it was made by the reader {manifest.reader or '(none)'}"
    old, new = manifest.reader_options or {}, asked["reader_options"]
    for name in sorted({*old, *new}):
        if old.get(name) != new.get(name):
            return f"it was made with {_shown(name, old)}, not {_shown(name, new)}"
    for was, file in zip_longest(manifest.inputs or [], source.files):
        if was is None:
            return f"it was made without {file.given}"
        if file is None or was.path != Input(path=file.given).path:
            return f"it was made of {was.path}" + (f", not {file.given}" if file else " too")
        if was.bytes != file.size:
            return f"{file.given} had {was.bytes} bytes then, not {file.size}"
        if file.changed >= made and was.sha256 != digest_of(file.path):
            return f"{file.given} has changed since"
    return None


def _shown(name: str, options: Mapping[str, object]) -> str:
    flag = f"--{name.replace('_', '-')}"
    return f"{flag} {options[name]}" if name in options else f"the default of {flag}"
