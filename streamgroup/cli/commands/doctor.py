"""`doctor`: checks of this machine."""

import contextlib
import importlib
import importlib.metadata
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from streamgroup.base.errors import EnvironmentFault, StreamgroupError
from streamgroup.base.memory import total_memory
from streamgroup.cli.console import Console
from streamgroup.cli.typer_command import Formatted

__all__ = ["Options", "run"]

_LIBRARIES = ("pyspark", "numba", "numpy", "pyarrow", "polars", "pandas", "pydantic", "mmh3", "typer", "tqdm", "tzdata")
_MEMORY_GIB = 2
_TEMPORARY_GIB = 1


@dataclass(frozen=True, kw_only=True)
class Options(Formatted):
    """The flags of `doctor`."""


def run(console: Console, options: Options) -> None:
    """Check Java, Spark, memory, disk and libraries; exit 3 when something that is needed is missing."""
    del options
    checks: list[tuple[str, Callable[[], str]]] = [
        ("python", _python),
        ("java", _java),
        ("memory", _memory),
        ("temporary files", _temporary),
        ("compiled code", _cache),
        ("class archives", _class_archives),
        *((name, lambda name=name: _library(name)) for name in _LIBRARIES),
        ("spark connect (optional)", _connect),
    ]
    rows = [_check(name, check) for name, check in checks]
    console.rows(rows, ("check", "state", "found", "how"))
    missing = [row for row in rows if row["state"] == "missing"]
    if missing:
        first = missing[0]
        raise EnvironmentFault(f"{', '.join(row['check'] for row in missing)}: {first['found']}", first["how"])


def _check(name: str, check: Callable[[], str]) -> dict[str, Any]:
    try:
        return {"check": name, "state": "ok", "found": check(), "how": None}
    except StreamgroupError as error:
        return {"check": name, "state": "missing", "found": error.message, "how": error.hint}
    except ImportError as error:
        library = (error.name or name).partition(".")[0]
        how = f"pip install {library}" if library in _LIBRARIES else "install streamgroup again"
        return {"check": name, "state": "missing", "found": f"cannot be imported: {error}", "how": how}


def _python() -> str:
    return f"{platform.python_version()} ({sys.executable})"


def _java() -> str:
    from streamgroup.spark.find_java_and_spark import find_java

    path, version = find_java()
    return f"{version} ({path})"


def _connect() -> str:
    from streamgroup.spark.connect import check_packages

    try:
        check_packages()
    except EnvironmentFault as fault:
        return f"not installed; --remote needs it: {fault.hint}"
    return "installed"


def _memory() -> str:
    total = total_memory() / 2**30
    if total < _MEMORY_GIB:
        how = "use a machine with more memory, or raise the memory limit of the container"
        raise EnvironmentFault(f"{total:.1f} GiB, ingest needs {_MEMORY_GIB}", how)
    return f"{total:.1f} GiB, {os.cpu_count()} cores"


def _temporary() -> str:
    folder = Path(tempfile.gettempdir())
    try:
        with tempfile.NamedTemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise EnvironmentFault(f"cannot write in {folder}: {error.strerror}", "set TMPDIR") from None
    free = shutil.disk_usage(folder).free / 2**30
    if free < _TEMPORARY_GIB:
        raise EnvironmentFault(f"{folder} has {free:.1f} GiB free", "free some space, or set TMPDIR")
    return f"{folder}, {free:.1f} GiB free"


def _cache() -> str:
    from streamgroup.replay.accounting.account import account
    from streamgroup.replay.compile_grouping import cache_directory

    folder = cache_directory(account).parent
    if not os.access(folder, os.W_OK):
        raise EnvironmentFault(f"cannot write in {folder}", "set STREAMGROUP_CACHE_DIR")
    return str(folder)


def _class_archives() -> str:
    from streamgroup.base.storage.cache_directory import cache_root

    try:
        folder = cache_root() / "classes"
    except OSError as error:
        return f"none: {error}"
    sizes = []
    for archive in folder.glob("*.jsa"):
        # Another process may replace it meanwhile.
        with contextlib.suppress(OSError):
            sizes.append(archive.stat().st_size)
    return f"{folder}, {sum(sizes) / 10**6:.0f} MB in {len(sizes)} {'file' if len(sizes) == 1 else 'files'}"


def _library(name: str) -> str:
    importlib.import_module(name)
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        raise EnvironmentFault(f"{name} is not installed", f"pip install {name}") from None
