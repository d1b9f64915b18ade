"""Lists and imports modules by file name: a grouping, a reader, a generator is one file or package in its folder."""

import ast
import importlib
import importlib.util
import pkgutil
from pathlib import Path
from types import ModuleType

from streamgroup.base.compiling.ast_lock import parse
from streamgroup.base.errors import UsageError
from streamgroup.base.spelling_hint import suggest

__all__ = ["APPS", "BOUNDS", "GENERATORS", "GROUPINGS", "READERS", "load", "names", "summary"]

READERS = "streamgroup.ingest.readers"
GENERATORS = "streamgroup.synth.generators"
GROUPINGS = "streamgroup.groupings"
APPS = "streamgroup.apps"
BOUNDS = "streamgroup.study.bounds.families"

# Modules of a family folder that are not members of it.
_PRIVATE = {"protocol", "detectors", "options"}


def names(package: str) -> list[str]:
    """Name the members of a family, sorted, as they are written on the command line (`-` for `_` in readers)."""
    module = importlib.import_module(package)
    found = (info.name for info in pkgutil.iter_modules(module.__path__))
    return sorted(name for name in found if name not in _PRIVATE and not name.startswith("_"))


def summary(package: str, name: str) -> str:
    """Return the first line of a member's docstring. The member is not imported: that could take a second."""
    found = importlib.util.find_spec(f"{package}.{name.replace('-', '_')}")
    if found is None or found.origin is None:
        return ""
    text = ast.get_docstring(parse(Path(found.origin).read_text(encoding="utf-8"))) or ""
    return text.partition("\n")[0]


def load(package: str, name: str, kind: str) -> ModuleType:
    """Import one member of a family; an unknown name is a usage error that suggests the nearest."""
    known = names(package)
    module = name.replace("-", "_")
    if module not in known:
        raise UsageError(f"there is no {kind} {name!r}", suggest(name, known))
    return importlib.import_module(f"{package}.{module}")
