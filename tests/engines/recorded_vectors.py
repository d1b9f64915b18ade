"""Vectors of what real engines did, row by row, and packed keys of the same values."""

import gzip
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from streamgroup.engines.keys.typed_key_arrays import Keys, make_keys, pack
from streamgroup.engines.keys.typed_key_values import Int, Long, Value

__all__ = ["TEXTS", "by_kind", "check_all", "keys_of", "rows", "typed"]

FOLDER = Path(__file__).parents[1] / "data" / "engines"

# What has broken hashes before.
TEXTS = (
    "", "a", "\0", "a\0b", "é", "e\u0301", "\u07ff", "\u0800", "\uffff", "\U00010000", "\U0010ffff", "a😀b", "한국어",
    "polygenelubricants", "GydZG_", "DESIGNING WORKHOUSES", "f5a5a608", "x" * 33, "x" * 63, "x" * 64, "0", "-1", "007",
)  # fmt: skip

# Longer than two bytes count, of characters of one, two and four bytes.
LONG = "é😀\0" * 10_000


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


def by_kind(name: str, *, null: bool) -> list[tuple[str, list[Value]]]:
    """The distinct keys of a file of vectors, kind by kind, with what has broken hashes before, and null if asked."""
    found: dict[str, dict[Value, None]] = {"string": dict.fromkeys([*TEXTS, LONG]), "int": {}, "long": {}}
    for row in rows(name):
        if isinstance(row["key_type"], str) and row["key_type"] in found and row["key"] is not None:
            found[row["key_type"]][typed(row["key"], row["key_type"])] = None
    found["int"] |= dict.fromkeys([Int(-(2**31)), Int(2**31 - 1), Int(0)])
    found["long"] |= dict.fromkeys([Long(-(2**63)), Long(2**63 - 1), Long(0)])
    return [(kind, [*values, None] if null else [*values]) for kind, values in found.items()]


def check_all(
    name: str,
    one: Callable[[Any, int], Any],
    many: Callable[[Keys, int], Any],
    *,
    null: bool,
    kinds: Sequence[str] = ("string", "int", "long", "bytes"),
    sizes: Sequence[int] = (1, 2, 3, 8, 50, 128, 65_536),
) -> None:
    """Check that a vectorised rule gives for all keys what the scalar one gives: those of vectors, and any."""
    for kind, values in by_kind(name, null=null):
        if kind in kinds:
            _same(kind, values, one, many, sizes)

    texts = st.lists(st.text(st.characters(exclude_categories=["Cs"])), max_size=20)
    anything = {
        "string": texts,
        "int": st.lists(st.builds(Int, st.integers(-(2**31), 2**31 - 1)), max_size=20),
        "long": st.lists(st.builds(Long, st.integers(-(2**63), 2**63 - 1)), max_size=20),
        "bytes": st.lists(st.binary(max_size=40), max_size=20),
    }
    for kind in kinds:
        _check_any(anything[kind], kind, null, one, many, sizes)


def _check_any(
    values: Any, kind: str, null: bool, one: Callable[[Any, int], Any], many: Callable[[Keys, int], Any], sizes: Any
) -> None:
    @settings(deadline=None, max_examples=40)
    @given(values, st.sampled_from(list(sizes)))
    def check(drawn: list[Value], n: int) -> None:
        _same(kind, [*drawn, None] if null else drawn, one, many, [n])

    check()


def _same(
    kind: str,
    values: Sequence[Value],
    one: Callable[[Any, int], Any],
    many: Callable[[Keys, int], Any],
    sizes: Sequence[int],
) -> None:
    keys = keys_of(kind, values)
    for n in sizes:
        found = many(keys, n)
        assert found.dtype.name == "uint16"
        assert found.tolist() == [one(value, n) for value in values], (kind, n)
