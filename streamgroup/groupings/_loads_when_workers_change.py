"""Load vectors when workers join, leave or crash: the loads of those that stay are kept."""

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from streamgroup.groupings.protocol import WorkersChange

__all__ = ["carry_loads"]

Number = TypeVar("Number", bound=np.generic)


def carry_loads(load: NDArray[Number], change: WorkersChange) -> NDArray[Number]:
    """Return load vectors in the shape they have after a change: `load` [..., worker], a vector or one for each source.

    Workers that were there keep their entries. A joiner starts at the smallest load among the live that were there, in
    each vector its own: at 0 it would be flooded until it had caught up with the others. If all live workers are new,
    they start at 0. The worker axis reaches to the largest live id and never shrinks: one who left may still finish
    what it has.
    """
    before = load.shape[-1]
    carried: NDArray[Any] = np.zeros((*load.shape[:-1], max(before, int(change.live[-1]) + 1)), dtype=load.dtype)
    carried[..., :before] = load
    new = np.isin(change.live, np.array(change.joined, dtype=np.int64))
    joiners, stayed = change.live[new], change.live[~new]
    carried[..., joiners] = carried[..., stayed].min(axis=-1, keepdims=True) if len(stayed) else 0
    return carried
