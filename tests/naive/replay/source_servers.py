"""Sources that take a time for each tuple: one at a time, in the order in which the tuples came."""

from math import sqrt

from tests.naive.kernels.hashes_and_draws import exp, exponential, log, normal
from tests.naive.replay.options import Options

__all__ = ["SourceServers"]


class SourceServers:
    """By source: those that came and wait; the one that it serves, or has served and not got rid of, with its service.

    waits: of each tuple that left its source, the time there that was not its service; services: that.
    """

    def __init__(self, options: Options) -> None:
        self.options = options
        self.line: list[list[int]] = [[] for _ in range(options.sources)]
        self.at_work: list[tuple[int, int] | None] = [None] * options.sources
        self.waits: dict[int, int] = {}
        self.services: dict[int, int] = {}

    def service_ns(self, seq: int, source: int) -> int:
        times = self.options.source_service_ns
        assert times is not None
        return round(times[source % len(times)] * self.factor(seq))

    def factor(self, seq: int) -> float:
        kind, _, cv = self.options.source_distribution.partition(":")
        if kind == "exponential":
            return exponential(self.options.seed, "source_service", seq)
        if kind == "lognormal":
            spread = log(1.0 + float(cv) * float(cv))
            return exp(sqrt(spread) * normal(self.options.seed, "source_service", seq) - spread / 2)
        return 1.0

    def begin(self, source: int) -> tuple[int, int] | None:
        """Begin with the next tuple, if there is one and the source is free: (tuple, service)."""
        if self.at_work[source] is not None or not self.line[source]:
            return None
        seq = self.line[source].pop(0)
        begun = seq, self.service_ns(seq, source)
        self.at_work[source] = begun
        return begun

    def leaves(self, source: int, seq: int, arrival: int, now: int) -> None:
        """A tuple leaves its source; if that has it at work, it is free."""
        begun = self.at_work[source]
        if begun is not None and begun[0] == seq:
            self.at_work[source] = None
            self.services[seq] = begun[1]
            self.waits[seq] = now - arrival - begun[1]
