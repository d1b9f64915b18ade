"""TOML files of users, read with errors that name the file."""

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from streamgroup.base.errors import UsageError

__all__ = ["read_toml"]


def read_toml(
    path: Path, where: str, hint: str, parse_float: Callable[[str], Any] = float
) -> tuple[str, dict[str, Any]]:
    """Return the text of a file and its content. UsageError, which begins with `where`, if it is not there or not TOML.

    `hint` is the advice for a file that cannot be read.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
        return text, tomllib.loads(text, parse_float=parse_float)
    except OSError as error:
        raise UsageError(f"{where}: {error.strerror}", hint) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{where}: not TOML: {error}", "mend the file") from None
