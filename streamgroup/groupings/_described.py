"""Ranges of parameters in words, where bounds do not say them."""

from typing import NamedTuple

__all__ = ["Described"]


class Described(NamedTuple):
    """What a parameter may be: a part of its annotation, which `streamgroup groupings NAME` prints."""

    text: str
