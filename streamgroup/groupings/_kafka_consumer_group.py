"""Shared by groupings whose keys go to partitions of a topic, which instances of a consumer group read."""

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from streamgroup.engines.kafka_assignors import Assignor, assign, owners
from streamgroup.engines.keys.typed_key_arrays import Keys
from streamgroup.groupings._engine_rule_with_membership_history import FollowedRule, evenness
from streamgroup.groupings.protocol import Parts, WorkersChange

__all__ = ["TopicRule"]

I64 = NDArray[np.int64]


class TopicRule(FollowedRule):
    """Parameters of a topic and of who reads it; what workers hold is the reader of each partition."""

    partitions: int = Field(
        default=0, ge=0, le=65_536, description="partitions of the topic; 0: one for each worker, which reads it"
    )
    assignor: Assignor = Field(
        default="range",
        description="Kafka's assignor, which gives the partitions to workers",
    )

    def partition_of(self, keys: Keys, partitions: int) -> NDArray[np.uint16]:
        """Return uint16[K]: each key's partition."""
        raise NotImplementedError

    def begin(self, live: I64) -> I64:
        """Assign for the first time."""
        if self.partitions == 0:
            return live.copy()
        return owners(assign(self.partitions, live.tolist(), self.assignor))

    def follow(self, holding: I64, change: WorkersChange) -> I64:
        """Assign anew; without a number of partitions the topic gets as many as there are workers."""
        if self.partitions == 0:
            return change.live.copy()
        owned = {worker: np.flatnonzero(holding == worker).tolist() for worker in change.live.tolist()}
        return owners(assign(self.partitions, change.live.tolist(), self.assignor, owned))

    def workers_of(self, keys: Keys, holding: I64) -> I64:
        """Return the reader of each key's partition."""
        return holding[self.partition_of(keys, len(holding))]

    def parts_by_worker(self, workers: int) -> Parts | None:
        """Return the partitions that each worker reads."""
        if self.partitions == 0:
            return None
        return Parts("partitions", np.bincount(self.begin(np.arange(workers)), minlength=workers))

    def facts(self, workers: int) -> dict[str, int | float]:
        """Return how many partitions a worker reads."""
        parts = self.parts_by_worker(workers)
        return {} if parts is None else evenness(parts)

    def doubts(self, workers: int, sources: int, keys: int) -> list[str]:
        """Who has no partition has nothing to do."""
        if not 0 < self.partitions < workers:
            return []
        return [f"{self.partitions} partitions for {workers} workers: {workers - self.partitions} of them read nothing"]
