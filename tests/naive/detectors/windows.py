"""A detector of what is frequent in the last tuples: Window Compact Space Saving."""

from typing import Any

from tests.naive.detectors.detector_base import ShareDetector, of_theta, whole_number
from tests.naive.groupings.simple_groupings import Key, Setting
from tests.naive.kernels.space_saving import SpaceSaving

__all__ = ["Wcss"]


class Frames:
    """Of one source: the table of the current frame, and (block, key) of recorded overflows, oldest first."""

    def __init__(self, blocks: int, block: int) -> None:
        self.blocks, self.block = blocks, block
        self.window = blocks * block
        self.table = SpaceSaving(blocks)
        self.overflows: list[tuple[int, Key]] = []

    def count(self, i: int, key: Key) -> None:
        """The i-th tuple, from 0 on."""
        if i > 0 and i % self.window == 0:
            self.table = SpaceSaving(self.blocks)
        j = i // self.block
        if self.overflows and self.overflows[0][0] <= j - self.blocks:
            self.overflows.pop(0)
        self.table.offer(key)
        if self.table.estimate(key) % self.block == 0:
            self.overflows.append((j, key))

    def overflowed(self) -> list[Key]:
        """Keys with B > 0."""
        return list({key for _, key in self.overflows})

    def estimate(self, key: Key) -> int:
        """Once the window is full."""
        b = sum(other == key for _, other in self.overflows)
        c = self.table.estimate(key)
        return self.block * (b + 2) + c % self.block if b > 0 else 2 * self.block + c


class Wcss(ShareDetector):
    """A sliding window."""

    def __init__(
        self, setting: Setting, theta: str = "1/5n", window: int | str = 0, blocks: int | str = 0, **more: Any
    ) -> None:
        super().__init__(setting, theta, **more)
        k = whole_number(blocks, of_theta(8, theta, setting.workers))
        s = -(-whole_number(window, of_theta(128, theta, setting.workers)) // k)
        self.frames = [Frames(k, s) for _ in range(setting.sources)]

    def is_filling(self, source: int) -> bool:
        return self.tuples[source] <= self.frames[source].window

    def count(self, source: int, key: Key) -> None:
        self.frames[source].count(self.tuples[source] - 1, key)

    def whole(self, source: int) -> int:
        return self.tuples[source] if self.is_filling(source) else self.frames[source].window

    def estimate(self, source: int, key: Key) -> int:
        frames = self.frames[source]
        return frames.table.estimate(key) if self.is_filling(source) else frames.estimate(key)

    def reported(self, source: int, key: Key) -> int:
        estimate, n = self.estimate(source, key), self.tuples[source]
        return estimate if self.is_filling(source) else min(-(-estimate * n // self.whole(source)), n)

    def keys(self, source: int) -> list[Key]:
        frames = self.frames[source]
        return list(frames.table.table) if self.is_filling(source) else frames.overflowed()

    def held(self, source: int) -> int:
        frames = self.frames[source]
        return len(frames.table) + len(frames.overflowed()) + -(-len(frames.overflows) // 2)
