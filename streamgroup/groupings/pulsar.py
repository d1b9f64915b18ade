"""Pulsar: the partition of a topic, or the consumer of a Key_Shared subscription."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from streamgroup.engines.keys.typed_key_arrays import Keys
from streamgroup.engines.pulsar import (
    HashRanges,
    consistent_consumer_all,
    hash_ring,
    pulsar_partition_all,
    pulsar_slot_all,
    range_sizes,
)
from streamgroup.groupings._engine_rule_with_membership_history import FollowedRule, evenness, start
from streamgroup.groupings.protocol import Parts, WorkersChange

__all__ = ["Params", "start"]

I64 = NDArray[np.int64]


class Params(FollowedRule):
    """Parameters of who places a message; what workers hold are the ranges of slots where there are any."""

    mode: Literal["java_string_hash", "murmur3", "auto_split", "consistent"] = Field(
        default="java_string_hash",
        description="the producer's hash, or how a Key_Shared subscription shares keys: ranges that split, or "
        "consistent hashing (4.x) of consumer-0, consumer-1, ...",
    )

    def begin(self, live: I64) -> I64:
        """Let the first workers join in the order of their ids."""
        return _held(HashRanges(live.tolist())) if self.mode == "auto_split" else live.copy()

    def follow(self, holding: I64, change: WorkersChange) -> I64:
        """Let workers leave and join, in the order of their ids."""
        if self.mode != "auto_split":
            return change.live.copy()
        ranges = _ranges(holding)
        # Who joins first leaves nobody without a range in between.
        ranges.join(*sorted(change.joined))
        for worker in sorted(change.left):
            ranges.leave(worker)
        return _held(ranges)

    def workers_of(self, keys: Keys, holding: I64) -> I64:
        """Apply Pulsar's rule."""
        if self.mode == "auto_split":
            return _ranges(holding).consumer_all(pulsar_slot_all(keys))
        if self.mode == "consistent":
            return holding[consistent_consumer_all(keys, _names(holding))]
        return holding[pulsar_partition_all(keys, len(holding), self.mode)]

    def parts_by_worker(self, workers: int) -> Parts | None:
        """Return the slots of each worker, where it has slots."""
        first = np.arange(workers)
        if self.mode == "auto_split":
            sizes = HashRanges(first.tolist()).sizes()
            return Parts("slots", np.array([sizes[worker] for worker in range(workers)]))
        if self.mode == "consistent":
            return Parts("slots", range_sizes(*hash_ring(_names(first)), workers))
        return None

    def facts(self, workers: int) -> dict[str, int | float]:
        """Return how many slots a worker has, where it has slots."""
        parts = self.parts_by_worker(workers)
        return {} if parts is None else evenness(parts)


def _names(live: I64) -> list[str]:
    return [f"consumer-{worker}" for worker in live.tolist()]


def _held(ranges: HashRanges) -> I64:
    """Keep ranges as numbers: the boundaries, then whose each is."""
    return np.array([*ranges.boundaries, *ranges.owners], dtype=np.int64)


def _ranges(holding: I64) -> HashRanges:
    ranges = HashRanges()
    half = len(holding) // 2
    ranges.boundaries, ranges.owners = holding[:half].tolist(), holding[half:].tolist()
    return ranges
