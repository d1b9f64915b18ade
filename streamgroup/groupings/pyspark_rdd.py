"""PySpark's portable_hash: `partitionBy`, `reduceByKey` and others of RDDs in Python."""

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from streamgroup.engines.hashes.siphash import MOST_SEED
from streamgroup.engines.keys.typed_key_arrays import Keys
from streamgroup.engines.pyspark_rdd import Python, pyspark_rdd_partition_all
from streamgroup.groupings._engine_rule import EngineRule, start

__all__ = ["Params", "start"]


class Params(EngineRule):
    """Parameters of the Python that runs the job."""

    python: Python = Field(default="3.11", description="CPython's version: 3.10 (3.4 to 3.10) or 3.11 (and later)")
    seed: int = Field(default=0, ge=0, le=MOST_SEED, description="PYTHONHASHSEED; Spark's launchers set it to 0")

    def places(self, keys: Keys, workers: int) -> NDArray[np.uint16]:
        """Apply the rule to the live workers, in the order of their ids."""
        return pyspark_rdd_partition_all(keys, workers, self.python, self.seed)
