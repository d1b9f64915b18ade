"""RR: hot keys go round all workers, and whether the tail sees them."""

import numpy as np
import pytest

from tests.groupings.contexts_and_worker_changes import KEYS, changed, started


@pytest.mark.parametrize("separate", [True, False])
def test_whether_the_tail_sees_the_head(separate: bool) -> None:
    """Separately, cold keys go where PKG sends them if it sees nothing else."""
    state = started(f"rr:theta=1/20,separate={str(separate).lower()}", 7)
    tail = started("pkg", 7)
    hot = [0] * 3
    agreed = True
    for i, key in enumerate((np.random.default_rng(1).zipf(1.5, 3000) % KEYS).tolist()):
        if i == 2000:
            state, tail = (changed(each, [0, 1, 3, 5, 6, 7], joined=(7,), left=(2, 4)) for each in (state, tail))
        live = state.loads.live.tolist()
        place = live[int(state.pointer[i % 3])]
        worker = int(state.choose(i % 3, key, i))
        if state.choices[0] > 0:
            assert worker == place
            hot[i % 3] += 1
        else:
            agreed = agreed and worker == int(tail.choose(i % 3, key, i))
    assert min(hot) > 100
    assert agreed is separate
