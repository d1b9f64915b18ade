"""The keys that a source has met, by the order in which it met them."""

from collections.abc import Sequence

__all__ = ["KnownKeys"]


class KnownKeys:
    """The keys met so far: `ids` maps the bytes of each (None: the null key) to its id, 0, 1, 2, ..."""

    def __init__(self) -> None:
        self.ids: dict[bytes | None, int] = {}
        self.keys: list[bytes | None] = []

    def add(self, keys: Sequence[bytes | None]) -> None:
        """Give distinct keys that are not known the next ids."""
        self.ids.update(zip(keys, range(len(self.keys), len(self.keys) + len(keys)), strict=True))
        self.keys += keys
