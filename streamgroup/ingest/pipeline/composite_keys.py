"""Composite keys: several columns make one key, whose bytes are a compact JSON array of their values."""

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from streamgroup.traces.hash_and_show_keys import not_utf8

__all__ = ["NOT_UTF8", "Composite", "composite"]

Mask = NDArray[np.bool_]

NOT_UTF8 = "part of the key is not UTF-8"

_ESCAPED = r'["\\\x00-\x1f]'
# What JSON escapes, the backslash first, as it stands in the escapes of the others.
_ESCAPES = [
    ("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t"), ("\b", "\\b"), ("\f", "\\f"),
    *((chr(code), f"\\u{code:04x}") for code in range(32) if chr(code) not in "\n\r\t\b\f"),
]  # fmt: skip


class Composite(NamedTuple):
    """Composite keys, one a row: `key` binary, null where every part is null; `misfit` bool[rows] marks the rows with
    a part that is not UTF-8, which have no key.
    """

    key: pa.Array
    misfit: Mask


def composite(parts: list[pa.Array], nulls: pa.Array | None = None) -> Composite:
    """Make the key of each row from its parts: strings, binary, booleans or integers of one length, nulls allowed.

    The key is the UTF-8 of the JSON array of the parts without blanks, `["de",42,null]`, escaped as
    `json.dumps(..., ensure_ascii=False)` does. Texts among `nulls` (binary) are null. A row whose parts are all null
    has the null key.
    """
    rows = len(parts[0])
    misfit = np.zeros(rows, bool)
    absent = np.ones(rows, bool)
    texts: list[Any] = []
    for part in parts:
        text, wrong = _json(part, nulls)
        misfit |= wrong
        absent &= text.is_null().to_numpy(zero_copy_only=False) & ~wrong
        texts.append(pc.fill_null(text, "null"))
    joined = pc.binary_join_element_wise(*texts, ",")
    whole = pc.binary_join_element_wise("[", joined, "]", "").cast(pa.binary())
    gone = absent | misfit
    return Composite(pc.if_else(pa.array(~gone), whole, None) if gone.any() else whole, misfit)


def _json(part: pa.Array, nulls: pa.Array | None) -> tuple[pa.Array, Mask]:
    """Write each value as JSON (string, null for null), and mark those that are not UTF-8 (null as well)."""
    none = np.zeros(len(part), bool)
    kind = part.type
    if pa.types.is_null(kind):
        return part.cast(pa.string()), none
    if pa.types.is_boolean(kind):
        return pc.if_else(part, "true", "false"), none
    if pa.types.is_integer(kind):
        return part.cast(pa.string()), none
    data = part.cast(pa.binary())
    if nulls is not None and len(nulls):
        data = pc.if_else(pc.is_in(data, value_set=nulls), pa.scalar(None, pa.binary()), data)
    data, wrong = _utf8(data)
    text = pa.Array.from_buffers(pa.string(), len(data), data.buffers(), offset=data.offset)
    odd = pc.fill_null(pc.match_substring_regex(text, _ESCAPED), False)
    if pc.any(odd).as_py():
        escaped = text.filter(odd)
        for plain, escape in _ESCAPES:
            escaped = pc.replace_substring(escaped, plain, escape)
        text = pc.replace_with_mask(text, odd, escaped)
    return pc.binary_join_element_wise('"', text, '"', ""), wrong


def _utf8(data: pa.Array) -> tuple[pa.Array, Mask]:
    """Replace values that are not UTF-8 by null, and mark them."""
    wrong = np.zeros(len(data), bool)
    if odd := not_utf8(data.cast(pa.large_binary())):
        wrong[odd] = True
        data = pc.if_else(pa.array(wrong), pa.scalar(None, pa.binary()), data)
    return data, wrong
