"""Flink SQL's GROUP BY: the hash of the row that the key makes gives its key group, and the group its subtask.

Streaming jobs since the key is a BinaryRowData, checked in 1.18 and 2.3 (`streamgroup.engines.flink.sql_subtask`).
"""

import numpy as np
from numpy.typing import NDArray

from streamgroup.engines.flink import sql_subtasks_all
from streamgroup.engines.keys.typed_key_arrays import Keys
from streamgroup.groupings._engine_rule_with_membership_history import start
from streamgroup.groupings._key_groups import KeyGroupRule

__all__ = ["Params", "start"]


class Params(KeyGroupRule):
    """Parameters of a keyed exchange in Flink SQL."""

    def subtask_of(self, keys: Keys, workers: int, max_parallelism: int) -> NDArray[np.uint16]:
        """Apply Flink's rule."""
        return sql_subtasks_all(keys, workers, max_parallelism)
