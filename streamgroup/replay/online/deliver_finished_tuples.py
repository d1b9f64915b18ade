"""What workers report of finished tuples, delivered to a grouping as a replay does: in order of the finishes."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Finishes", "deliver_block"]

I64 = NDArray[np.int64]


class Finishes(NamedTuple):
    """Finished tuples, int64 each: worker, key, and when each arrived at its worker, started and finished, in ns."""

    worker: I64
    key: I64
    arrival: I64
    start: I64
    finish: I64


def deliver_block(grouping: Any, finishes: Any) -> None:
    """Deliver finished tuples; timers that were due before each come first."""
    for i in range(finishes.worker.shape[0]):
        grouping.tick(finishes.finish[i] - 1)
        grouping.executed(
            finishes.worker[i], finishes.key[i], finishes.arrival[i], finishes.start[i], finishes.finish[i]
        )
