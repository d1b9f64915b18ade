"""Directories for compiled code, each named by a digest of the sources it was made from."""

import atexit
import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from streamgroup.base.storage.cache_directory import cache_root

__all__ = ["code_directory", "files_digest", "guarded", "imported_digest", "is_at_hand", "sources_digest"]

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


_IMPORT = re.compile(
    r"^[ \t]*(?:from|import)[ \t]+(streamgroup[\w.]*)(?:[ \t]+import[ \t]+(\([^)]*\)|[^\n]*))?", re.MULTILINE
)


@cache
def _imported(path: Path) -> list[str]:
    """Name what a file imports from the package; some may be no modules."""
    names = []
    for package, members in _IMPORT.findall(path.read_text()):
        names += [package, *(f"{package}.{member}" for member in re.findall(r"\w+", members))]
    return names


@cache
def imported_digest(modules: tuple[str, ...], compiler: str) -> str:
    """Return the digest of the sources of modules, of all that they import from the package, and of the compiler."""
    root = Path(__file__).parents[3]
    waiting, found = list(modules), dict[str, Path]()
    while waiting:
        name = waiting.pop()
        place = root.joinpath(*name.split("."))
        path = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
        if name not in found and path.is_file():
            found[name] = path
            waiting += _imported(path)
    return files_digest(root, sorted(found.values()), compiler)


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


def guarded(dispatcher: Any, directory: Path, own: str, prepare: Callable[[Any], None] | None = None) -> Any:
    """Let numba's dispatcher find or make code on disk only under the lock of its name `own` in a cache's directory.

    Code on disk that cannot be read is removed and made anew; what cannot be written stays in this process. `prepare`
    is called with numba's target before code is loaded, and makes all ready that the code calls; None: what numba does.
    """
    compile_one, kept = dispatcher.compile, dispatcher._cache
    numbas_load, save = kept.load_overload, kept.save_overload

    def load(signature: Any, target: Any) -> Any:
        if prepare is None:
            return numbas_load(signature, target)
        prepare(target)
        return kept._load_overload(signature, target)

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
