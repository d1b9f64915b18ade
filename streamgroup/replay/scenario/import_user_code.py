"""Imports a grouping or an application from a user's file, with a digest of all that its code is made of."""

import ast
import contextlib
import hashlib
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from streamgroup.base.compiling import ast_lock
from streamgroup.base.errors import UsageError

__all__ = ["OUTSIDE", "import_file"]

# How the names of modules from users' files begin.
OUTSIDE = "streamgroup_outside_"

# What a grouping outside the package may import and what is no companion of it, wherever it lies.
_FOREIGN = {"streamgroup", "tests", *sys.stdlib_module_names}


def import_file(path: Path, kind: str, wanted: tuple[str, ...]) -> tuple[Any, str]:
    """Import a grouping or another `kind` of part from a file, under a name made from its bytes so that every process
    knows it by the same; return the module, which has the names `wanted`, and its digest.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UsageError(f"{kind} file {path}: {error.strerror}", f"name a Python file of {kind}s") from None
    digest = hashlib.sha256(content).hexdigest()[:16]
    name = f"{OUTSIDE}{digest}"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, path)
        if spec is None or spec.loader is None:
            raise UsageError(f"{kind} file {path} is not a Python file")
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        try:
            # What it prints is no result of ours.
            with contextlib.redirect_stdout(sys.stderr), _no_bytecode():
                exec(compile(content, str(path), "exec"), vars(module))
        except (Exception, SystemExit) as error:
            del sys.modules[name]
            raise UsageError(f"{kind} file {path} does not import: {type(error).__name__}: {error}") from error
    module = sys.modules[name]
    for one in wanted:
        if not hasattr(module, one):
            article = "an" if kind == "application" else "a"
            raise UsageError(f"{kind} file {path} has no {one}", f"see the guide on adding {article} {kind}")
    return module, _with_companions(path, digest)


@contextlib.contextmanager
def _no_bytecode() -> Iterator[None]:
    """Have imports leave no bytecode: of two edits of equal size within a second, Python would run the first.

    It takes bytecode for current that was made from a source of the same size and second.
    """
    before = sys.dont_write_bytecode
    sys.dont_write_bytecode = True
    try:
        yield
    finally:
        sys.dont_write_bytecode = before


def _with_companions(path: Path, digest: str) -> str:
    """Add what the grouping imports from its own folder to its digest: compiled code comes from there too.

    Only what it imports, and what that imports: whatever else is loaded must not change its name.
    """
    own = path.resolve()
    files: set[Path] = set()
    waiting = [(own, "")]
    while waiting:
        for name in _imported(*waiting.pop()):
            module = sys.modules.get(name)
            file = getattr(module, "__file__", None)
            if file is None or name.partition(".")[0] in _FOREIGN or "site-packages" in file:
                continue
            found = Path(file).resolve()
            if found.is_relative_to(own.parent) and found != own and found not in files:
                files.add(found)
                waiting.append((found, getattr(module, "__package__", None) or ""))
    combined = hashlib.sha256(digest.encode())
    for file in sorted(files):
        with contextlib.suppress(OSError):
            combined.update(file.read_bytes())
    return combined.hexdigest()[:16] if files else digest


def _imported(file: Path, package: str) -> Iterator[str]:
    """Name what a Python file of a package imports, and the packages around it."""
    try:
        tree = ast_lock.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                with contextlib.suppress(ImportError):
                    base = importlib.util.resolve_name("." * node.level + base, package)
            names = [f"{base}.{alias.name}" for alias in node.names]
        for name in names:
            pieces = name.split(".")
            yield from (".".join(pieces[: end + 1]) for end in range(len(pieces)))
