"""Composite keys against json.dumps, one row at a time."""

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from streamgroup.ingest.pipeline.composite_keys import composite

_texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
_odd = st.text(st.sampled_from('"\\\n\x00\x1f\x7f\u2028/é😀a,[]'), max_size=6)
_row = st.tuples(
    st.none() | _texts | _odd,
    st.none() | st.integers(-(2**63), 2**63 - 1),
    st.none() | st.booleans(),
    st.none() | st.binary(max_size=3) | st.sampled_from([b"NA", b"\xff", "é".encode(), b'"\\']),
)
_TYPES = (pa.string(), pa.int64(), pa.bool_(), pa.binary())


def twin(row: tuple[Any, ...], nulls: tuple[bytes, ...]) -> bytes | str | None:
    """The key of one row: bytes, None for the null key, or a word for no key."""
    parts = []
    for part in row:
        raw = part.encode() if isinstance(part, str) else part
        if isinstance(raw, bytes) and raw in nulls:
            parts.append(None)
            continue
        try:
            parts.append(raw.decode() if isinstance(raw, bytes) else part)
        except UnicodeDecodeError:
            return "misfit"
    if all(part is None for part in parts):
        return None
    return json.dumps(parts, ensure_ascii=False, separators=(",", ":")).encode()


@settings(deadline=None)
@given(st.lists(_row, max_size=12), st.sampled_from([(), (b"NA", b"")]))
@example(
    [("de", 42, True, b"\xff"), (None, None, None, b"NA"), (None, None, None, None), ("", 0, False, b"")], (b"NA",)
)
def test_keys_are_those_of_json(rows: list[Any], nulls: tuple[bytes, ...]) -> None:
    columns = [pa.array([row[place] for row in rows], kind) for place, kind in enumerate(_TYPES)]
    found = composite(columns, pa.array(nulls, pa.binary()))
    wanted = [twin(row, nulls) for row in rows]
    assert found.misfit.tolist() == [key == "misfit" for key in wanted]
    assert found.key.type == pa.binary()
    assert found.key.to_pylist() == [None if key == "misfit" else key for key in wanted]


def test_slices_and_wide_types() -> None:
    country = pa.array(["x", "de", "fr", None], pa.large_string()).slice(1)
    number = pa.array([0, 42, None, None], pa.uint64()).slice(1)
    assert composite([country, number]).key.to_pylist() == [b'["de",42]', b'["fr",null]', None]


@pytest.mark.parametrize("code", range(128))
def test_every_ascii_character(code: int) -> None:
    text = f"a{chr(code)}b"
    (key,) = composite([pa.array([text]), pa.array([1])]).key.to_pylist()
    assert key == json.dumps([text, 1], ensure_ascii=False, separators=(",", ":")).encode()
