"""Directories that appear whole or not at all, also when the process that writes them is killed.

A directory is written beside its place under a hidden name that carries its owner (process id and start time), and
renamed when it is complete. What a killed owner left behind is removed by the next run that writes to the same place.
"""

import contextlib
import errno
import glob
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from streamgroup.base.errors import EnvironmentFault, UsageError
from streamgroup.base.storage.filesystems import cause
from streamgroup.base.storage.process_tag import owner_is_alive, owner_tag, partial_beside

__all__ = ["check_replaceable", "reclaim", "staged_directory"]

# No space, a limit on the size of files, a quota. pyarrow's errors of this kind name no file.
_NO_SPACE = {errno.ENOSPC, errno.EFBIG, errno.EDQUOT}


def reclaim(target: Path) -> None:
    """Remove what dead owners left beside `target`; put back a directory whose replacement was cut short."""
    for kind in (".partial-", ".replaced-"):
        prefix = f".{target.name}{kind}"
        for entry in sorted(target.parent.glob(f"{glob.escape(prefix)}*")):
            if owner_is_alive(entry.name.removeprefix(prefix)):
                continue
            if kind == ".replaced-" and not target.exists():
                entry.rename(target)
            else:
                shutil.rmtree(entry, ignore_errors=True)


@contextlib.contextmanager
def staged_directory(target: Path, *, overwrite: bool, marker: str) -> Iterator[Path]:
    """Yield a new directory to fill; it takes `target`'s place when the block ends well, and vanishes when it does not.

    `marker` is the file that makes a directory one of ours (`trace.json`, `run.json`): only such a directory, or an
    empty one, is ever replaced, and only with `overwrite`. Checked before anything is done, and again at the end:
    what was created there meanwhile is not touched. Parents that were made are removed again on a failure.
    EnvironmentFault where the block finds no space to write.
    """
    target = Path(os.path.abspath(target))  # noqa: PTH100 (resolve() would follow a symbolic link)
    parent = target.parent
    made = [folder for folder in (parent, *parent.parents) if not folder.exists()]
    partial = partial_beside(target)
    try:
        try:
            parent.mkdir(parents=True, exist_ok=True)
            reclaim(target)
            check_replaceable(target, overwrite=overwrite, marker=marker)
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir()
        except OSError as error:
            raise EnvironmentFault(f"cannot write in {parent}: {error.strerror}", "choose another output") from None
        try:
            yield partial
        except OSError as error:
            if error.errno not in _NO_SPACE:
                raise
            hint = "free some space, raise the limit on the size of files (ulimit -f), or choose another output"
            raise EnvironmentFault(f"cannot write in {target}: {cause(error)}", hint) from None
        check_replaceable(target, overwrite=overwrite, marker=marker)
        _publish(partial, target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
        for folder in made:
            with contextlib.suppress(OSError):
                folder.rmdir()


def check_replaceable(target: Path, *, overwrite: bool, marker: str) -> None:
    """Refuse a place that a directory may not take, as `staged_directory` does; UsageError."""
    if not target.exists() and not target.is_symlink():
        return
    if not overwrite:
        raise UsageError(f"{target} exists already", "name another output, or add --overwrite")
    if not target.is_dir() or target.is_symlink():
        raise UsageError(f"{target} is not a directory", "name another output")
    if any(target.iterdir()) and not (target / marker).is_file():
        raise UsageError(f"{target} holds no {marker}, so it is not ours to replace", "name another output")


def _publish(partial: Path, target: Path) -> None:
    replaced = target.parent / f".{target.name}.replaced-{owner_tag()}"
    if target.exists():
        target.rename(replaced)
    try:
        partial.rename(target)
    except OSError:
        # Another run created its own at this moment: that one stays.
        if replaced.exists() and not target.exists():
            replaced.rename(target)
        raise UsageError(f"{target} was created while this ran", "name another output, or add --overwrite") from None
    finally:
        shutil.rmtree(replaced, ignore_errors=True)
