"""Resolves the inputs of the command line to files, and plans the splits that tasks read."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

from streamgroup.base.errors import DataError, EnvironmentFault, UsageError
from streamgroup.base.redaction import shown_url
from streamgroup.base.storage.filesystems import cause
from streamgroup.base.storage.globs import has_magic, matching
from streamgroup.base.storage.storage_path import Entry, StoragePath, locate
from streamgroup.ingest.files.byte_streams import compression_of, open_sources
from streamgroup.ingest.readers.protocol import Layout, Reader, Split

__all__ = [
    "InputFile", "check_outside_inputs", "check_outside_output", "check_unchanged", "limit_splits", "plan_splits",
    "resolve_inputs",
]  # fmt: skip

_T = TypeVar("_T")

# Files of an object store examined at a time.
_AT_ONCE = 16
# Maximum size of an empty file when it is compressed; the header may hold its name.
_EMPTY_PACKED = 512


class InputFile(NamedTuple):
    """An input: its path as given (or as found by a glob or in a folder), the path for `locate`, its size in bytes, and
    the time of its last change.
    """

    given: str
    path: str
    size: int
    changed: int


def resolve_inputs(inputs: tuple[str, ...]) -> list[InputFile]:
    """Finds the inputs in the order given, those of a glob or a folder sorted by the bytes of their paths.

    Of a folder all files are read, those of the folders in it too, but for names that begin with `.` or `_` (those of
    partitions, `key=value`, are read). A glob leaves folders out, unless it matches nothing else. UsageError when an
    input does not exist, is no file, or nothing is found; EnvironmentFault when it cannot be read.
    """
    if not all(inputs):
        raise UsageError("an input is empty, an unset variable of the shell perhaps", "name a file; this folder is .")
    return [_check_entry(entry) for given in inputs for entry in _entries(given)]


def check_outside_output(files: list[InputFile], output: StoragePath) -> None:
    """Raises a UsageError if an input lies in the output, which would be replaced."""
    folder = output.resolved()
    for file in files:
        place = locate(file.path)
        if place.lies_in(output) or place.resolved().lies_in(folder):
            raise UsageError(f"the input {file.given} lies in the output {output}", "name another output")


def check_outside_inputs(inputs: tuple[str, ...], output: StoragePath) -> None:
    """Raises a UsageError if the output lies in an input folder, as it would be among the inputs the next time.

    Names that are left out of a folder may be there, and so may what a glob does not match.
    """
    for given in inputs:
        folder = locate(given)
        for inner, outer in ((output, folder), (output.resolved(), folder.resolved())):
            if inner.lies_in(outer) and not _is_hidden(inner.within(outer)) and outer.is_dir():
                what = f"the output {output} lies in the input {folder}, and would be read with it the next time"
                raise UsageError(what, "name another output")


def _entries(given: str) -> list[Entry]:
    place = locate(given)
    try:
        entry = place.stat()
    except FileNotFoundError:
        return _matches(given, place)
    if not entry.is_dir:
        return [entry]
    found = _data_files(place)
    if not found:
        what = f"{place} is a directory without data files"
        raise UsageError(what, "names that begin with . or _ are left out; check the path")
    return found


def _matches(given: str, place: StoragePath) -> list[Entry]:
    if not has_magic(place):
        raise UsageError(f"there is no file {shown_url(given)}", "check the path")
    found = matching(place)
    files = [entry for entry in found if not entry.is_dir]
    files = files or [file for entry in found for file in _data_files(entry.place)]
    if not files:
        raise UsageError(f"nothing matches {shown_url(given)}", "check the path")
    return files


def _data_files(folder: StoragePath) -> list[Entry]:
    entries = folder.entries(recursive=True)
    return [entry for entry in entries if not entry.is_dir and not _is_hidden(entry.place.within(folder))]


def _is_hidden(path: str) -> bool:
    """Reports whether a file is hidden (`.x`) or internal to Spark (`_x`), by its name or that of a folder above."""
    return any(name[0] == "." or (name[0] == "_" and "=" not in name) for name in path.split("/"))


def _check_entry(entry: Entry) -> InputFile:
    place = entry.place
    if place.is_local:
        if not place.local.exists():
            raise UsageError(f"{place} is a link to nothing", "remove it, or name the files to read")
        if not place.is_file():
            raise UsageError(f"{place} is not a file", "inputs are read more than once: save it to a file")
        try:
            with Path(place.where).open("rb"):
                pass
        except OSError as error:
            raise EnvironmentFault(f"{place}: {cause(error)}", "check its permissions") from None
    return InputFile(place.text, place.where, entry.size, entry.changed)


def check_unchanged(files: list[InputFile]) -> None:
    """Raises a DataError if a file has changed since it was found: what was read may mix both versions."""
    for file, now in zip(files, _map_files(_stat, files), strict=True):
        if now is None:
            raise DataError(f"{file.given} vanished while it was read", "keep inputs until the end")
        if (now.size, now.changed) != (file.size, file.changed):
            raise DataError(f"{file.given} changed while it was read", "copy a file that grows, and read the copy")


def _stat(file: InputFile) -> Entry | None:
    try:
        return locate(file.path).stat()
    except FileNotFoundError:
        return None


def _map_files(function: Callable[[InputFile], _T], files: list[InputFile]) -> Iterable[_T]:
    """Calls a function for each file, for those of an object store several at once."""
    if len(files) < 2 or all(locate(file.path).is_local for file in files):
        return map(function, files)
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="inputs") as pool:
        return list(pool.map(function, files))


def plan_splits(reader: Reader, files: list[InputFile]) -> list[Split]:
    """Cut all inputs into splits, numbered in stream order. Empty files, compressed or not, have none."""
    splits: list[Split] = []
    for number, plan in enumerate(_map_files(lambda file: [] if _is_empty(file) else reader.plan(file.path), files)):
        path = files[number].path
        splits += [Split(len(splits) + offset, number, path, start, end) for offset, (start, end) in enumerate(plan)]
    if not splits:
        raise DataError(f"{files[0].given}: no rows in it", "give a file that has some")
    return splits


def _is_empty(file: InputFile) -> bool:
    if not 0 < file.size <= _EMPTY_PACKED:
        return not file.size
    if compression_of(file.path) in (None, "zip", "tar"):
        return False
    with closing(cast(Any, open_sources(file.path))) as found:
        return not next(found).peek(1)


def limit_splits(reader: Reader, layout_of: Callable[[str], Layout], splits: list[Split], limit: int) -> list[Split]:
    """Keep the splits that hold the first `limit` rows, the last with the number of them that it holds.

    Reads as far as those rows go and no further.
    """
    kept: list[Split] = []
    for split in splits:
        if limit <= 0:
            break
        rows = sum(parsed.rows for parsed in reader.batches(split._replace(rows=limit), layout_of(split.path)))
        kept.append(split._replace(rows=min(rows, limit)))
        limit -= rows
    return kept
