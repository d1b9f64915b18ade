"""How often keys come in a part of a trace."""

import numpy as np
from numpy.typing import NDArray

from streamgroup.traces.statistics.count_ids import add_counts
from streamgroup.traces.trace import Trace

__all__ = ["count_keys"]


def count_keys(trace: Trace, first: int, end: int) -> NDArray[np.int64]:
    """Count the keys of the tuples `first` to `end` - 1: int64[keys]."""
    if (first, end) == (0, trace.tuples):
        return trace.dictionary().count
    count = np.zeros(trace.keys, dtype=np.int64)
    for batch in trace.batches(("key_id",), first):
        assert batch.key_id is not None
        add_counts(count, batch.key_id[: end - batch.offset])
        if batch.offset + len(batch.key_id) >= end:
            break
    return count
