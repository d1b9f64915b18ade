"""What D-Choices and its relatives share: the loads that each source knows, at the start and when workers change."""

import numpy as np

from streamgroup.groupings._membership import carry_loads
from streamgroup.groupings.protocol import Context, WorkersChange
from streamgroup.kernels.loads import Loads, make_loads

__all__ = ["ENTRY_BYTES", "moved_loads", "no_loads"]

# A key or worker and its count.
ENTRY_BYTES = 16


def no_loads(context: Context) -> Loads:
    """Nothing has been sent."""
    load = np.zeros((context.sources, int(context.live[-1]) + 1), dtype=np.int64)
    return make_loads(load, context.live, context.candidates(2))


def moved_loads(loads: Loads, change: WorkersChange, context: Context) -> Loads:
    """Keep what was sent to those who stay; a joiner starts at the smallest of it."""
    return make_loads(carry_loads(loads.load, change), change.live, context.candidates(2))
