"""The memory that this process may still take."""

import os
from pathlib import Path

__all__ = ["free_memory"]

_CGROUP = Path("/sys/fs/cgroup")
_MEMINFO = Path("/proc/meminfo")


def free_memory() -> int:
    """Return the bytes that the machine has free, or that the limit of its container leaves, whichever is less.

    Half of all memory where the system does not report what is free.
    """
    free = _meminfo()
    if free is None:
        free = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    limit, used = (_number(_CGROUP / name) for name in ("memory.max", "memory.current"))
    return free if limit is None or used is None else max(0, min(free, limit - used))


def _meminfo() -> int | None:
    try:
        lines = dict(line.split(":", 1) for line in _MEMINFO.read_text().splitlines() if ":" in line)
        return int(lines["MemAvailable"].split()[0]) << 10
    except (OSError, KeyError, ValueError, IndexError):
        return None


def _number(path: Path) -> int | None:
    """Read a number from a file; None when there is none, as where a group has no limit."""
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None
