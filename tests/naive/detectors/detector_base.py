"""What detectors share: hooks, tuples of each source, a threshold that follows the workers, what is reported."""

from fractions import Fraction
from math import ceil

from tests.naive.groupings.simple_groupings import Key, Setting, WorkersChange
from tests.naive.option_texts import truth
from tests.naive.share_threshold import share

__all__ = ["Detector", "ShareDetector", "extrapolated", "of_theta", "whole_number"]


def whole_number(given: int | str, otherwise: int) -> int:
    """A parameter; 0 stands for its default."""
    return int(given) or otherwise


def of_theta(factor: int, theta: str, workers: int) -> int:
    """factor / theta for the workers at the start, rounded up."""
    return ceil(factor / share(theta, workers))


def extrapolated(estimate: float, whole: float, tuples: int) -> int:
    """A share of something else, times the source's tuples."""
    return min(max(ceil(estimate / whole * tuples), 1), tuples)


class Detector:
    """What all have. `held_bytes` is the size of one of the entries that a source holds, `detector_entry_bytes` of
    those in all, `detector_fixed_bytes` what is held beside these, at all sources together.
    """

    held_bytes = 16
    detector_entry_bytes = 16
    detector_fixed_bytes = 0

    def __init__(self, setting: Setting) -> None:
        self.sources = setting.sources
        self.control_messages = 0
        self.control_bytes = 0
        self.signal_delays: list[int] = []

    def control_servers(self) -> list[tuple[int, int]]:
        """How many messages each was given, and its time for one."""
        return []

    def detect(self, source: int, key: Key, now: int) -> int:
        """Count the tuple: 0 if its key is cold, else its estimated count, or 1 without an estimate."""
        raise NotImplementedError

    def tick(self, now: int) -> None:
        """Nothing is due."""

    def workers_changed(self, change: WorkersChange) -> None:
        """Nothing depends on them."""

    def held(self, source: int) -> int:
        """Entries of a source."""
        raise NotImplementedError

    def entries(self) -> int:
        """In all."""
        return sum(self.held(source) for source in range(self.sources))


class ShareDetector(Detector):
    """A key is hot by its share of the tuples of a source; each source by itself. `tuples` is N of each."""

    def __init__(
        self, setting: Setting, theta: str = "1/5n", strict: bool | str = False, min_count: int | str = 1
    ) -> None:
        super().__init__(setting)
        self.text, self.strict, self.min_count = theta, truth(strict), int(min_count)
        self.workers = setting.workers
        self.tuples = [0] * setting.sources

    def detect(self, source: int, key: Key, now: int) -> int:
        self.tuples[source] += 1
        self.count(source, key)
        if self.tuples[source] < self.min_count or not self.is_hot(source, key):
            return 0
        return self.reported(source, key)

    def hottest(self, source: int) -> list[int]:
        """What is reported of the hot keys, largest first."""
        found = (self.reported(source, key) for key in self.keys(source) if self.is_hot(source, key))
        return sorted(found, reverse=True)

    def workers_changed(self, change: WorkersChange) -> None:
        self.workers = len(change.live)

    def threshold(self) -> Fraction:
        return share(self.text, self.workers)

    def is_hot(self, source: int, key: Key) -> bool:
        return self.reaches(self.estimate(source, key), self.whole(source))

    def reaches(self, estimate: int, whole: int) -> bool:
        """In integers."""
        theta = self.threshold()
        mine, bound = estimate * theta.denominator, theta.numerator * whole
        return mine > bound if self.strict else mine >= bound

    def reaches_as_float(self, estimate: float, whole: float) -> bool:
        theta = self.threshold()
        bound = float(theta.numerator) / float(theta.denominator) * whole
        return estimate > bound if self.strict else estimate >= bound

    def whole(self, source: int) -> int:
        return self.tuples[source]

    def reported(self, source: int, key: Key) -> int:
        return self.estimate(source, key)

    def count(self, source: int, key: Key) -> None:
        raise NotImplementedError

    def estimate(self, source: int, key: Key) -> int:
        """0 if nothing is known of the key."""
        raise NotImplementedError

    def keys(self, source: int) -> list[Key]:
        """Those that may be reported."""
        raise NotImplementedError
