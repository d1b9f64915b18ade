"""The keys that workers hold, where that slows them down (docs/cluster.md, State).

`Held` and the functions over it compile into the loop. Where state costs nothing there is no `Held` (None), and these
functions compile to nothing.
"""

from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgroup.base.errors import UsageError
from streamgroup.cluster.state_cost import StateCost
from streamgroup.kernels.compiling.kernel_decorators import njit

__all__ = ["Held", "Windows", "hold", "make_held", "slowness", "view_slowness", "windows_of"]

I64 = NDArray[np.int64]

# Keys whose bits are released together: 64 bytes.
_BLOCK_BITS = 9
# Windows of the warm-up come before all others.
_WARMUP = 1 << 62


class Windows(NamedTuple):
    """After which windows workers release their keys: of `width` ns if that is over 0, else of `length` tuples.

    `warmup_length` is the length in the warm-up, which ends before tuple `measured_from`.
    """

    width: int
    length: Fraction
    warmup_length: Fraction
    measured_from: int


class Held(NamedTuple):
    """What workers hold: int64[N] the number of `entries` and the latest `window`; `bits` uint8, one for each worker
    and key, `row` bytes a worker; `dirty` uint8, `blocks` a worker, is 1 where any of 64 bytes of bits are in use.

    `rate`, `limit` and `over` as in `StateCost`. Windows are of `width` ns, or tuple i is in window i x `times` div
    `length` (`warm_times`, `warm_length` in the warm-up, before tuple `measured_from`); with both 0 there is one
    window. `origin` int64[1] is the arrival of tuple `measured_from`. Where `merged` is 1, tuples are merged ones, and
    bring the number of their window (of `windows_of`) in place of an arrival.
    """

    entries: I64
    window: I64
    bits: NDArray[np.uint8]
    dirty: NDArray[np.uint8]
    row: int
    blocks: int
    rate: float
    limit: int
    over: float
    width: int
    times: int
    length: int
    warm_times: int
    warm_length: int
    measured_from: int
    origin: I64
    merged: int


def make_held(
    cost: StateCost, keys: int, workers: int, windows: Windows | None, tuples: int, *, merged: bool = False
) -> Held:
    """Make the state of workers that hold nothing; without `windows` they never release keys."""
    blocks = (keys >> _BLOCK_BITS) + 1
    row = blocks << (_BLOCK_BITS - 3)
    width, ratios, first = 0, (0, 1, 0, 1), 0
    if windows is not None:
        width, first = windows.width, windows.measured_from
        if not width:
            length, warm = windows.length, windows.warmup_length
            ratios = length.denominator, length.numerator, warm.denominator, warm.numerator
            if max(ratios) >= 1 << 63 or max(ratios[0], ratios[2]) * tuples >= 1 << 63:
                raise UsageError("--aggregate-every has too many digits for --state-cost", "write fewer, or a count")
    return Held(
        np.zeros(workers, dtype=np.int64),
        np.full(workers, -_WARMUP, dtype=np.int64),
        np.zeros(workers * row, dtype=np.uint8),
        np.zeros(workers * blocks, dtype=np.uint8),
        row, blocks, float(cost.rate), cost.limit, float(cost.over), width, *ratios, first,
        np.zeros(1, dtype=np.int64), int(merged),
    )  # fmt: skip


def windows_of(held: Held, seq: I64, arrival: I64, origin: int) -> I64:
    """Return the windows of tuples, as `_window_of` does; `origin` is the arrival of the first measured one."""
    measured = seq >= held.measured_from
    if held.width:
        number: I64 = (arrival - np.where(measured, origin, 0)) // held.width
    else:
        warm = seq * held.warm_times // held.warm_length
        number = np.where(measured, (seq - held.measured_from) * held.times // held.length, warm)
    return np.where(measured, number, number - _WARMUP)


@njit
def _window_of(held: Any, seq: Any, arrival: Any) -> Any:
    """Return the number of a tuple's window; those of the warm-up are below 0."""
    if held.width == 0 and held.times == 0:
        return np.int64(0)
    if held.merged == 1:
        return np.int64(arrival)
    if seq < held.measured_from:
        if held.width > 0:
            return np.int64(arrival // held.width - _WARMUP)
        return np.int64(seq * held.warm_times // held.warm_length - _WARMUP)
    if held.width > 0:
        return np.int64((arrival - held.origin[0]) // held.width)
    return np.int64((seq - held.measured_from) * held.times // held.length)


@njit
def _release(held: Any, worker: Any) -> None:
    for block in range(held.blocks):
        place = worker * held.blocks + block
        if held.dirty[place] != 0:
            held.dirty[place] = 0
            first = worker * held.row + (block << 6)
            for byte in range(first, first + 64):
                held.bits[byte] = 0
    held.entries[worker] = 0


@njit
def _hold(held: Any, worker: Any, key: Any, seq: Any, arrival: Any) -> Any:
    window = _window_of(held, seq, arrival)
    if window > held.window[worker]:
        _release(held, worker)
        held.window[worker] = window
    place = worker * held.row + (key >> 3)
    bit = np.int64(1) << (key & 7)
    before = np.int64(held.bits[place])
    if before & bit == 0:
        held.bits[place] = before | bit
        held.dirty[worker * held.blocks + (key >> _BLOCK_BITS)] = 1
        held.entries[worker] += 1
    return held.entries[worker]


@njit(forceinline=True)
def hold(held: Any, worker: Any, key: Any, seq: Any, arrival: Any) -> Any:
    """Let a worker hold the key of a tuple, which it accepts; return its entries then, 0 where nothing is held."""
    if held is not None:
        return _hold(held, np.int64(worker), key, seq, arrival)
    return np.int64(0)


@njit(forceinline=True)
def slowness(held: Any, entries: Any) -> Any:
    """Return the factor of a service on a worker with so many entries; float64."""
    factor = 1.0 + held.rate * np.float64(entries)
    if entries > held.limit:
        factor *= held.over
    return factor


@njit
def _view(held: Any, view: Any, key: Any, seq: Any, arrival: Any) -> None:
    window = _window_of(held, seq, arrival)
    bit = np.int64(1) << (key & 7)
    for worker in range(view.shape[0]):
        entries = held.entries[worker] + 1
        if window > held.window[worker]:
            entries = np.int64(1)
        elif np.int64(held.bits[worker * held.row + (key >> 3)]) & bit != 0:
            entries = held.entries[worker]
        view[worker] *= slowness(held, entries)


@njit(forceinline=True)
def view_slowness(held: Any, view: Any, key: Any, seq: Any, arrival: Any) -> None:
    """Multiply the slowdowns that an oracle sees (float64[N] or None) by what the tuple would find on each worker."""
    if held is not None and view is not None:
        _view(held, view, key, seq, arrival)
