"""Options from a TOML file: keys at the top for every command that has such an option, a table for each command.

Keys are the long names of options (`hash-seed` or `hash_seed`); `[ingest.csv]` holds for that reader alone and wins
over `[ingest]`, which wins over the top. Flags and environment variables win over the file.
"""

from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup

from streamgroup.base.errors import UsageError
from streamgroup.base.spelling_hint import suggest
from streamgroup.base.toml import read_toml

__all__ = ["long_name", "options_of", "read_defaults"]

_NOT_IN_FILES = {"help", "version", "config", "install-completion", "show-completion"}


def long_name(flag: str) -> str:
    """Return the name of an option without its dashes."""
    return flag.removeprefix("--")


def options_of(command: Any) -> dict[str, Any]:
    """Return the options of a command that a file may set, by their long names; of a group, all its commands'."""
    found: dict[str, Any] = {}
    for parameter in command.get_params(typer.Context(command)):
        names = [long_name(flag) for flag in parameter.opts if flag.startswith("--")]
        shown = parameter.param_type_name == "option" and not parameter.hidden
        if shown and names and names[0] not in _NOT_IN_FILES:
            found[names[0]] = parameter
    for member in _members(command).values():
        found = {**options_of(member), **found}
    return found


def _members(command: Any) -> dict[str, Any]:
    if not isinstance(command, TyperGroup):
        return {}
    context = typer.Context(command)
    return {name: command.get_command(context, name) for name in command.list_commands(context)}


def read_defaults(path: Path, context: typer.Context) -> dict[str, Any]:
    """Read a file whole, check every key in it, and return its values for the command at hand.

    UsageError for a file that cannot be read, an unknown key or a value of a wrong kind, each with its place.
    """
    _, content = read_toml(path, f"--config {path}", "name a TOML file")
    return _collect(content, context.find_root().command, _path(context), str(path))


def _path(context: typer.Context) -> list[str]:
    names: list[str] = []
    at: Any = context
    while at.parent is not None:
        names.insert(0, at.info_name)
        at = at.parent
    return names


def _collect(table: dict[str, Any], command: Any, path: list[str] | None, where: str) -> dict[str, Any]:
    """Check a table against a command; return the values for the command at `path` below it (None: not this way)."""
    options, members = options_of(command), _members(command)
    chosen: dict[str, Any] = {}
    deeper: dict[str, Any] = {}
    target = command
    for name in path or []:
        target = target.get_command(typer.Context(target), name)
    own = options_of(target)
    for key, value in table.items():
        if isinstance(value, dict) and key in members:
            below = path[1:] if path and path[0] == key else None
            deeper |= _collect(value, members[key], below, f"{where} [{key}]")
            continue
        name = key.replace("_", "-")
        if isinstance(value, dict) or name not in options:
            kind = "table" if isinstance(value, dict) else "key"
            hint = suggest(name, members if isinstance(value, dict) else options)
            raise UsageError(f"{where}: unknown {kind} {key!r}", hint)
        read = _value(options[name], value, f"{where}: {key}")
        if path is not None and name in own:
            chosen[own[name].name] = read
    return chosen | deeper


def _value(parameter: Any, value: Any, where: str) -> Any:
    if parameter.multiple:
        items = value if isinstance(value, list) else [value]
        return [_text(item, where) for item in items]
    if parameter.is_flag:
        if not isinstance(value, bool):
            raise UsageError(f"{where}: {value!r} is not true or false")
        return value
    return _text(value, where)


def _text(value: Any, where: str) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise UsageError(f"{where}: {value!r} is not a text or a number")
    return str(value)
