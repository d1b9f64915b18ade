"""Producers on librdkafka (C, C++, Python, Go, .NET): the partition by CRC-32, and the instance that reads it."""

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from streamgroup.engines.keys.typed_key_arrays import Keys
from streamgroup.engines.librdkafka import Partitioner, librdkafka_partition_all
from streamgroup.groupings._engine_rule_with_membership_history import start
from streamgroup.groupings._kafka_consumer_group import TopicRule

__all__ = ["Params", "start"]


class Params(TopicRule):
    """Parameters of a topic that a client on librdkafka writes."""

    partitioner: Partitioner = Field(
        default="consistent_random", description="the producer's setting of this name; with _random, null is not placed"
    )

    def partition_of(self, keys: Keys, partitions: int) -> NDArray[np.uint16]:
        """Apply librdkafka's rule."""
        return librdkafka_partition_all(keys, partitions, self.partitioner)
