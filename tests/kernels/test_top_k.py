"""The best of many, and all in order, against sorting."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgroup.kernels.ordered.top_k import in_order, keep_best


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 9)), max_size=30, unique=True), st.integers(1, 12))
def test_the_best_stay_and_come_out_in_order(offers: list[tuple[int, int]], limit: int) -> None:
    rows = np.zeros((limit, 3), dtype=np.int64)
    size, left_out = 0, []
    for what, (weight, tie) in enumerate(offers):
        loser = keep_best(rows, size, limit, weight, tie, what)
        if loser < 0:
            size += 1
        else:
            left_out.append(loser)
    in_order(rows, size)
    best = sorted(range(len(offers)), key=lambda what: (-offers[what][0], offers[what][1]))
    assert rows[:size, 2].tolist() == best[:limit]
    assert sorted(left_out) == sorted(best[limit:])
    assert [tuple(row) for row in rows[:size, :2].tolist()] == [offers[what] for what in best[:limit]]
