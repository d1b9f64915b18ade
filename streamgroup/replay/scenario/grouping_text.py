"""Finds the grouping that the text of `-g` names: its module, parameters and canonical text."""

import ast
import contextlib
import hashlib
import importlib.util
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from streamgroup.base import plugin_modules
from streamgroup.base.compiling import ast_lock
from streamgroup.base.errors import UsageError
from streamgroup.base.limits import DEFAULT_SOURCES
from streamgroup.base.pydantic_errors import first_problem
from streamgroup.base.spelling_hint import suggest
from streamgroup.groupings.detectors.protocol import with_detector
from streamgroup.groupings.protocol import GroupingParams

__all__ = [
    "Selection",
    "default_sources",
    "family",
    "find_module",
    "import_file",
    "listed",
    "parameters",
    "placed",
    "select",
    "split_label",
    "split_text",
]

_LABEL = re.compile(r"([A-Za-z0-9_.-]+)=")
_SUCH_AS = {"-g": ("grouping", "greedy_d:d=3"), "--app": ("application", "topk:k=10")}
# What a grouping outside the package may import and what is no companion of it, wherever it lies.
_FOREIGN = {"streamgroup", "tests", *sys.stdlib_module_names}


@dataclass(frozen=True)
class Selection:
    """A grouping that was asked for: `text` names it with the parameters that differ from their defaults.

    A label stands in `text` in place of the name.
    """

    name: str
    text: str
    module: Any
    params: GroupingParams
    outside_digest: str = ""

    @property
    def code_name(self) -> str:
        """Name what is compiled: with another detector a grouping is other code, with a cache of its own.

        Groupings with states of one class may share it.
        """
        if self.params.compiled_as is not None:
            return self.params.compiled_as
        field = type(self.params).model_fields.get("detector")
        detector = getattr(self.params, "detector", None)
        return self.name if field is None or detector == field.default else f"{self.name}:{detector}"


def split_text(text: str, flag: str = "-g") -> tuple[str, list[tuple[str, list[str]]]]:
    """Split `name:a=1,b=2,3` into the name and its parameters, each with the list of its values.

    After the first colon (for a file, the one after `.py`) come comma pieces; a piece with `=` starts a parameter,
    one without goes on with the list of the parameter before it. The name may have a label in front: `label=name`.
    """
    match = re.match(r"^(.*?\.py)(?::(.*))?$", text, re.DOTALL) or re.match(r"^([^:]*)(?::(.*))?$", text, re.DOTALL)
    if match is None or not match.group(1):
        what, such_as = _SUCH_AS.get(flag, ("generator", "zipf:exponent=1.2"))
        raise UsageError(f"{flag} {text!r} names no {what}", f"write a name, as in {flag} {such_as}")
    name, rest = match.group(1), match.group(2)
    values: list[tuple[str, list[str]]] = []
    for piece in rest.split(",") if rest else []:
        key, equals, value = piece.partition("=")
        if equals:
            if key.strip() in dict(values):
                raise UsageError(f"{flag} {text!r} gives {key.strip()} twice", "give each parameter once")
            values.append((key.strip(), [value]))
        elif values:
            values[-1][1].append(piece)
        else:
            raise UsageError(f"{flag} {text!r}: {piece!r} is no parameter", "write name=value")
    return name, values


def split_label(name: str) -> tuple[str, str]:
    """Split `label=name` into both; the label is empty where there is none."""
    match = _LABEL.match(name)
    return (match[1], name[match.end() :]) if match else ("", name)


def placed(text: str, directory: Path) -> str:
    """Take the file that the text of a grouping or an application names, if it names one, from a directory."""
    name, _ = split_text(text)
    _, file = split_label(name)
    if not file.endswith(".py"):
        return text
    return f"{name[: -len(file)]}{directory / file}{text[len(name) :]}"


def family() -> list[str]:
    """Name the groupings there are."""
    return plugin_modules.names(plugin_modules.GROUPINGS)


def import_file(path: Path, kind: str, wanted: tuple[str, ...]) -> tuple[Any, str]:
    """Import a grouping or another `kind` of part from a file, under a name made from its bytes so that every process
    knows it by the same; return the module, which has the names `wanted`, and its digest.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UsageError(f"{kind} file {path}: {error.strerror}", f"name a Python file of {kind}s") from None
    digest = hashlib.sha256(content).hexdigest()[:16]
    name = f"streamgroup_outside_{digest}"
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


def find_module(name: str) -> tuple[Any, str]:
    """Return the module of a grouping, by its name or its file, and the digest of a file."""
    if name.endswith(".py"):
        return import_file(Path(name), "grouping", ("Params", "start"))
    return plugin_modules.load(plugin_modules.GROUPINGS, name, "grouping"), ""


def parameters(module: Any, given: dict[str, list[str]]) -> type[GroupingParams]:
    """Return the parameters of a grouping, with those of the detector that it uses or is given."""
    kind: type[GroupingParams] = module.Params
    field = kind.model_fields.get("detector")
    return kind if field is None else with_detector(kind, given.get("detector", [field.default])[0])


def _given(kind: type[GroupingParams], text: str, values: list[tuple[str, list[str]]]) -> dict[str, Any]:
    given: dict[str, Any] = {}
    for key, pieces in values:
        if key not in kind.model_fields:
            known = list(kind.model_fields)
            hint = suggest(key, known) if known else "it has no parameters"
            raise UsageError(f"-g {text!r}: there is no parameter {key!r}", hint)
        if len(pieces) > 1 or (".." in pieces[0] and key not in kind.file_parameters):
            raise UsageError(
                f"-g {text!r}: {key} has several values",
                "lists and ranges are for sweep: give one value here",
            )
        given[key] = pieces[0]
    return given


def _params(module: Any, text: str, values: list[tuple[str, list[str]]]) -> GroupingParams:
    kind = parameters(module, dict(values))
    given = _given(kind, text, values)
    try:
        return kind(**given)
    except ValidationError as error:
        place, reason, _ = first_problem(error)
        hint = kind.model_fields[place].description if place in kind.model_fields else None
        reason = reason[0].lower() + reason[1:]
        raise UsageError(f"-g {text!r}: {place or 'parameters'}: {reason}", hint) from None


def _canonical(name: str, params: GroupingParams) -> str:
    changed = []
    for field, info in type(params).model_fields.items():
        value = getattr(params, field)
        if value != info.default or info.is_required():
            changed.append(f"{field}={str(value).lower() if isinstance(value, bool) else value}")
    return f"{name}:{','.join(changed)}" if changed else name


def select(text: str) -> Selection:
    """Find the grouping that a text names and check its parameters; every mistake is a usage error with a hint."""
    labelled, values = split_text(text)
    label, name = split_label(labelled)
    if label and label in family():
        raise UsageError(f"-g {text!r}: {label} is the name of a grouping", "take another label")
    module, digest = find_module(name)
    params = _params(module, text, values)
    return Selection(name, _canonical(label or name, params), module, params, digest)


def listed(text: str) -> tuple[Any, type[GroupingParams], GroupingParams | None]:
    """Find a grouping whose parameters are to be listed: its module, their class, and their values.

    The values are None where some are required and not given, or the defaults alone are refused: the list is how one
    learns that. Any other mistake is the usage error of `select`.
    """
    labelled, values = split_text(text)
    module, _ = find_module(split_label(labelled)[1])
    kind = parameters(module, dict(values))
    given = _given(kind, text, values)
    try:
        return module, kind, kind(**given)
    except ValidationError as error:
        if not given or any(problem["type"] == "missing" for problem in error.errors()):
            return module, kind, None
    return module, kind, select(text).params


def default_sources(texts: Iterable[str]) -> int:
    """Return the number of sources of runs through some groupings if the user does not say: the same for all.

    That of the groupings where they agree, else the usual one, so that they are compared under the same conditions.
    """
    found = {select(text).params.default_sources() for text in texts}
    return found.pop() if len(found) == 1 else DEFAULT_SOURCES
