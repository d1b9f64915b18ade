"""What a source sent in the last slides, counted anew for each tuple."""

from typing import NamedTuple

from tests.naive.groupings.simple_groupings import Grouping, Key, Setting, WorkersChange
from tests.naive.option_texts import time_ns

__all__ = ["SourceWindow", "Windowed"]


class Sent(NamedTuple):
    """A tuple; or what a worker that joined is taken to have got: so many tuples, so many keys."""

    slide: int
    worker: int
    key: Key = None
    tuples: int = 1
    keys: int = 0
    is_tuple: bool = True


class SourceWindow:
    """What one source sent. `slide` is that of its last tuple."""

    def __init__(self, slides: int) -> None:
        self.slides = slides
        self.slide = 0
        self.sent: list[Sent] = []

    def recent(self) -> list[Sent]:
        return [sent for sent in self.sent if sent.slide > self.slide - self.slides]

    def tuples(self, worker: int) -> int:
        return sum(sent.tuples for sent in self.recent() if sent.worker == worker)

    def distinct_keys(self, worker: int) -> int:
        return len(self.pairs_of(worker)) + sum(sent.keys for sent in self.recent() if sent.worker == worker)

    def pairs(self) -> set[tuple[Key, int]]:
        return {(sent.key, sent.worker) for sent in self.recent() if sent.is_tuple}

    def pairs_of(self, worker: int) -> set[tuple[Key, int]]:
        return {pair for pair in self.pairs() if pair[1] == worker}

    def in_slide(self, slide: int, key: Key) -> int:
        return sum(sent.is_tuple and sent.slide == slide and sent.key == key for sent in self.sent)

    def all_in_slide(self, slide: int) -> int:
        return sum(sent.is_tuple and sent.slide == slide for sent in self.sent)


class Windowed(Grouping):
    """Groupings whose sources remember a sliding window."""

    state_entry_bytes = 16

    def __init__(self, setting: Setting, window: str = "10s", slide: str = "1s") -> None:
        super().__init__(setting)
        self.slide_ns = time_ns(slide)
        slides, rest = divmod(time_ns(window), self.slide_ns)
        assert rest == 0
        self.windows = [SourceWindow(slides) for _ in range(setting.sources)]

    def move(self, source: int, now: int) -> SourceWindow:
        own = self.windows[source]
        own.slide = now // self.slide_ns
        # No rule looks further back than the window, or the slide before this one.
        own.sent = [sent for sent in own.sent if sent.slide > own.slide - max(own.slides, 2)]
        return own

    def send(self, source: int, key: Key, worker: int) -> int:
        own = self.windows[source]
        own.sent.append(Sent(own.slide, worker, key))
        return worker

    def workers_changed(self, change: WorkersChange) -> None:
        super().workers_changed(change)
        were = [worker for worker in change.live if worker not in change.joined]
        for own in self.windows:
            tuples = min((own.tuples(worker) for worker in were), default=0)
            keys = min((own.distinct_keys(worker) for worker in were), default=0)
            own.sent += [Sent(own.slide, worker, tuples=tuples, keys=keys, is_tuple=False) for worker in change.joined]

    def state_entries(self, source: int | None = None) -> int:
        assert source is not None
        return len(self.live) + len(self.windows[source].pairs())
