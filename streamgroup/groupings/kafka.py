"""Kafka's Java producer and Kafka Streams: the partition by murmur2, and the instance that reads it."""

import numpy as np
from numpy.typing import NDArray

from streamgroup.engines.kafka import kafka_partition_all
from streamgroup.engines.keys.typed_key_arrays import Keys
from streamgroup.groupings._engine_rule_with_membership_history import start
from streamgroup.groupings._kafka_consumer_group import TopicRule

__all__ = ["Params", "start"]


class Params(TopicRule):
    """Parameters of a topic that a Java producer writes."""

    def partition_of(self, keys: Keys, partitions: int) -> NDArray[np.uint16]:
        """Apply Kafka's rule."""
        return kafka_partition_all(keys, partitions)
