"""Inputs as given on the command line to splits that tasks read."""

import errno
import glob
from pathlib import Path
from typing import NamedTuple

from streamgroup.base.errors import DataError, EnvironmentFault, UsageError
from streamgroup.ingest.readers.protocol import Reader, Split

__all__ = ["InputFile", "check_unchanged", "limited", "plan_splits", "resolve"]


class InputFile(NamedTuple):
    """An input: its path as given (or as a glob found it), absolute, its size in bytes, when it was changed last."""

    given: str
    path: str
    size: int
    changed: int


def resolve(inputs: tuple[str, ...]) -> list[InputFile]:
    """Find the inputs in the order given, those of a glob sorted by the bytes of their paths.

    UsageError when one does not exist, is no file, or a glob finds nothing; EnvironmentFault when it cannot be opened.
    """
    files = []
    for given in inputs:
        if _exists(given):
            found = [given]
        else:
            found = sorted(
                glob.glob(given, recursive=True),  # noqa: PTH207 (the pattern may be absolute)
                key=lambda path: path.encode("utf-8", "surrogateescape"),
            )
            found = [path for path in found if not Path(path).is_dir()]
            if not found:
                what = "nothing matches" if glob.has_magic(given) else "there is no file"
                raise UsageError(f"{what} {given}", "check the path")
        for path in found:
            if Path(path).is_dir():
                raise UsageError(f"{path} is a directory", f"name its files, for example {path.rstrip('/')}/*")
            if not Path(path).is_file():
                raise UsageError(f"{path} is not a file", "inputs are read more than once: save it to a file")
            try:
                with Path(path).open("rb"):
                    found_as = Path(path).stat()
                    files.append(InputFile(path, str(Path(path).absolute()), found_as.st_size, found_as.st_mtime_ns))
            except OSError as error:
                raise EnvironmentFault(f"{path}: {error.strerror}", "check its permissions") from None
    return files


def check_unchanged(files: list[InputFile]) -> None:
    """Raise a DataError if a file is no longer what it was when it was found: what was read of it may be of both."""
    for file in files:
        try:
            now = Path(file.path).stat()
        except OSError:
            raise DataError(f"{file.given} vanished while it was read", "keep inputs until the end") from None
        if (now.st_size, now.st_mtime_ns) != (file.size, file.changed):
            raise DataError(f"{file.given} changed while it was read", "copy a file that grows, and read the copy")


def _exists(path: str) -> bool:
    try:
        return Path(path).exists()
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            return False
        raise


def plan_splits(reader: Reader, files: list[InputFile]) -> list[Split]:
    """Cut all inputs into splits, numbered in stream order. Empty files have none."""
    splits: list[Split] = []
    for number, file in enumerate(files):
        if not file.size:
            continue
        splits += [
            Split(len(splits) + offset, number, file.path, start, end)
            for offset, (start, end) in enumerate(reader.plan(file.path))
        ]
    if not splits:
        raise DataError(f"{files[0].given}: no rows in it", "give a file that has some")
    return splits


def limited(reader: Reader, splits: list[Split], limit: int) -> list[Split]:
    """Keep the splits that hold the first `limit` rows, and tell the last how many of them are its own.

    Reads as far as those rows go and no further.
    """
    kept: list[Split] = []
    for split in splits:
        if limit <= 0:
            break
        layout = reader.layout(split.path)
        rows = 0
        for parsed in reader.batches(split._replace(rows=limit), layout):
            rows += parsed.rows
        kept.append(split._replace(rows=min(rows, limit)))
        limit -= rows
    return kept
