"""Heron's fields grouping: `std::hash` of the key's serialised bytes, modulo 633910111, modulo the number of tasks.

One rule since Heron's first commit; the serializer decides (`streamgroup.engines.heron.fields_task`).
"""

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from streamgroup.engines.heron import Serializer, fields_tasks_all
from streamgroup.engines.keys.typed_key_arrays import Keys
from streamgroup.groupings._engine_rule import EngineRule, start

__all__ = ["Params", "start"]


class Params(EngineRule):
    """Parameters of Heron's fields grouping."""

    serializer: Serializer = Field(
        default="java", description="java: JavaSerializer, the default; kryo3-4, kryo5: KryoSerializer by its version"
    )

    def places(self, keys: Keys, workers: int) -> NDArray[np.uint16]:
        """Return the task of every key."""
        return fields_tasks_all(keys, workers, self.serializer)
