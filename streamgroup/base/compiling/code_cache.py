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
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from streamgroup.base.storage.cache_directory import cache_root

__all__ = ["SETTING", "code_directory", "files_digest", "guarded", "is_at_hand", "sources_digest"]

# Where the compiler puts code is a setting of the whole process: who changes it holds this, and sets it back.
SETTING = threading.Lock()

# Each grouping has one or a few.
_KEPT_CACHES = 128
_KEPT_SECONDS = 86_400


@cache
def sources_digest(rooms: tuple[str, ...], compiler: str) -> str:
    """Return the digest of all sources in some rooms of the package, and of the compiler's version."""
    root = Path(__file__).parents[2]
    return files_digest(root, sorted(path for room in rooms for path in (root / room).rglob("*.py")), compiler)


def files_digest(root: Path, paths: list[Path], compiler: str) -> str:
    """Return the digest of files below a root, and of the compiler's version."""
    digest = hashlib.sha256(compiler.encode())
    for path in paths:
        digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def code_directory(name: str, family: str = "compiled") -> Path:
    """Return (and make) the directory `name` in a family of caches; old ones of it beyond a handful are removed."""
    try:
        directory = cache_root() / family / name
        if not directory.is_dir():
            directory.mkdir(parents=True, exist_ok=True)
            _forget_old(directory.parent, directory)
        os.utime(directory)
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


def guarded(dispatcher: Any, directory: Path, own: str, *, calls_no_runtime: bool = False) -> Any:
    """Let numba's dispatcher find or make code on disk only under the lock of its name `own` in a cache's directory.

    Code on disk that cannot be read is removed and made anew; what cannot be written stays in this process. Code that
    `calls_no_runtime` allocates nothing and works on numbers and arrays alone: it is loaded without numba's runtime.
    """
    compile_one, kept = dispatcher.compile, dispatcher._cache
    # numba's load_overload first loads its runtime and all that compiling needs, which takes 0.2 s.
    load = kept._load_overload if calls_no_runtime else kept.load_overload
    save = kept.save_overload

    def compile_alone(signature: Any) -> Any:
        with _only_one(directory, own):
            return compile_one(signature)

    def load_sound(signature: Any, target: Any) -> Any:
        try:
            return load(signature, target)
        except Exception:  # noqa: BLE001 (what a damaged pickle raises can be anything)
            # All of it: numba's index may name a file that was written for another index.
            _remove(Path(kept.cache_path), f"{kept._impl.filename_base}.", kept.disable)
            return None

    def save_if_possible(signature: Any, code: Any) -> None:
        try:
            save(signature, code)
        except OSError:
            kept.disable()

    dispatcher.compile = compile_alone
    kept.load_overload, kept.save_overload = load_sound, save_if_possible
    return dispatcher


def is_at_hand(dispatcher: Any, arguments: tuple[Any, ...]) -> bool:
    """Return whether there is code for a call of one of numba's dispatchers, in memory or on disk."""
    file = dispatcher._cache._cache_file
    if not dispatcher.overloads and not Path(file._index_path).exists():
        return False
    kinds = tuple(map(dispatcher.typeof_pyval, arguments))
    if kinds in dispatcher.overloads:
        return True
    try:
        return dispatcher._cache._index_key(kinds, dispatcher.targetctx.codegen()) in file._load_index()
    except Exception:  # noqa: BLE001 (a damaged index, as above)
        return False


def _remove(directory: Path, prefix: str, otherwise: Callable[[], None]) -> None:
    try:
        for path in directory.iterdir():
            if path.name.startswith(prefix):
                path.unlink()
    except OSError:
        otherwise()


@contextlib.contextmanager
def _only_one(directory: Path, own: str) -> Iterator[None]:
    """Hold the lock of a function's cache: two processes that compile it at once could overwrite each other's code."""
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / f".{own}.lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
