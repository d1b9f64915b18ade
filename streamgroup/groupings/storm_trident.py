"""Trident's IndexHashGrouping in Storm: the Java hash code without its sign bit, modulo the number of tasks.

0.10 to 2.8.x (`streamgroup.engines.storm.trident_task`); `partitionBy` is a fields grouping instead.
"""

import numpy as np
from numpy.typing import NDArray

from streamgroup.engines.keys.typed_key_arrays import Keys
from streamgroup.engines.storm import trident_tasks_all
from streamgroup.groupings._engine_rule import EngineRule, start

__all__ = ["Params", "start"]


class Params(EngineRule):
    """IndexHashGrouping has no parameters."""

    def places(self, keys: Keys, workers: int) -> NDArray[np.uint16]:
        """Return the partition of every key."""
        return trident_tasks_all(keys, workers)
