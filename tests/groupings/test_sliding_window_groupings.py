"""Groupings that look at what a source sent in a sliding window, by hand: cm, cam, dagreedy and dalton."""

from typing import Any

import numpy as np
import pytest

from streamgroup.base.compiling.plain_python import view
from streamgroup.base.errors import UsageError
from streamgroup.groupings.dalton.q_value_rows import FULL, HELD, KEY, NEW, SPLIT
from streamgroup.kernels.counts.sent_in_sliding_window import PAIRS, TOTAL
from streamgroup.replay.scenario.grouping_selection import select
from tests.groupings.contexts_and_worker_changes import changed, context, started

NS = 1_000_000
# Slides of 1 ms, windows of 4.
SHORT = "window=4ms,slide=1ms"


def with_candidates(state: Any, pairs: dict[int, tuple[int, int]]) -> Any:
    """Give keys candidates by hand."""
    candidates = state.candidates.copy()
    for key, pair in pairs.items():
        candidates[key] = pair
    return state._replace(candidates=candidates)


def first_at(state: Any, firsts: dict[int, int]) -> Any:
    first = state.first.copy()
    for key, worker in firsts.items():
        first[key] = worker
    return state._replace(first=first)


def send(state: Any, *tuples: tuple[int, float], source: int = 0) -> list[int]:
    """Choose for keys at times in ms; interpreted, since compiling takes longer."""
    found = []
    plain = view(state)
    for key, at in tuples:
        now = int(at * NS)
        if hasattr(state, "tick"):
            plain.tick(now)
        found.append(int(plain.choose(source, key, now)))
    return found


def row_of(state: Any, source: int, key: int) -> int:
    """The number of a key's row, -1 if it has none."""
    found = np.flatnonzero(state.rows.row[source, :, KEY] == key)
    return int(found[0]) if len(found) else -1


def loaded(text: str) -> Any:
    """Worker 0 was sent 10 tuples of keys 0 and 1, worker 1 one each of keys 2, 3 and 4."""
    pairs = {0: (0, 0), 1: (0, 0), 2: (1, 1), 3: (1, 1), 4: (1, 1), 5: (0, 1), 6: (1, 0)}
    state = with_candidates(started(f"{text},{SHORT}" if ":" in text else f"{text}:{SHORT}", 2, 1), pairs)
    send(state, *[(0, 0.0)] * 9, (1, 0), (2, 0), (3, 0), (4, 0))
    assert state.windows.tuples.tolist() == [[10, 3]]
    assert state.windows.distinct.tolist() == [[2, 3]]
    return state


def test_cm_takes_the_worker_with_fewer_distinct_keys_whatever_their_tuples() -> None:
    """CAM-01 of the worked examples."""
    assert send(loaded("cm"), (5, 1)) == [0]
    assert send(loaded("cm"), (6, 1)) == [0]
    # D/2 + T/8: 2/2 + 10/8 against 3/2 + 3/8.
    assert send(loaded("cm:score=load"), (5, 1)) == [1]


def test_cam_keeps_a_key_where_it_was_sent_and_sends_a_new_one_where_less_was_sent() -> None:
    assert send(with_candidates(loaded("cam"), {0: (1, 0)}), (0, 1)) == [0]
    assert send(loaded("cam"), (5, 1), (5, 1)) == [1, 1]
    assert send(loaded("cam:unseen=keys"), (5, 1), (6, 1)) == [0, 1]


def test_cam_forgets_a_key_that_was_not_sent_for_a_window() -> None:
    """The last tuple of key 0 is in slide 0: slide 3 still sees it, slide 4 does not."""
    kept = with_candidates(loaded("cam"), {0: (1, 0)})
    send(kept, (2, 2.9))
    assert send(kept, (0, 3.999)) == [0]
    lost = with_candidates(loaded("cam"), {0: (1, 0)})
    send(lost, *[(2, 2.9)] * 3)
    assert lost.windows.distinct.tolist() == [[2, 3]]
    send(lost, (2, 4.0))
    assert lost.windows.tuples.tolist() == [[0, 4]]
    assert lost.windows.distinct.tolist() == [[0, 1]]
    assert lost.state_entries.tolist() == [3]
    # Worker 0 has nothing: it is there again for that reason.
    assert send(lost, (0, 4.0)) == [0]
    assert lost.windows.clock[0, [PAIRS, TOTAL]].tolist() == [2, 5]


def test_ties_go_to_the_first_candidate() -> None:
    for text in ("cm", "cm:score=load", "cam", "cam:unseen=keys"):
        state = with_candidates(started(text, 3, 1), {0: (2, 1), 1: (1, 2)})
        assert send(state, (0, 0)) == [2], text


def test_a_window_after_a_long_pause_is_empty() -> None:
    state = loaded("cm")
    send(state, (0, 1e9))
    assert state.windows.tuples.tolist() == [[1, 0]]
    assert not state.windows.slide_distinct.sum(axis=1)[0, 1]


@pytest.mark.parametrize("name", ["cm", "cam", "dagreedy", "dalton"])
def test_a_joiner_starts_at_the_smallest_counts_and_they_leave_with_their_slide(name: str) -> None:
    state = started(f"{name}:{SHORT}", 2, 1)
    send(state, *[(key % 7, 0.5) for key in range(40)])
    send(state, *[(key % 7, 1.5) for key in range(40)])
    before = state.windows.tuples.copy()
    after = changed(state, [0, 1, 2], joined=(2,), sources=1)
    assert after.windows.tuples[0].tolist() == [*before[0].tolist(), before[0].min()]
    assert after.windows.clock[0, TOTAL] == before.sum() + before.min()
    assert np.array_equal(state.windows.tuples, before)
    send(after, (0, 5.0))
    assert after.windows.tuples.sum() == after.windows.clock[0, TOTAL] == 1


@pytest.mark.parametrize("name", ["cm", "cam", "dagreedy", "dalton"])
def test_windows_grow(name: str) -> None:
    state = started(f"{name}:{SHORT}", 3, 1)
    room = int(state.room[0])
    send(state, *[(key, 0.5) for key in range(100)])
    assert state.room[0] == room - 100
    larger = state.grown()
    assert larger.room[0] == 2 * room - 100
    assert larger.room is larger.windows.room
    send(larger, *[(key, 0.6) for key in range(200)])
    assert larger.windows.tuples.sum() == 300


@pytest.mark.parametrize(
    "text", ["cm:window=1s,slide=300ms", "cam:window=1s,slide=2s", "dalton:window=11s,slide=10ms", "dagreedy:slide=0s"]
)
def test_what_windows_may_be(text: str) -> None:
    with pytest.raises(UsageError, match=r"window|slide"):
        select(text)


def scored(loads: list[int], has_key: list[int]) -> Any:
    """One source has sent these loads, key 0 among them to some workers, and key 0 is hot in slide 1."""
    state = first_at(started(f"dagreedy:{SHORT},theta=0.001", len(loads), 1), {})
    for worker, load in enumerate(loads):
        key = 0 if worker in has_key else worker + 1
        state = first_at(state, {key: worker})
        send(state, *[(key, 0.5)] * load)
    return state


def test_dagreedy_weighs_locality_against_load() -> None:
    """DAG-01: 18, 22 and 60 tuples, a mean of 20 with two more idle workers; scores 0.05, 0.45, -0.5."""
    loads = [18, 22, 60, 0, 0]
    # With the idle ones at 0.5 the first of them is best.
    assert send(scored(loads, [1, 2]), (0, 1.5)) == [3]
    # Mean (18 + 22 + 20) / 3 = 20: 0.05, 0.45, 0.
    assert send(scored([18, 22, 20], [1]), (0, 1.5)) == [1]
    # Where the key is and 20 above the least: equal, so the lowest id.
    assert send(scored([30, 20, 10], [0]), (0, 1.5)) == [0]
    assert send(scored([10, 20, 30], [2]), (0, 1.5)) == [0]
    assert send(scored([31, 19, 10], [0]), (0, 1.5)) == [2]


def test_a_key_is_hot_above_theta_to_the_end_of_the_next_slide() -> None:
    """Slide 0 has 10 tuples, so with theta = 0.2 the third of a key in slide 1 makes it hot, to the end of slide 2."""
    state = first_at(started(f"dagreedy:{SHORT},theta=0.2", 3, 1), {0: 1})
    hot = []
    for at in [0.5] * 10 + [1.5] * 4 + [2.5, 3.5]:
        send(state, (0, at))
        hot.append(int(state.choices[0]))
    assert hot == [0] * 10 + [0, 0, 3, 3] + [3, 3]
    # Slide 2 has one tuple, of which the one in slide 3 is more than 0.2; after an empty slide nothing becomes hot.
    send(state, (0, 6.5), (0, 6.5))
    assert state.choices[0] == 0


def dalton(text: str, workers: int, sources: int = 1, delay: int = 0) -> Any:
    params = select(f"dalton:{SHORT},{text}").params
    told = context(list(range(workers)), sources, params=params)._replace(control_delay=delay)
    return select("dalton").module.start(params, told)


def test_dalton_exploits_the_first_worker_and_learns_the_reward() -> None:
    """Without exploring all tuples of key 0 go to F_1; of two workers it has all, so load is 1/2 and replicas 1/2."""
    state = first_at(dalton("epsilon=0,theta=0.2", 2), {0: 1})
    assert send(state, *[(0, 0.5)] * 10, *[(0, 1.5)] * 3) == [1] * 13
    assert state.rows.state[0].tolist() == [1, 0, 2]
    reward = -(0.5 * ((13.0 - 6.5) / 13.0) + 0.5 * (1 / 2))
    assert state.rows.value[0, 0].tolist() == [NEW, NEW * (1.0 - 0.1) + 0.1 * reward]
    assert state.state_entries.tolist() == [2 * 2 + 1]


def test_dalton_reward_of_the_worked_example() -> None:
    """DAL-01: L = 30, a mean of 20, three holders among ten workers, Q = -2: the reward is -0.316667."""
    state = dalton("epsilon=0,theta=0.001", 10)
    # 199 tuples in slide 0: key 0 on workers 1 to 3, and another key on each worker. Key 0 is hot in slide 1.
    for worker, load in enumerate([20, 29, 20, 20, 20, 20, 20, 20, 20, 10]):
        state = first_at(state, {0: worker, worker + 1: worker})
        held = int(1 <= worker <= 3)
        send(state, *[(0, 0.5)] * held, *[(worker + 1, 0.5)] * (load - held))
    assert send(first_at(state, {0: 1}), (0, 1.5)) == [1]
    assert (state.windows.tuples[0, 1], state.windows.clock[0, TOTAL]) == (30, 200)
    assert state.rows.value[0, 0, 1] == pytest.approx(-1.831667, abs=1e-6)


def test_dalton_explores_until_a_key_is_full() -> None:
    """With just one hot key, being full is 100 % of the rows: the split grows to its end, where exploring stays."""
    state = dalton("epsilon=1,theta=0.2,most_split=3", 8)
    send(state, *[(0, 0.5)] * 10)
    found = send(state, *[(0, 1 + 0.02 * i) for i in range(40)], *[(0, 2 + 0.02 * i) for i in range(40)])
    assert state.rows.state[0, SPLIT] == 3
    assert state.rows.row[0, 0, FULL] == 1
    assert 3 <= len(set(found[20:])) <= 4


def test_a_row_is_free_again_when_its_key_is_cold() -> None:
    state = dalton("theta=0.2,capacity=1", 4)
    send(state, *[(0, 0.5)] * 10, *[(0, 1.5)] * 5, *[(1, 1.5)] * 5)
    # The only row is taken, so key 1 stays cold.
    assert [row_of(state, 0, key) for key in (0, 1)] == [0, -1]
    send(state, (2, 2.5), (2, 3.5))
    assert row_of(state, 0, 0) == -1
    assert state.rows.state[0, HELD] == 1
    assert row_of(state, 0, 2) == 0


def test_sources_merge_by_their_counts() -> None:
    """Source 0 sent 6 tuples of key 0 in slide 1, source 1 sent 3; the table comes back two delays later."""
    state = first_at(dalton("epsilon=0,theta=0.2", 2, sources=3, delay=100_000), {0: 1})
    for source in (0, 1):
        send(state, *[(0, 0.5)] * 10, source=source)
    send(state, *[(0, 1.5)] * 6, source=0)
    send(state, *[(0, 1.5)] * 3, source=1)
    one, other = state.rows.value[:2, 0, 1].tolist()
    # The end of slide 0, from which there was nothing to report: two messages, and three back.
    assert state.control_messages.tolist() == [5]
    assert state.control_bytes.tolist() == [0]
    view(state).tick(2 * NS + 199_999)
    assert state.control_messages.tolist() == [10]
    assert state.control_bytes.tolist() == [(2 + 3) * (16 + 8 * 2)]
    assert state.rows.value[0, 0, 1] == one
    view(state).tick(2 * NS + 200_000)
    merged = (6.0 * one + 3.0 * other) / 9.0
    assert state.rows.value[:, 0, 1].tolist() == [merged] * 3
    assert state.rows.value[:, 0, 0].tolist() == [NEW] * 3
    assert state.rows.state[:, HELD].tolist() == [1, 1, 1]
    assert state.state_entries.tolist() == [5, 5, 4]


def test_a_table_that_takes_longer_than_a_slide_is_refused() -> None:
    with pytest.raises(UsageError, match="two control delays"):
        dalton("theta=0.2", 2, sources=2, delay=500_000)
    dalton("sync=false", 2, sources=2, delay=500_000)


@pytest.mark.parametrize("name", ["cm", "cam", "dagreedy", "dalton"])
def test_keys_that_left_the_window_make_room_and_too_many_in_it_are_refused(name: str, monkeypatch: Any) -> None:
    monkeypatch.setattr("streamgroup.kernels.counts.sent_in_sliding_window._RECORDS", 64)
    state = started(f"{name}:{SHORT}", 3, 1)
    # One key each 0.2 ms: 20 of 64 are in the window.
    send(state, *[(key, key / 5) for key in range(64)])
    assert state.room[0] == 0
    state = state.grown()
    assert len(state.windows.record) == 64
    assert state.room[0] >= 44
    send(state, *[(100 + key, 13.0) for key in range(44)])
    assert len(state.grown().windows.record) == 128
    monkeypatch.setattr("streamgroup.kernels.counts.sent_in_sliding_window.MOST_CELLS", 1000)
    with pytest.raises(UsageError, match=f"{name}: the keys of a window"):
        state.grown()


@pytest.mark.parametrize(
    ("text", "problem"),
    [("cm", "slides of"), ("cam", "slides of"), ("dagreedy", "slides of"), ("dalton:window=1s,slide=1s", "rows of")],
)
def test_windows_that_joiners_make_too_large_are_refused(text: str, problem: str) -> None:
    state = started(text, 2, 300)
    with pytest.raises(UsageError, match=problem):
        changed(state, list(range(30_000)), joined=tuple(range(2, 30_000)), sources=300)


def test_dalton_has_no_table_to_merge_into_without_sync() -> None:
    state = started(f"dalton:sync=false,{SHORT}", 2, 3)
    assert changed(state, [0, 1, 2], joined=(2,)).table.value.shape == state.table.value.shape == (1, 2)
