"""Splits columns of text into words."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["words"]

# Up to the next blank; writing that goes without blanks ends a URL too.
_URL = r"\b(?:https?://|www\.)[^\s\p{Z}\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}]*"
_BETWEEN = r"[^\p{L}\p{M}\p{Nd}']+"


def words(texts: pa.Array) -> pa.Array:
    """Cut texts (binary; null stays null) into lists of words (list<binary>), lower-cased.

    A word is a run of letters with their marks, decimal digits, and apostrophes inside of it (a typographic one
    becomes a plain one). URLs are left out. Bytes that are not UTF-8 end a word.
    """
    text = pc.utf8_lower(_valid(texts))
    text = pc.replace_substring_regex(text, _URL, " ")
    text = pc.replace_substring(text, "\u2019", "'")
    text = pc.replace_substring_regex(text, _BETWEEN, " ")
    # What is left of apostrophes beside a blank or another apostrophe is a quotation mark.
    text = pc.replace_substring_regex(text, r"(?:^| )'+|''+", " ")
    text = pc.replace_substring_regex(text, r"'(?: |$)", " ")
    pieces = pc.split_pattern(text, " ")
    count = pc.fill_null(pc.list_value_length(pieces), 0).to_numpy()
    flat = pieces.flatten()
    present = pc.greater(pc.binary_length(flat), 0)
    before = np.concatenate([[0], np.cumsum(present.to_numpy(zero_copy_only=False))])
    bounds = before[np.concatenate([[0], np.cumsum(count)])]
    mask = pieces.is_null() if pieces.null_count else None
    return pa.ListArray.from_arrays(pa.array(bounds, pa.int32()), flat.filter(present).cast(pa.binary()), mask=mask)


def _valid(texts: pa.Array) -> Any:
    """Return texts as strings, with replacement characters where they are not UTF-8."""
    try:
        return texts.cast(pa.string())
    except pa.ArrowInvalid:
        values = texts.to_pylist()
        return pa.array([None if value is None else value.decode(errors="replace") for value in values], pa.string())
