"""POSG: its sketches in flight, their size, and how many sources it is for."""

import numpy as np
import pytest

from streamgroup.base.errors import UsageError
from streamgroup.groupings.posg.scheduler import EPOCH, SEND_ALL
from streamgroup.replay.scenario.grouping_selection import select
from tests.groupings.contexts_and_worker_changes import changed, started
from tests.groupings.posg.test_posg import A, c_hat, send, serve, states


def test_sketches_of_a_worker_may_all_be_on_the_way() -> None:
    state = started("posg:batch=1,matrix_delay=1s", 2, sources=3)
    sent = []
    for place in range(6):
        while state.room[0] < 1:
            state = state.grown()
        send(state, A)
        serve(state, 0, A, 10 * (place + 1), 10)
        sent.append(int(state.control_messages[0]))
    # In turn a snapshot, and the sketch to three sources: nothing has changed since.
    assert sent == [0, 3, 3, 6, 6, 9]
    assert state.flight.ring[1] == 3


def test_none_is_lost_and_they_come_as_they_were_sent() -> None:
    """Each epoch's estimate is that of the sketch that came: 10 ns, then 20, and so on."""
    state = started("posg:batch=1,matrix_delay=1us", 1, sources=1)
    for place in range(1, 7):
        for step in range(2):
            while state.room[0] < 1:
                state = state.grown()
            send(state, A)
            serve(state, 0, A, 100 * (2 * place + step), 10 * place)
    assert int(state.control_messages[0]) == state.flight.ring[1] == 6
    for place in range(1, 7):
        due = 100 * (2 * place + 1) + 1000
        state.tick(due - 1)
        assert state.plan[0, EPOCH] == place - 1
        state.tick(due)
        assert (state.plan[0, EPOCH], states(state)) == (place, [SEND_ALL])
        before = c_hat(state)[0]
        send(state, A)
        assert c_hat(state)[0] - before == 10 * place
    assert state.flight.ring[1] == 0


def test_room_is_enough_for_what_may_be_in_flight() -> None:
    """Tuples pile up and then all finish at once: the room said at the start of that was for these, too."""
    rng = np.random.default_rng(2)
    state, queued, growths, most = started("posg:batch=2,mu=1e9,matrix_delay=50us", 3, sources=2), [0, 0, 0], 0, 0
    now = 0
    for _ in range(60):
        for _ in range(int(rng.integers(1, 40))):
            while state.room[0] < 1:
                state, growths = state.grown(), growths + 1
            queued[send(state, int(rng.integers(0, 9)), int(rng.integers(0, 2)), now)] += 1
        for _ in range(int(rng.integers(0, 60))):
            worker = int(rng.integers(0, 3))
            if queued[worker]:
                queued[worker] -= 1
                now += int(rng.integers(0, 40))
                state.tick(now - 1)
                before = int(state.room[0])
                serve(state, worker, int(rng.integers(0, 9)), now, int(rng.integers(0, 90)))
                assert state.room[0] >= before >= 0
                assert 0 <= state.flight.ring[1] <= len(state.flight.due)
                most = max(most, int(state.flight.ring[1]))
    assert growths > 2
    assert most > 6
    # What is counted along the way is what can be counted anew.
    again = changed(state, [0, 1, 2])
    assert again.room[0] == state.room[0]
    assert changed(state, [0, 1], left=(2,)).room[0] >= state.room[0]


def test_several_sources_are_told() -> None:
    params = select("posg").params
    assert params.default_sources() == 1
    (line,) = params.doubts(10, 2, 1000)
    assert line.startswith("2 sources: the paper has one scheduler")
    assert line.endswith("try --sources 1")


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("posg", (4, 54)),
        ("posg:eps=0.05", (4, 55)),
        ("posg:delta=0.25", (2, 54)),
        ("posg:eps=0.7,delta=0.25", (2, 4)),
        ("posg:eps=0.7,rows=3", (3, 4)),
        ("posg:columns=9,delta=0.1", (4, 9)),
    ],
)
def test_the_size_of_a_sketch(text: str, size: tuple[int, int]) -> None:
    rows, columns = size
    assert started(text, 2).cells.shape == (2, rows * columns, 2)
    derived = select(text).params.facts(2)
    assert derived == {
        **({"sketch_rows": rows} if "delta" in text else {}),
        **({"sketch_columns": columns} if "eps" in text else {}),
    }


@pytest.mark.parametrize("text", ["eps=0.05,columns=54", "delta=0.1,rows=4"])
def test_a_size_is_given_one_way(text: str) -> None:
    with pytest.raises(UsageError, match="two ways to size a sketch"):
        select(f"posg:{text}")
