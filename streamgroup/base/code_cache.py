"""Directories for compiled code, each named by a digest of the sources it was made from."""

import atexit
import contextlib
import fcntl
import hashlib
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import streamgroup
from streamgroup.base.cache import cache_root

__all__ = ["SETTING", "code_directory", "only_one", "sources_digest"]

# Where the compiler puts code is a setting of the whole process: who changes it holds this, and sets it back.
SETTING = threading.Lock()

_KEPT_CACHES = 6
_KEPT_SECONDS = 86_400


@cache
def sources_digest(rooms: tuple[str, ...], compiler: str) -> str:
    """Give the digest of all sources in some rooms of the package, and of the compiler's version."""
    digest = hashlib.sha256(compiler.encode())
    root = Path(streamgroup.__file__).parent
    for path in sorted(path for room in rooms for path in (root / room).rglob("*.py")):
        digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def code_directory(name: str, family: str = "compiled") -> Path:
    """Give (and make) the directory `name` in a family of caches; old ones of it beyond a handful are removed."""
    try:
        directory = cache_root() / family / name
        directory.mkdir(parents=True, exist_ok=True)
        os.utime(directory)
        _forget_old(directory.parent, directory)
    except OSError:
        # No place that stays and that nobody else can write to: this process compiles for itself.
        directory = Path(tempfile.mkdtemp(prefix="streamgroup-"))
        atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return directory


def _forget_old(root: Path, keep: Path) -> None:
    others = sorted((entry for entry in root.iterdir() if entry != keep), key=lambda entry: entry.stat().st_mtime)
    too_old = time.time() - _KEPT_SECONDS
    for entry in others[: max(0, len(others) - _KEPT_CACHES)]:
        # One that was used lately may be in use.
        if entry.stat().st_mtime < too_old:
            shutil.rmtree(entry, ignore_errors=True)


@contextlib.contextmanager
def only_one(directory: Path, own: str) -> Iterator[None]:
    """Hold the lock of a function's cache: two processes that compile it at once could overwrite each other's code."""
    with (directory / f".{own}.lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
