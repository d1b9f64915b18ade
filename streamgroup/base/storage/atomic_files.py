"""Files that appear whole or not at all, also when the process that writes them is killed."""

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path

from streamgroup.base.errors import EnvironmentFault, UsageError
from streamgroup.base.storage.process_tag import owner_is_alive, partial_beside

__all__ = ["check_free", "write_files"]


def check_free(path: Path, *, overwrite: bool) -> None:
    """Refuse a place that a file may not take: what exists without `overwrite`, and directories; UsageError."""
    if path.is_dir():
        raise UsageError(f"{path} is a directory", "name a file in it")
    if (path.exists() or path.is_symlink()) and not overwrite:
        raise UsageError(f"{path} exists already", "name another output, or add --overwrite")


def write_files(contents: Mapping[Path, bytes], *, overwrite: bool) -> None:
    """Write files, each whole under a hidden name first, then all into their places; missing parents are made.

    UsageError as `check_free` has it, before anything is done; EnvironmentFault where a directory cannot be written.
    """
    for path in contents:
        check_free(path, overwrite=overwrite)
    made = {path: partial_beside(path) for path in contents}
    try:
        for path, content in contents.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            _reclaim(path)
            with made[path].open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        for path, partial in made.items():
            partial.replace(path)
    except OSError as error:
        raise EnvironmentFault(f"cannot write {path}: {error.strerror}", "choose another output") from None
    finally:
        for partial in made.values():
            with contextlib.suppress(OSError):
                partial.unlink()


def _reclaim(path: Path) -> None:
    """Remove what a killed process left beside a file."""
    prefix = f".{path.name}.partial-"
    for entry in path.parent.iterdir():
        if entry.name.startswith(prefix) and not owner_is_alive(entry.name.removeprefix(prefix)):
            entry.unlink(missing_ok=True)
