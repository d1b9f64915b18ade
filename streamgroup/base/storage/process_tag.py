"""Tags that say which process a file or directory belongs to, and whether that process still runs."""

import os
from pathlib import Path

__all__ = ["owner_is_alive", "owner_tag"]


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
