"""PyFlink's key_by: Murmur of the hash of the Row that holds the key gives its key group, and the group its subtask.

Checked with jobs on 2.3 (`streamgroup.engines.pyflink`).
"""

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from streamgroup.engines.keys.typed_key_arrays import Keys
from streamgroup.engines.pyflink import Mode, pyflink_subtasks_all
from streamgroup.groupings._engine_rule_with_membership_history import start
from streamgroup.groupings._key_groups import KeyGroupRule

__all__ = ["Params", "start"]


class Params(KeyGroupRule):
    """Parameters of key_by in PyFlink's DataStream API."""

    declared: bool = Field(default=False, description="key_by is given the type of the key (key_type=)")

    mode: Mode = Field(default="process", description="how Flink runs Python: python.execution-mode, process or thread")

    def subtask_of(self, keys: Keys, workers: int, max_parallelism: int) -> NDArray[np.uint16]:
        """Apply PyFlink's rule."""
        return pyflink_subtasks_all(keys, workers, max_parallelism, declared=self.declared, mode=self.mode)
