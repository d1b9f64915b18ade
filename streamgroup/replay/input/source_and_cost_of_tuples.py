"""Which source each tuple of a chunk comes from, what it costs, and the random factor of its time at the source."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgroup.base.errors import DataError, UsageError
from streamgroup.cluster.service_distribution import Distribution, factors
from streamgroup.cluster.service_time import MAX_SERVICE_NS
from streamgroup.kernels import hash_placement, random_draws
from streamgroup.replay.scenario.source_service import PURPOSE
from streamgroup.traces.costs_in_ns import whole_ns
from streamgroup.traces.trace import Batch, Dictionary

__all__ = ["CostRule", "SourceFactorRule", "SourceRule", "cost_ns"]

I64 = NDArray[np.int64]


def cost_ns(cost_us: NDArray[np.float32]) -> I64:
    """Return base costs in whole ns, halves to even; what no int64 holds becomes 2^62, which no service may last."""
    return np.minimum(whole_ns(cost_us), 2.0**62).astype(np.int64)


class SourceRule:
    """Which source a tuple comes from: round robin (`shuffle`, by the loop), drawn (`random`), or by its `key`."""

    def __init__(self, text: str, sources: int, seed: int, dictionary: Dictionary) -> None:
        if text not in ("shuffle", "random", "key"):
            raise UsageError(f"--source-assignment: there is no kind {text!r}", "shuffle, random or key")
        self._kind = text
        self._sources = sources
        self._seed = seed
        self._by_key = hash_placement.source_of(dictionary.hash_lo, sources) if text == "key" else None

    @property
    def given(self) -> bool:
        """Return whether chunks have sources."""
        return self._kind != "shuffle"

    def chunk(self, offset: int, key: NDArray[np.uint32]) -> NDArray[np.int32] | None:
        """Return the sources of a chunk, or None when they are round robin."""
        if self._by_key is not None:
            return self._by_key[key]
        if self._kind == "shuffle":
            return None
        words = random_draws.words(self._seed, "source", np.arange(offset, offset + len(key), dtype=np.int64))
        return hash_placement.place(words, self._sources).astype(np.int32)


class CostRule:
    """What a tuple costs before a worker's speed counts: int64 ns, or float64 ns with a random factor.

    `base` is the trace's own cost (None: every tuple has `constant` ns), or int64[keys] for each key's; the loop needs
    no costs where `constant` is all there is. With `by_worker` the loop knows the base, and the factor is the cost.
    """

    def __init__(
        self,
        constant: int | None,
        by_key: I64 | None,
        distribution: Distribution | None,
        seed: int,
        *,
        by_worker: bool,
    ) -> None:
        self._constant, self._by_key, self._distribution, self._seed = constant, by_key, distribution, seed
        self._by_worker = by_worker

    @property
    def traced(self) -> bool:
        """Return whether the trace's cost column is needed."""
        return self._constant is None and self._by_key is None and not self._by_worker

    @property
    def given(self) -> bool:
        """Return whether chunks have costs."""
        return self.traced or self._by_key is not None or self._distribution is not None

    def chunk(self, batch: Batch) -> I64 | NDArray[np.float64] | None:
        """Return the costs of a chunk, or None when the loop can do without."""
        assert batch.key_id is not None
        base: I64 | None = None
        if self._by_key is not None:
            base = self._by_key[batch.key_id]
        elif self.traced:
            assert batch.cost is not None
            base = cost_ns(batch.cost)
        if self._distribution is None:
            return base
        index = np.arange(batch.offset, batch.offset + len(batch.key_id), dtype=np.int64)
        factor = factors(self._distribution, self._seed, index)
        if self._by_worker:
            return factor
        known = np.float64(self._constant) if base is None else base.astype(np.float64)
        return np.asarray(known * factor, dtype=np.float64)


class SourceFactorRule(NamedTuple):
    """The random factor of the time that a source takes for a tuple; a source's time is at most `longest_ns`."""

    distribution: Distribution
    longest_ns: int
    seed: int

    def chunk(self, offset: int, size: int) -> NDArray[np.float64]:
        """Return the factors of a chunk; DataError if a service would be too long."""
        factor = factors(self.distribution, self.seed, np.arange(offset, offset + size, dtype=np.int64), PURPOSE)
        if float(factor.max(initial=0)) * self.longest_ns > MAX_SERVICE_NS:
            raise DataError(
                f"tuple {offset + int(factor.argmax())} could stay with its source for over 2^53 ns (104 days)",
                "use a shorter --source-service",
            )
        return factor
