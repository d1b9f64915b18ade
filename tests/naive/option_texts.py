"""Values from the command line's texts."""

from fractions import Fraction

__all__ = ["time_ns", "truth"]

UNITS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}


def time_ns(text: str) -> int:
    """The length of a time such as 12us; a bare 0 is one, too."""
    if text == "0":
        return 0
    digits = text.rstrip("nmsu")
    return int(Fraction(digits) * UNITS[text[len(digits) :]])


def truth(value: bool | str) -> bool:
    """A flag, or its text."""
    return {"true": True, "false": False, True: True, False: False}[value]
