"""Splits the text of `-g` or `--app`, as `label=name:a=1,b=2,3`, into its parts."""

import re
from pathlib import Path

from streamgroup.base.errors import UsageError

__all__ = ["placed", "split_label", "split_text"]

_LABEL = re.compile(r"([A-Za-z0-9_.-]+)=")
_SUCH_AS = {"-g": ("grouping", "greedy_d:d=3"), "--app": ("application", "topk:k=10")}


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
