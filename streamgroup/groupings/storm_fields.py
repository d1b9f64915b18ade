"""Storm's fields grouping: the task of a key is 31 plus its Java hash code, modulo the number of tasks, floored.

One rule from 0.9.x to 2.8.x (`streamgroup.engines.storm.fields_task`).
"""

import numpy as np
from numpy.typing import NDArray

from streamgroup.engines.keys.typed_key_arrays import Keys
from streamgroup.engines.storm import fields_tasks_all
from streamgroup.groupings._engine_rule import EngineRule, start

__all__ = ["Params", "start"]


class Params(EngineRule):
    """Storm's fields grouping has no parameters."""

    def places(self, keys: Keys, workers: int) -> NDArray[np.uint16]:
        """Return the task of every key."""
        return fields_tasks_all(keys, workers)
