"""What each source has sent to each worker, and the ways to send one more."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgroup.kernels.compiling.kernel_decorators import njit
from streamgroup.kernels.least_loaded_of_all import LEAST, add_one, least, make_levels
from streamgroup.kernels.least_loaded_of_few import least_of_few, less_loaded
from streamgroup.kernels.least_loaded_of_many import least_of_many

__all__ = ["Loads", "make_loads", "send_to_any", "send_to_some", "send_to_this", "send_to_two"]

I64 = NDArray[np.int64]

# So few candidates are hashed as quickly as they are looked up.
_FEW = 4


class Loads(NamedTuple):
    """Tuples sent: `load` int64[sources, N] by worker id, with the least of it (`levels`, see
    `kernels.least_loaded_of_all`).

    `candidates` uint16[keys, 2] are F_1 and F_2, `live` int64[n'] the ids that may be chosen.
    """

    load: I64
    levels: I64
    live: I64
    candidates: NDArray[np.uint16]


def make_loads(load: I64, live: I64, candidates: NDArray[np.uint16]) -> Loads:
    """Take loads as they are."""
    live = np.ascontiguousarray(live)
    return Loads(load, make_levels(load, live), live if live.flags.writeable else live.copy(), candidates)


@njit(forceinline=True)
def send_to_this(loads: Any, source: Any, worker: Any) -> Any:
    """Count a tuple for a worker that was chosen otherwise."""
    add_one(loads.levels, loads.load, loads.live, source, worker)
    return np.int64(worker)


@njit(forceinline=True)
def send_to_two(loads: Any, source: Any, key: Any) -> Any:
    """Send to the less loaded of F_1 and F_2, ties to F_1."""
    return send_to_this(loads, source, less_loaded(loads.candidates, loads.load, source, key))


@njit(forceinline=True)
def send_to_any(loads: Any, source: Any) -> Any:
    """Send to the least loaded of all live workers, ties to the lowest id."""
    return send_to_this(loads, source, least(loads.levels, source))


@njit(forceinline=True)
def send_to_some(loads: Any, cursors: Any, source: Any, key: Any, d: Any) -> Any:
    """Send to the least loaded of F_1..F_d, ties to the first."""
    floor = loads.levels[np.uint64(source), LEAST]
    if d <= _FEW:
        worker = least_of_few(cursors, key, d, loads.live, loads.load, source, floor)
    else:
        worker = least_of_many(cursors, loads.load, loads.live, source, key, d, floor)
    return send_to_this(loads, source, worker)
