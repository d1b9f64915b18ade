"""Detectors with a count per key: SpaceSaving, with and without decay, lossy counting, exact counts."""

from collections import Counter
from fractions import Fraction
from math import floor
from typing import Any

from tests.naive.detectors.detector_base import ShareDetector, extrapolated, of_theta, whole_number
from tests.naive.groupings.simple_groupings import Key, Setting
from tests.naive.kernels.space_saving import Decayed, SpaceSaving
from tests.naive.option_texts import truth

__all__ = ["DecayedSpaceSaving", "Exact", "LossyCounting", "SpaceSavingDetector"]

FINEST = 1 << 28


class SpaceSavingDetector(ShareDetector):
    """A table of fixed size."""

    def __init__(
        self,
        setting: Setting,
        theta: str = "1/5n",
        capacity: int | str = 0,
        estimate: str = "count",
        replacement: bool | str = True,
        **more: Any,
    ) -> None:
        super().__init__(setting, theta, **more)
        self.kind = estimate
        places = whole_number(capacity, of_theta(2, theta, setting.workers))
        self.tables = [SpaceSaving(places, truth(replacement)) for _ in range(setting.sources)]

    def count(self, source: int, key: Key) -> None:
        self.tables[source].offer(key)

    def is_hot(self, source: int, key: Key) -> bool:
        return key in self.tables[source].table and super().is_hot(source, key)

    def estimate(self, source: int, key: Key) -> int:
        return self.tables[source].estimate(key, self.kind)

    def keys(self, source: int) -> list[Key]:
        return list(self.tables[source].table)

    def held(self, source: int) -> int:
        return len(self.tables[source])


class DecayedSpaceSaving(ShareDetector):
    """The table of FISH."""

    def __init__(
        self,
        setting: Setting,
        theta: str = "1/5n",
        capacity: int | str = 0,
        alpha: float | str = 0.2,
        epoch: int | str = 1000,
        f_mode: str = "epoch_end",
        **more: Any,
    ) -> None:
        super().__init__(setting, theta, **more)
        self.f_mode = f_mode
        places = whole_number(capacity, of_theta(2, theta, setting.workers))
        self.tables = [Decayed(places, int(epoch), float(alpha)) for _ in range(setting.sources)]

    def count(self, source: int, key: Key) -> None:
        self.tables[source].offer(key)

    def is_hot(self, source: int, key: Key) -> bool:
        return self.reaches_as_float(*self.weights(source, key))

    def reported(self, source: int, key: Key) -> int:
        return extrapolated(*self.weights(source, key), self.tuples[source])

    def weights(self, source: int, key: Key) -> tuple[float, float]:
        """Of the key, which is in the table, and of the whole, both as stored."""
        table = self.tables[source]
        return table.table[key].stored, table.denominator(self.f_mode)

    def keys(self, source: int) -> list[Key]:
        return list(self.tables[source].table)

    def held(self, source: int) -> int:
        return len(self.tables[source])


class LossyCounting(ShareDetector):
    """Manku and Motwani. An entry is [f, Delta]."""

    def __init__(self, setting: Setting, theta: str = "1/5n", bucket: int | str = 0, **more: Any) -> None:
        super().__init__(setting, theta, **more)
        self.bucket = whole_number(bucket, of_theta(10, theta, setting.workers))
        self.tables: list[dict[Key, list[int]]] = [{} for _ in range(setting.sources)]

    def threshold(self) -> Fraction:
        """A key's count may be too low by 1/w of the tuples."""
        lower = max(super().threshold() - Fraction(1, self.bucket), Fraction(0))
        return lower if lower.denominator <= FINEST else Fraction(floor(lower * FINEST), FINEST)

    def detect(self, source: int, key: Key, now: int) -> int:
        found = super().detect(source, key, now)
        self.forget(source)
        return found

    def count(self, source: int, key: Key) -> None:
        table = self.tables[source]
        if key not in table:
            number_of_bucket = -(-self.tuples[source] // self.bucket)
            table[key] = [0, number_of_bucket - 1]
        table[key][0] += 1

    def forget(self, source: int) -> None:
        """After the last tuple of a bucket."""
        buckets, more = divmod(self.tuples[source], self.bucket)
        if more == 0:
            table = self.tables[source]
            self.tables[source] = {key: entry for key, entry in table.items() if sum(entry) > buckets}

    def estimate(self, source: int, key: Key) -> int:
        return self.tables[source][key][0]

    def keys(self, source: int) -> list[Key]:
        return list(self.tables[source])

    def held(self, source: int) -> int:
        return len(self.tables[source])


class Exact(ShareDetector):
    """True counts."""

    def __init__(self, setting: Setting, **more: Any) -> None:
        super().__init__(setting, **more)
        self.counts: list[Counter[Key]] = [Counter() for _ in range(setting.sources)]

    def count(self, source: int, key: Key) -> None:
        self.counts[source][key] += 1

    def estimate(self, source: int, key: Key) -> int:
        return self.counts[source][key]

    def keys(self, source: int) -> list[Key]:
        return list(self.counts[source])

    def held(self, source: int) -> int:
        return len(self.counts[source])
