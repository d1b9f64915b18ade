"""Flink's keyBy: Murmur of the key's Java hash code gives its key group, and the group its subtask.

Since 1.2 (`streamgroup.engines.flink.keyby_subtask`).
"""

import numpy as np
from numpy.typing import NDArray

from streamgroup.engines.flink import keyby_subtasks_all
from streamgroup.engines.keys.typed_key_arrays import Keys
from streamgroup.groupings._engine_rule_with_membership_history import start
from streamgroup.groupings._key_groups import KeyGroupRule

__all__ = ["Params", "start"]


class Params(KeyGroupRule):
    """Parameters of Flink's DataStream keyBy."""

    def subtask_of(self, keys: Keys, workers: int, max_parallelism: int) -> NDArray[np.uint16]:
        """Apply Flink's rule."""
        return keyby_subtasks_all(keys, workers, max_parallelism)
