"""The cache directory of this program."""

import os
from pathlib import Path

__all__ = ["cache_root"]


def cache_root() -> Path:
    """Return the cache directory: STREAMGROUP_CACHE_DIR, else `streamgroup` in XDG_CACHE_HOME or ~/.cache."""
    chosen = os.environ.get("STREAMGROUP_CACHE_DIR")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "streamgroup"
