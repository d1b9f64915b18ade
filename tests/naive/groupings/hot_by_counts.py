"""A rule for tests of what is hot: a source treats a key as hot at three of six times."""

from collections import Counter

from tests.naive.groupings.simple_groupings import Grouping, Key, Setting

__all__ = ["ByCounts"]


class ByCounts(Grouping):
    """The third to fifth of every six tuples of a key are hot and go anywhere, the others to the first candidate."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self.count: Counter[tuple[int, Key]] = Counter()

    def choose(self, source: int, key: Key, now: int) -> int:
        count = self.count[source, key]
        self.count[source, key] += 1
        if count % 6 not in (2, 3, 4):
            self.allowed = 0
            return self.candidate(key, 1)
        self.allowed = min(2 + count % 3, len(self.live))
        return self.live[(5 * count + source) % len(self.live)]
