"""Tags that say which process a file or directory belongs to, and whether that process still runs."""

import contextlib
import os
import shutil
from pathlib import Path

__all__ = ["owner_is_alive", "owner_tag", "partial_beside", "remove_partials"]

# Where this process has begun files or folders under their hidden names.
_folders: set[Path] = set()


def _start_time(pid: int) -> str | None:
    """Return the start time of a process as the system writes it: together with the pid it identifies the process.

    None for a process that has ended, also while it is a zombie.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = stat.rsplit(")", 1)[1].split()
    return None if fields[0] in "ZX" else fields[19]


def owner_tag() -> str:
    """Identify this process, so that a later one can check whether it still runs."""
    return f"{os.getpid()}-{_start_time(os.getpid()) or 0}"


def owner_is_alive(tag: str) -> bool:
    """Report whether the process that made a tag still runs."""
    pid_text, _, start = tag.partition("-")
    if not pid_text.isdigit():
        return False
    pid = int(pid_text)
    if Path("/proc").is_dir():
        return _start_time(pid) == start
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def partial_beside(path: Path) -> Path:
    """Return the hidden name under which this process writes a file or folder until it is complete."""
    _folders.add(path.parent)
    return path.with_name(f".{path.name}.partial-{owner_tag()}")


def remove_partials() -> None:
    """Remove all that this process has begun and not completed: for a process that ends without unwinding."""
    for folder in list(_folders):
        for partial in folder.glob(f".*.partial-{owner_tag()}"):
            shutil.rmtree(partial, ignore_errors=True)
            with contextlib.suppress(OSError):
                partial.unlink()
