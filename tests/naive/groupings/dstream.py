"""DStream: tuples of hot keys go round robin, others by their hash."""

from typing import Any

from tests.naive.detectors import make_detector
from tests.naive.groupings.simple_groupings import Grouping, Key, Setting, WorkersChange

__all__ = ["DStream"]


class DStream(Grouping):
    def __init__(self, setting: Setting, detector: str = "synopsis", **of_detector: Any) -> None:
        super().__init__(setting)
        self.detector: Any = make_detector(detector, setting, of_detector)
        self.state_entry_bytes = self.detector.held_bytes
        self.detector_entry_bytes = self.detector.detector_entry_bytes
        self.detector_fixed_bytes = self.detector.detector_fixed_bytes
        self.pointer = [source % setting.workers for source in range(setting.sources)]
        self.most_held = max(self.detector.held(source) for source in range(setting.sources))
        self.given: dict[Key, int] = {}

    def choose(self, source: int, key: Key, now: int) -> int:
        hot = self.detector.detect(source, key, now) > 0
        self.allowed = len(self.live) if hot else 0
        if hot:
            worker = self.live[self.pointer[source]]
            self.pointer[source] = (self.pointer[source] + 1) % len(self.live)
        else:
            worker = self.candidate(key, 1)
        self.given[key] = max(self.given.get(key, 1), self.allowed)
        self.most_held = max(self.most_held, self.detector.held(source))
        self.count_messages()
        return worker

    def tick(self, now: int) -> None:
        self.detector.tick(now)
        self.count_messages()

    def count_messages(self) -> None:
        self.control_messages = self.detector.control_messages
        self.control_bytes = self.detector.control_bytes

    def workers_changed(self, change: WorkersChange) -> None:
        super().workers_changed(change)
        self.detector.workers_changed(change)
        self.count_messages()
        self.pointer = [place % len(self.live) for place in self.pointer]

    def choices(self, key: Key) -> int:
        """The most it was ever given."""
        return self.given[key]

    def state_entries(self, source: int | None = None) -> int:
        return self.most_held if source is None else self.detector.held(source)

    def detector_entries(self) -> int:
        return self.detector.entries()
