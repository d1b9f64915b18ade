"""Vectors of what real engines did, row by row, and packed keys of the same values."""

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from streamgroup.engines.keys import Keys, make_keys, pack
from streamgroup.engines.values import Int, Long, Value

__all__ = ["TEXTS", "keys_of", "rows", "typed"]

FOLDER = Path(__file__).parents[1] / "data" / "engines"

# What has broken hashes before.
TEXTS = (
    "", "a", "\0", "a\0b", "é", "e\u0301", "\u07ff", "\u0800", "\uffff", "\U00010000", "\U0010ffff", "a😀b", "한국어",
    "polygenelubricants", "GydZG_", "DESIGNING WORKHOUSES", "f5a5a608", "x" * 33, "x" * 63, "x" * 64, "0", "-1", "007",
)  # fmt: skip


def rows(name: str) -> list[dict[str, Any]]:
    """All rows of one file of vectors."""
    with gzip.open(FOLDER / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def typed(key: Any, kind: Any) -> Any:
    """The key of a row as a value, or as a tuple of values."""
    if isinstance(key, list):
        return tuple(typed(one, its) for one, its in zip(key, kind, strict=True))
    if key is None:
        return None
    return {"string": str, "int": Int, "long": Long}[kind](key)


def keys_of(kind: str, values: Sequence[Value]) -> Keys:
    """Pack values of one kind as a trace holds them."""
    texts = [None if v is None else v if isinstance(v, bytes) else v.encode() if isinstance(v, str) else b"%d" % v
             for v in values]  # fmt: skip
    return make_keys(kind, *pack(texts))
