"""Dynamic key grouping: when it checks, what it keeps, and when it grows."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from streamgroup.base.errors import UsageError
from streamgroup.groupings.dynamic_kg.baby_teenage_old_keys import CHECKED, COUNT, OLD, USED, item_of, space_of
from streamgroup.metrics.run_tables import summary
from streamgroup.replay.replay_trace import replay
from streamgroup.replay.scenario.grouping_selection import select
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.traces.trace import open_trace
from tests.groupings.contexts_and_worker_changes import KEYS, changed, started
from tests.groupings.dynamic_kg.send_and_look_up_widths import EAGER, key_at, send, widen, width
from tests.traces_by_hand import write_trace

SECOND = 1_000_000_000


def test_a_key_gets_a_worker_a_minute_and_none_before_it_is_old() -> None:
    state = started("dynamic_kg", 10, 1)
    key = key_at(state, 4)
    gained = []
    for now in range(0, 300 * SECOND, SECOND // 10):
        before = width(state, 0, key)
        worker = send(state, key, now)
        if width(state, 0, key) != before:
            gained.append((now / SECOND, worker))
    # Its first check, at its second tuple, is in the warm-up; a minute has to be over until the next.
    assert gained == [(60.2, 6), (120.3, 7), (180.4, 8), (240.5, 9)]
    assert state.choices[0] == 6


def test_hot_is_what_is_old() -> None:
    state = started("dynamic_kg", 10, 1)
    found = []
    for now in range(0, 62 * SECOND, SECOND):
        send(state, 3, now)
        found.append(int(state.choices[0]))
    assert found == [0] * 60 + [2] * 2


def test_a_timer_that_was_missed_runs_once_and_goes_on_to_old() -> None:
    state = started("dynamic_kg", 10, 1)
    for key in (1, 2, 2):
        send(state, key, 0)
    # Runs 1 to 5 were missed, the fourth of which goes on to Old: one run does both.
    state.tick(75 * SECOND)
    assert [int(space_of(state.spaces, item_of(state.spaces, 0, key))) for key in (1, 2)] == [OLD, OLD]
    assert state.timer[0] == 90 * SECOND
    send(state, 3, 75 * SECOND)
    # Runs 6 and 7: none goes on.
    state.tick(105 * SECOND)
    assert space_of(state.spaces, item_of(state.spaces, 0, 3)) == OLD - 1
    state.tick(120 * SECOND)
    assert space_of(state.spaces, item_of(state.spaces, 0, 3)) == OLD


def test_what_is_cut_from_baby_loses_its_count_and_keeps_its_width() -> None:
    state = started("dynamic_kg:expected_keys=10", 10, 1)
    for key in range(20):
        for _ in range(2 if key else 1):
            send(state, key, 0)
    widen(state, 0, 0, 4)
    assert state.spaces.item[item_of(state.spaces, 0, 0)][:2].tolist() == [1, -1]
    state.tick(15 * SECOND)
    assert item_of(state.spaces, 0, 0) == 0
    assert width(state, 0, 0) == 4
    assert state.spaces.source[0].tolist()[1:] == [1, 4, 0]
    assert state.detector_entries[0] == 5
    assert state.state_entries[0] == 5 + 1 + 10
    send(state, 0, 15 * SECOND)
    one = item_of(state.spaces, 0, 0)
    assert (state.spaces.item[one, COUNT], state.spaces.item[one, CHECKED]) == (1, -1)


@pytest.mark.parametrize(("truncate", "stay"), [("count", [2, 5, 6, 7, 8]), ("age", [0, 1, 2, 3, 4])])
def test_babies_stay_by_count_or_by_age(truncate: str, stay: list[int]) -> None:
    state = started(f"dynamic_kg:expected_keys=10,truncate={truncate}", 10, 1)
    for key, count in enumerate([1, 1, 9, 1, 1, 2, 2, 8, 2]):
        for _ in range(count):
            send(state, key, 0)
    state.tick(15 * SECOND)
    assert [key for key in range(9) if item_of(state.spaces, 0, key)] == stay
    # Whoever stays, the four most frequent of them are promoted.
    teenage = [key for key in stay if space_of(state.spaces, item_of(state.spaces, 0, key)) == OLD - 1]
    assert teenage == {"count": [2, 5, 6, 7], "age": [0, 1, 2, 3]}[truncate]


def test_baby_may_be_capped() -> None:
    state = started("dynamic_kg:baby_cap=3", 10)
    for key in range(50):
        send(state, key, 0)
        send(state, key, 0, source=1)
    assert state.spaces.source[:, 1].tolist() == [3, 3, 0]
    assert state.state_entries.tolist() == [13, 13, 10]


def test_whole_percents_make_more_loads_equal() -> None:
    found = {}
    for load in ("float", "int"):
        state = started(f"dynamic_kg:load={load}", 10, 1)
        key = key_at(state, 0)
        state.counts[0] = 100
        state.counts[0, :2] = 105, 104
        state.total[0] = state.counts[0].sum()
        found[load] = send(state, key, 0)
    # 10.41 and 10.31 percent.
    assert found == {"float": 1, "int": 0}


@pytest.mark.parametrize("load", ["float", "int"])
def test_widths_and_spaces_stay_within_their_bounds(load: str) -> None:
    """Whatever the reading: N_k in 2..n, Old <= 10 and Teenage <= 40 of 100 items."""
    state = started(f"dynamic_kg:load={load},{EAGER}", 12)
    rng = np.random.default_rng(1)
    widest = 0
    for now, key in enumerate(np.minimum(rng.zipf(1.3, 6000), KEYS - 1).tolist()):
        source = now % 3
        before = width(state, source, key)
        worker = send(state, key, now, source)
        place = (worker - int(state.base[key])) % 12
        assert place <= before
        assert 2 <= width(state, source, key) <= 12
        widest = max(widest, width(state, source, key))
        assert state.spaces.source[source, 2] <= 40
        assert state.spaces.source[source, 3] <= 10
    assert widest > 3
    assert state.total.tolist() == [2000] * 3
    assert np.array_equal(state.counts.sum(axis=1), state.total)
    assert state.detector_entries[0] == state.spaces.pool[USED] == state.spaces.source[:, 1:].sum()
    kept = [
        int(((slots[:, 0] - 1) % 3 == source).sum())
        for slots in [state.widths[state.widths[:, 0] > 0]]
        for source in range(3)
    ]
    assert state.state_entries.tolist() == (state.spaces.source[:, 1:].sum(axis=1) + kept + 12).tolist()
    assert state.more_widths[0] == sum(kept)


def test_it_grows_and_nothing_is_lost() -> None:
    state = started(f"dynamic_kg:{EAGER}", 10)
    for now in range(300):
        send(state, now % 7, now, now % 3)
    widen(state, 0, 499, 5)
    more = int(state.more_widths[0])
    for _ in range(4):
        room = int(state.room[0])
        lasting = {
            (source, key): (width(state, source, key), state.spaces.item[one].tolist() if one else None)
            for source in range(3)
            for key in range(KEYS)
            for one in [item_of(state.spaces, source, key)]
        }
        grown = state.grown()
        assert grown.room[0] > room
        assert grown.room[0] == min(len(grown.spaces.item) - 1 - grown.spaces.pool[USED], len(grown.widths) // 2 - more)
        state = grown
        assert lasting == {
            (source, key): (width(state, source, key), state.spaces.item[one].tolist() if one else None)
            for source in range(3)
            for key in range(KEYS)
            for one in [item_of(state.spaces, source, key)]
        }


def test_when_workers_come_and_go_widths_are_cut_and_counts_stay() -> None:
    state = started("dynamic_kg", 6)
    for key in range(40):
        send(state, key, 0)
    for key, workers in ((1, 3), (2, 5), (3, 6)):
        widen(state, 0, key, workers)
    before = state.counts.copy()
    after = changed(state, [0, 2, 5, 6], joined=(6,), left=(1, 3, 4))
    assert [width(after, 0, key) for key in range(4)] == [2, 3, 4, 4]
    assert after.counts[0, [0, 2, 5]].tolist() == before[0, [0, 2, 5]].tolist()
    assert after.counts[0, 6] == before[0, [0, 2, 5]].min()
    assert after.total.tolist() == after.counts[:, [0, 2, 5, 6]].sum(axis=1).tolist()
    assert after.threshold[0] == 25.0 + 5.0
    assert after.state_entries[0] == 40 + 3 + 4
    live = after.live.tolist()
    key = key_at(after, 3)
    # Its workers follow one another in the list of the live, around the end.
    widen(after, 0, key, 3)
    after.counts[0, live] = [4, 5, 9, 9]
    assert send(after, key, 1) == 0
    # A width that is no more than the first is not kept.
    two = changed(after, [2, 6], left=(0, 5))
    assert [width(two, 0, key) for key in range(4)] == [2, 2, 2, 2]
    assert two.more_widths[0] == 0
    assert two.state_entries[0] == two.spaces.source[0, 1:].sum() + 2
    # The state before the change is as it was.
    assert np.array_equal(state.counts, before)
    assert [width(state, 0, key) for key in range(4)] == [2, 3, 5, 6]


@pytest.mark.parametrize("text", [EAGER, EAGER + ",load=int", EAGER + ",initial=3,expected_keys=12,baby_cap=20"])
def test_compiled_equals_interpreted_where_much_happens(tmp_path: Path, text: str) -> None:
    rng = np.random.default_rng(2)
    # Enough keys to grow several times, and a hot one.
    labels = np.where(rng.random(20_000) < 0.6, 0, rng.integers(0, 9000, 20_000)).tolist()
    trace = open_trace(write_trace(tmp_path / "t", [(at, b"%d" % label, None) for at, label in enumerate(labels)]))
    periods = text.replace("teenage_period=1ns", "teenage_period=2ms").replace("old_period=4ns", "old_period=4ms")
    options = ReplayOptions(
        grouping=f"dynamic_kg:{periods}", workers=9, sources=3, join=("5ms", "12ms"), leave=("7ms:2",)
    )
    found = []
    for interpreted in (False, True):
        folder = tmp_path / str(interpreted)
        outcome = replay(trace, options, log_directory=folder, interpreted=interpreted)
        found.append((pq.read_table(folder), summary(outcome)))
    assert found[0][0] == found[1][0]
    assert found[0][1]["source_state_entries"] == found[1][1]["source_state_entries"]
    assert found[0][1]["choices_max"] == found[1][1]["choices_max"] > 3


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("old_period=20s", "multiple of teenage_period"),
        ("teenage_period=0", "above 0"),
        ("old_period=0", "multiple"),
        ("warmup=15", "not a duration"),
        ("expected_keys=9", "10"),
        ("load=half", "'float' or 'int'"),
        ("initial=0", "1"),
    ],
)
def test_parameters_that_make_no_sense(text: str, what: str) -> None:
    with pytest.raises(UsageError, match=what):
        select(f"dynamic_kg:{text}")


def test_settings_show_in_the_name() -> None:
    selection: Any = select("dynamic_kg:warmup=1s,load=int")
    assert selection.text == "dynamic_kg:warmup=1s,load=int"
