"""Lag: cells of time are joined alike before the accounting and within it."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from streamgroup.kernels.compiling.call_kernel import interpreted
from streamgroup.replay.accounting.account import LAG_CELLS, make_meters, widen
from streamgroup.replay.accounting.worker_lag import make_room


@given(st.integers(1, 3), st.integers(0, LAG_CELLS - 1), st.integers(0, 2**62), st.integers(0, 2**32 - 1))
def test_cells_are_joined_alike(workers: int, cell: int, until: int, seed: int) -> None:
    one, other = make_meters(workers).lag, make_meters(workers).lag
    drawn = np.random.default_rng(seed).integers(0, 9, (3, len(one.sent)))
    for lag in (one, other):
        lag.sent[:], lag.left[:], lag.until[:] = drawn
        lag.cell[0] = cell
    make_room(one, until)
    interpreted(widen, other, until)
    assert until >> int(one.shift[0]) < LAG_CELLS
    for found, wanted in zip(one, other, strict=True):
        assert found.tolist() == wanted.tolist()
    assert [one.sent.sum(), one.left.sum()] == drawn.sum(axis=1).tolist()[:2]
