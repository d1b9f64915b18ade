"""cm and cam: two candidates, compared by the distinct keys and the tuples that the source sent them lately."""

from tests.naive.groupings.simple_groupings import Key, Setting
from tests.naive.kernels.sent_in_sliding_window import SourceWindow, Windowed

__all__ = ["Cam", "Cm"]


class Cm(Windowed):
    """The candidate with fewer distinct keys, or the lower score of keys and tuples; ties: F_1."""

    def __init__(self, setting: Setting, score: str = "keys", **window: str) -> None:
        super().__init__(setting, **window)
        self.score = score

    def scores(self, own: SourceWindow) -> dict[int, int]:
        keys = {worker: own.distinct_keys(worker) for worker in self.live}
        if self.score == "keys":
            return keys
        tuples = {worker: own.tuples(worker) for worker in self.live}
        range_of_keys = max(keys.values()) - min(keys.values()) + 1
        range_of_tuples = max(tuples.values()) - min(tuples.values()) + 1
        return {worker: keys[worker] * range_of_tuples + tuples[worker] * range_of_keys for worker in self.live}

    def choose(self, source: int, key: Key, now: int) -> int:
        scores = self.scores(self.move(source, now))
        first, second = self.candidate(key, 1), self.candidate(key, 2)
        return self.send(source, key, second if scores[second] < scores[first] else first)

    def choices(self, key: Key) -> int:
        return min(2, self.ever)


class Cam(Windowed):
    """Where the source sent the key lately, F_1 first; else the candidate with less."""

    def __init__(self, setting: Setting, unseen: str = "tuples", **window: str) -> None:
        super().__init__(setting, **window)
        self.unseen = unseen

    def choose(self, source: int, key: Key, now: int) -> int:
        own = self.move(source, now)
        first, second = self.candidate(key, 1), self.candidate(key, 2)
        for worker in (first, second):
            if (key, worker) in own.pairs():
                return self.send(source, key, worker)
        less = own.tuples if self.unseen == "tuples" else own.distinct_keys
        return self.send(source, key, second if less(second) < less(first) else first)

    def choices(self, key: Key) -> int:
        return min(2, self.ever)
