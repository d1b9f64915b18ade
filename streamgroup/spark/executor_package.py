"""Installs this package on the executors: sends it where it is missing or its code differs."""

import re
import sys
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from streamgroup.base.compiling.code_cache import sources_digest
from streamgroup.base.errors import EnvironmentFault
from streamgroup.base.progress import Progress, Silent
from streamgroup.base.version import VERSION
from streamgroup.spark.session import Session

__all__ = ["ensure_package", "package_digest"]

_NAME = "streamgroup"
# Modules that tasks import besides ours; each has the name of the package to install.
_REQUIRED = ("mmh3", "numba", "numpy", "pyarrow", "pydantic", "tzdata", "zstandard")
# Tasks that look, at most: executors of a large cluster are alike.
_MAX_PROBES = 64
_PROBE_SCHEMA = "host string, python string, digest string, missing string"

# Placed in the zip instead of our `__init__.py`: modules of ours read their own files, and numba keeps compiled code
# beside them, so the zip is unpacked once, next to itself, and the package is taken from there.
_UNPACK = """
import os, shutil, zipfile
archive = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
folder = archive + ".unpacked"
if not os.path.isdir(folder):
    own = folder + "-" + str(os.getpid())
    with zipfile.ZipFile(archive) as content:
        content.extractall(own)
    os.replace(os.path.join(own, "streamgroup", "init.txt"), os.path.join(own, "streamgroup", "__init__.py"))
    try:
        os.rename(own, folder)
    except OSError:
        shutil.rmtree(own, ignore_errors=True)
        if not os.path.isdir(folder):
            raise
__path__ = [os.path.join(folder, "streamgroup")]
__file__ = os.path.join(folder, "streamgroup", "__init__.py")
with open(__file__, encoding="utf-8") as source:
    exec(compile(source.read(), __file__, "exec"))
"""
_DIGEST = "from streamgroup.spark.executor_package import package_digest; print(package_digest())"


class _Found(NamedTuple):
    """What a task found on its executor: the digest of our package there (None without), and modules that miss."""

    host: str
    python: str
    digest: str | None
    missing: str


def package_digest() -> str:
    """Return a digest of the sources of this package."""
    return sources_digest(("",), _NAME)


def ensure_package(session: Session, progress: Progress | None = None) -> None:
    """Make sure that the executors of a session can import this package; send it to them if they cannot.

    Without effect on a driver of this machine with a master `local[...]`, as that runs the tasks too; a Connect server
    may be elsewhere. EnvironmentFault when executors have another version of Python, or lack a library that tasks need.
    """
    if session.remote or not re.match(r"local(\[|$)", session.master):
        session.run(partial(_ensure, session), progress or Silent(), 1, "checking executors")


def _ensure(session: Session) -> None:
    digest = package_digest()
    found = _probe_executors(session)
    if all(each.digest == digest for each in found):
        return
    archive = session.scratch / f"{_NAME}-{digest}.zip"
    _write_archive(archive)
    session.spark.addArtifacts(str(archive), pyfile=True)
    for each in _probe_executors(session):
        if each.digest != digest:
            raise EnvironmentFault(
                f"executor {each.host} imports {'another' if each.digest else 'no'} {_NAME}, although it was sent",
                f"install version {VERSION} of {_NAME} there",
            )


def _probe_executors(session: Session) -> list[_Found]:
    """Ask some executors; EnvironmentFault for what cannot be sent to them."""
    tasks = max(1, min(session.parallelism, _MAX_PROBES))
    try:
        rows = session.spark.range(0, tasks, 1, tasks).mapInArrow(_probe(_DIGEST, _REQUIRED), _PROBE_SCHEMA).collect()
    except Exception as error:  # noqa: BLE001 (of many classes)
        raise _cannot_run(str(error)) or error from None
    found = sorted({_Found(*row) for row in rows}, key=str)
    for each in found:
        if each.missing:
            names = each.missing.split(",")
            raise EnvironmentFault(
                f"executor {each.host} has no {', '.join(names)}", f"pip install {' '.join(names)} there"
            )
    return found


def _cannot_run(text: str) -> EnvironmentFault | None:
    """Explain why executors cannot run Python functions at all."""
    own = f"{sys.version_info.major}.{sys.version_info.minor}"
    if "PYTHON_VERSION_MISMATCH" in text or "has different version" in text:
        other = re.search(r"worker has different version:? ?\(?([\d., ]+)", text)
        what = f" ({other[1].strip(' .,')})" if other else ""
        return EnvironmentFault(
            f"executors run another Python{what} than this process ({own})", f"install Python {own} there"
        )
    missing = re.search(r"No module named '(pyarrow|pandas|numpy)|(PyArrow|Pandas) >= \S+ must be installed", text)
    if missing:
        name = (missing[1] or missing[2]).lower()
        return EnvironmentFault(f"executors have no {name}", f"pip install {name} there")
    return None


def _probe(code: str, needed: tuple[str, ...]) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Return a function for a task that looks what can be imported. It is pickled whole, as it has no module."""

    def probe(batches: Any) -> Any:
        import importlib.util
        import os
        import platform
        import subprocess
        import sys

        import pyarrow as pa

        # In a process of its own: a module that is imported here would stay when another is sent.
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        for _ in batches:
            ran = subprocess.run(
                [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
            )
            missing = ",".join(name for name in needed if importlib.util.find_spec(name) is None)
            digest = ran.stdout.strip() if ran.returncode == 0 else None
            row = [platform.node(), platform.python_version(), digest, missing]
            columns = [pa.array([value], pa.string()) for value in row]
            yield pa.RecordBatch.from_arrays(columns, names=["host", "python", "digest", "missing"])

    return probe


def _write_archive(archive: Path) -> None:
    """Write the package as a zip that unpacks itself when it is imported."""
    root = Path(__file__).parents[1]
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as content:
        content.writestr(f"{_NAME}/__init__.py", _UNPACK)
        content.write(root / "__init__.py", f"{_NAME}/init.txt")
        for path in sorted(root.rglob("*")):
            if path.is_file() and path.suffix != ".pyc" and path != root / "__init__.py":
                content.write(path, f"{_NAME}/{path.relative_to(root)}")
