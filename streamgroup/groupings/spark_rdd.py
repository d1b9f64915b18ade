"""Spark's HashPartitioner: `partitionBy`, `reduceByKey` and others of RDDs in Scala and Java."""

import numpy as np
from numpy.typing import NDArray

from streamgroup.engines.keys.typed_key_arrays import Keys
from streamgroup.engines.spark_rdd import spark_rdd_partition_all
from streamgroup.groupings._engine_rule import EngineRule, start

__all__ = ["Params", "start"]


class Params(EngineRule):
    """The rule of RDDs has no parameters."""

    def places(self, keys: Keys, workers: int) -> NDArray[np.uint16]:
        """Apply the rule to the live workers, in the order of their ids."""
        return spark_rdd_partition_all(keys, workers)
