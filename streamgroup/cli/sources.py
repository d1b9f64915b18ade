"""What a member of a family says of itself, read from its source: importing it would load numpy or Spark's readers.

`--help` and completion must answer at once. A summary is the first line of a docstring; a pydantic model of options
is made from its class statement alone, which needs no more than pydantic and the standard library.
"""

import ast
import importlib
import importlib.util
import sys
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["model_of", "reader_model", "reader_unused", "summary"]

_LIGHT = {"pydantic"}


@cache
def _source(module: str) -> ast.Module:
    package, _, name = module.rpartition(".")
    folder = importlib.util.find_spec(package)
    assert folder is not None
    assert folder.submodule_search_locations
    place = Path(folder.submodule_search_locations[0]) / name
    path = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    return ast.parse(path.read_text(encoding="utf-8"))


def summary(module: str) -> str:
    """Return the first line of a module's docstring."""
    text = ast.get_docstring(_source(module)) or ""
    return text.splitlines()[0] if text else ""


def model_of(module: str, name: str) -> Any:
    """Return a pydantic model of a module, made from its class statement if that is enough, else imported."""
    space: dict[str, Any] = {"__name__": module}
    tree = _source(module)
    try:
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and node.name == name:
                for used in _used(node) - space.keys():
                    home = _origin(tree, module, used)
                    # Its own constants stand above it; the other names are those of Python.
                    if home[0] != module or used in {getattr(base, "id", "") for base in node.bases}:
                        space[used] = model_of(*home)
            if _is_light(node) or (isinstance(node, ast.ClassDef) and node.name == name):
                exec(compile(ast.Module([node], []), module, "exec"), space)
            elif isinstance(node, ast.Assign):
                _try_constant(node, space)
        return space[name]
    except (ImportError, KeyError, NameError):
        return getattr(importlib.import_module(module), name)


def _used(shape: ast.ClassDef) -> set[str]:
    """Name what a class statement needs besides the bodies of its functions: bases, and what its fields are made of."""
    parts = [*shape.bases, *(line for line in shape.body if isinstance(line, ast.AnnAssign))]
    return {name.id for part in parts for name in ast.walk(part) if isinstance(name, ast.Name)}


def _try_constant(node: ast.Assign, space: dict[str, Any]) -> None:
    try:
        exec(compile(ast.Module([node], []), "constant", "exec"), space)
    except NameError:
        return


def _is_light(node: ast.stmt) -> bool:
    if isinstance(node, ast.ImportFrom):
        names = [node.module or ""]
    elif isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    else:
        return False
    roots = {name.split(".")[0] for name in names}
    return roots <= _LIGHT | sys.stdlib_module_names


def reader_model(module: str) -> Any:
    """Return the options model of a reader's class: its own `Options`, or that of the nearest base that has one."""
    home, value = _declared(module, "Reader", "Options")
    if isinstance(value, ast.Name):
        return model_of(*_origin(_source(home), home, value.id))
    return importlib.import_module(module).Reader.Options


def reader_unused(module: str) -> tuple[str, ...]:
    """Name the options of all readers that mean nothing to one: `unused` of its class, or of the nearest base."""
    return tuple(ast.literal_eval(_declared(module, "Reader", "unused")[1]))


def _declared(module: str, shape: str, name: str) -> tuple[str, Any]:
    """Find where a class, or the first of its bases, gives a name its value: the module, and the node of the value."""
    tree = _source(module)
    found = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == shape)
    for node in found.body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            return module, node
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if any(isinstance(target, ast.Name) and target.id == name for target in targets):
            return module, getattr(node, "value", None)
    return _declared(*_origin(tree, module, next(base.id for base in found.bases if isinstance(base, ast.Name))), name)


def _origin(tree: ast.Module, module: str, name: str) -> tuple[str, str]:
    """Find which module defines a name, and under what name: this one, or the one it is imported from."""
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    return node.module, alias.name
    return module, name
