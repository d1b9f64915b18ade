"""The cache directory of this program."""

import os
from pathlib import Path

__all__ = ["cache_root"]


def cache_root() -> Path:
    """Return the cache directory: STREAMGROUP_CACHE_DIR, else `streamgroup` in XDG_CACHE_HOME or ~/.cache.

    FileNotFoundError where none is set, and the user has no home directory.
    """
    chosen = os.environ.get("STREAMGROUP_CACHE_DIR")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    if base:
        return Path(base) / "streamgroup"
    try:
        return Path.home() / ".cache" / "streamgroup"
    except RuntimeError as error:
        raise FileNotFoundError("there is no home directory, and STREAMGROUP_CACHE_DIR is not set") from error
