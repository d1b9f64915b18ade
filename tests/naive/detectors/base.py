"""What detectors share: tuples of each source, a threshold that follows the workers, what is reported."""

from fractions import Fraction
from math import ceil

from tests.naive.groupings import Key, Setting
from tests.naive.shares import share
from tests.naive.texts import truth

__all__ = ["Detector", "extrapolated", "of_theta", "whole_number"]


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
    """Each source by itself. `tuples` is N of each."""

    def __init__(
        self, setting: Setting, theta: str = "1/5n", strict: bool | str = False, min_count: int | str = 1
    ) -> None:
        self.text, self.strict, self.min_count = theta, truth(strict), int(min_count)
        self.workers = setting.workers
        self.tuples = [0] * setting.sources

    def detect(self, source: int, key: Key, now: int) -> int:
        """Count the tuple: 0 if its key is cold, else its estimated count."""
        self.tuples[source] += 1
        self.count(source, key)
        if self.tuples[source] < self.min_count or not self.is_hot(source, key):
            return 0
        return self.reported(source, key)

    def hottest(self, source: int) -> list[int]:
        """What is reported of the hot keys, largest first."""
        found = (self.reported(source, key) for key in self.keys(source) if self.is_hot(source, key))
        return sorted(found, reverse=True)

    def tick(self, now: int) -> None:
        """Nothing is due."""

    def workers_changed(self, workers: int) -> None:
        self.workers = workers

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

    def held(self, source: int) -> int:
        """Entries."""
        raise NotImplementedError
