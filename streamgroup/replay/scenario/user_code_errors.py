"""Errors in the code of a user's file, a grouping or an application, as they are reported."""

import traceback
from pathlib import Path
from typing import Any

__all__ = ["describe_error"]


def describe_error(error: BaseException, module: Any) -> str:
    """Return kind and text of an error in a line, with the last line of the module's file that it came through."""
    text = str(error).strip().splitlines()
    what = f"{type(error).__name__}: {text[0]}" if text else type(error).__name__
    file = Path(module.__file__).resolve()
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if Path(frame.filename).resolve() == file]
    return f"{what} (line {lines[-1]})" if lines else what
