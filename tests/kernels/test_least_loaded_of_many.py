"""The least loaded of many candidates: as a search from the first to the last, whatever was asked before."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgroup.kernels import least_loaded_of_many as kernel
from streamgroup.kernels.hash_placement import candidate_words, candidates
from streamgroup.kernels.least_loaded_of_many import least_of_many, make_cursors

RNG = np.random.default_rng(17)
LOW, HIGH = RNG.integers(-(1 << 63), (1 << 63) - 1, (2, 40), dtype=np.int64)
LIVE = np.array([worker for worker in range(60) if worker % 7 != 3], dtype=np.int64)
MOST = 64
LISTED = candidates(LOW, HIGH, MOST, LIVE).tolist()


@pytest.mark.parametrize("rows", [1 << 14, 4])
@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 1), st.integers(0, 39), st.integers(1, MOST), st.integers(0, 4)),
        max_size=150,
    ),
    st.lists(st.integers(0, 3), min_size=60, max_size=60),
)
def test_as_a_search_through_all(rows: int, steps: list[tuple[int, int, int, int]], start: list[int]) -> None:
    """Keys that share a row, numbers of candidates that rise and fall, loads that others raise, a floor or none."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel, "_MOST_ROWS", rows)
        cursors = make_cursors(candidate_words(LOW, HIGH), 2, MOST)
    assert len(cursors.kept) == min(rows, 64)
    load = np.array([start, start[::-1]], dtype=np.int64)
    for source, key, d, others in steps:
        worker = min(LISTED[key][:d], key=lambda one: load[source, one])
        floor = load[source, LIVE].min() - others % 2
        # Asked again where nothing has changed, it is the same.
        for _ in range(1 + others // 3):
            assert least_of_many(cursors, load, LIVE, source, key, d, floor) == worker
        for other in [worker, *LIVE[key : key + others]]:
            load[source, other] += 1


def test_one_key_alone() -> None:
    """As in a long stream of one hot key: its candidates are taken round and round."""
    cursors = make_cursors(candidate_words(LOW, HIGH), 1, MOST)
    load = np.zeros((1, 60), dtype=np.int64)
    for step in range(500):
        d = 33 if step % 100 < 90 else 37
        worker = min(LISTED[5][:d], key=lambda one: load[0, one])
        assert least_of_many(cursors, load, LIVE, 0, 5, d, 0) == worker
        load[0, worker] += 1
