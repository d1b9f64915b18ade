"""DAGreedy: hot keys go where they were sent before, unless load speaks against it."""

from fractions import Fraction

from tests.naive.groupings.simple_groupings import Key, Setting
from tests.naive.kernels.sent_in_sliding_window import SourceWindow, Windowed
from tests.naive.share_threshold import share

__all__ = ["DaGreedy", "HotBySlide"]


class HotBySlide(Windowed):
    """Groupings that find hot keys by the share of the last slide. `hot_until`: by source and key, the last slide."""

    def __init__(self, setting: Setting, theta: str, **window: str) -> None:
        super().__init__(setting, **window)
        self.theta = theta
        self.hot_until: list[dict[Key, int]] = [{} for _ in range(setting.sources)]

    def is_frequent(self, own: SourceWindow, key: Key) -> bool:
        """With the tuple at hand, which is not counted yet."""
        before = own.all_in_slide(own.slide - 1)
        return before > 0 and own.in_slide(own.slide, key) + 1 > share(self.theta, len(self.live)) * before


class DaGreedy(HotBySlide):
    """The highest affinity x (sent there) - (1 - affinity) x (load above the mean); ties: the lowest id."""

    def __init__(self, setting: Setting, theta: str = "1/100n", affinity: str = "0.5", **window: str) -> None:
        super().__init__(setting, theta, **window)
        self.affinity = Fraction(affinity)

    def choose(self, source: int, key: Key, now: int) -> int:
        own, hot_until = self.move(source, now), self.hot_until[source]
        if self.is_frequent(own, key):
            hot_until[key] = own.slide + 1
        if hot_until.get(key, -1) < own.slide:
            self.allowed = 0
            return self.send(source, key, self.candidate(key, 1))
        self.allowed = len(self.live)
        loads = {worker: own.tuples(worker) for worker in self.live}
        mean = Fraction(sum(loads.values()), len(loads))
        pairs = own.pairs()

        def score(worker: int) -> Fraction:
            above = (loads[worker] - mean) / mean if mean else Fraction(0)
            # Without tuples in the window no key was sent anywhere.
            return self.affinity * ((key, worker) in pairs) - (1 - self.affinity) * above

        return self.send(source, key, min(self.live, key=lambda worker: (-score(worker), worker)))

    def choices(self, key: Key) -> int:
        return self.ever
