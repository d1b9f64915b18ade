"""The combiner in each source: what it holds, and which tuples it made one of."""

from tests.naive.replay.options import Key, Options

__all__ = ["Combiner"]


class Combiner:
    """A merged tuple is named by its first original.

    batch: by source, what has come and not left; members: the originals of each merged tuple; left: when it left.
    """

    def __init__(self, options: Options, keys: list[Key]) -> None:
        assert options.combine is not None
        self.kind, self.size = options.combine
        self.keys = keys
        self.batch: list[list[int]] = [[] for _ in range(options.sources)]
        self.members: dict[int, list[int]] = {}
        self.left: dict[int, int] = {}

    def enter(self, source: int, seq: int, now: int) -> int | None:
        """When the mini-batch leaves, if that is known and nobody was told yet."""
        batch = self.batch[source]
        batch.append(seq)
        if self.kind == "count":
            return now if len(batch) == self.size else None
        return (now // self.size + 1) * self.size if len(batch) == 1 else None

    def flush(self, source: int, now: int) -> list[int]:
        """The mini-batch leaves, as tuples of different keys."""
        by_key: dict[Key, list[int]] = {}
        for seq in self.batch[source]:
            by_key.setdefault(self.keys[seq], []).append(seq)
        self.batch[source] = []
        for own in by_key.values():
            self.members[own[0]] = own
            self.left[own[0]] = now
        return [own[0] for own in by_key.values()]

    def place(self, first: int) -> tuple[int, int]:
        """In which order merged tuples are sent."""
        return self.left[first], first

    def rank(self, first: int) -> int:
        """How many merged tuples left before."""
        return sum(self.place(other) < self.place(first) for other in self.left)
