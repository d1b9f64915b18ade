"""Hazelcast and Jet: the partition of the cluster, and the processor of one member that has it."""

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from streamgroup.engines.hazelcast import DEFAULT_PARTITIONS, hazelcast_partition_all
from streamgroup.engines.keys.typed_key_arrays import Keys
from streamgroup.groupings._engine_rule import EngineRule, start
from streamgroup.groupings._engine_rule_with_membership_history import evenness
from streamgroup.groupings.protocol import Parts

__all__ = ["Params", "start"]


class Params(EngineRule):
    """Parameters of the cluster."""

    partition_count: int = Field(
        default=DEFAULT_PARTITIONS,
        ge=1,
        le=65_536,
        description="partitions of the cluster, assigned round robin to the workers",
    )

    def places(self, keys: Keys, workers: int) -> NDArray[np.uint16]:
        """Assign the partitions round robin to the live workers, in the order of their ids."""
        partitions = hazelcast_partition_all(keys, self.partition_count).astype(np.int64)
        return (partitions % workers).astype(np.uint16)

    def parts_by_worker(self, workers: int) -> Parts:
        """Return the partitions of each worker."""
        return Parts("partitions", np.bincount(np.arange(self.partition_count) % workers, minlength=workers))

    def facts(self, workers: int) -> dict[str, int | float]:
        """Return how many partitions a worker has."""
        return evenness(self.parts_by_worker(workers))

    def doubts(self, workers: int, sources: int, keys: int) -> list[str]:
        """Who has no partition has nothing to do."""
        if self.partition_count >= workers:
            return []
        none = workers - self.partition_count
        return [f"partition_count={self.partition_count} for {workers} workers: {none} of them have no partition"]
