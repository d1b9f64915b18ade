"""Formats numbers and texts of users for display: keys, names, errors and paths may hold anything."""

import unicodedata
from hashlib import blake2b

__all__ = ["bare", "number", "shown"]

# Control and format characters, line and paragraph separators, lone surrogates, characters that do not exist.
_HIDDEN = {"Cc", "Cf", "Zl", "Zp", "Cs", "Cn"}
_MOST = 48


def bare(text: str) -> str:
    """Write what cannot be seen, and what would turn other text round, as an escape."""
    return "".join(
        char.encode("unicode_escape", "surrogatepass").decode("ascii")
        if unicodedata.category(char) in _HIDDEN
        else char
        for char in text
    )


def shown(text: str, most: int = _MOST) -> str:
    """Return a text as charts and tables show it: `bare`, and of a long one the first half of `most` characters.

    A text that is cut says how long it is and carries a digest, so that two of one beginning stay apart.
    """
    if len(text) <= most:
        return bare(text)
    mark = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=3).hexdigest()
    return f"{bare(text[: most // 2])}... ({len(text):,} characters, {mark})"


def number(value: float | None) -> str:
    """Write a number for people: three significant digits, whole numbers in full, `-` for none."""
    if value is None:
        return "-"
    if float(value).is_integer() and abs(value) < 1e15:
        return f"{value:,.0f}"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) >= 0.001 else f"{value:.2e}"
