"""Consistent Grouping: bounded bins, probes, and bins that change hands."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from streamgroup.base.errors import UsageError
from streamgroup.groupings.consistent_grouping import bins
from streamgroup.groupings.consistent_grouping.bins import BUSY, IDLE
from streamgroup.kernels import hash_placement
from tests.groupings.contexts_and_worker_changes import KEYS, changed, context, started

EXAMPLES = {one["id"]: one for one in json.loads((Path(__file__).parents[2] / "data" / "examples.json").read_text())}
MASK = (1 << 64) - 1
SECOND = 1_000_000_000


def queue_of(owners: bins.Owners, which: int) -> list[int]:
    """Walk through a queue; its links must agree in both directions."""
    found, row, before = [], int(owners.worker[which, 4]), which
    while row != which:
        assert owners.worker[row, 3] == before
        assert owners.worker[row, 2] == which
        found.append(row - 3)
        before, row = row, int(owners.worker[row, 4])
    assert owners.worker[which, 3] == before
    return found


def skewed(count: int, exponent: float) -> list[int]:
    return (np.random.default_rng(8).zipf(exponent, count) % KEYS).tolist()


def probes(key: int, count: int, total: int) -> list[int]:
    told = context([0])
    return [
        int(hash_placement.candidate(told.hash_lo[key : key + 1], told.hash_hi[key : key + 1], j, total)[0])
        for j in range(1, count + 1)
    ]


def test_the_worked_example_of_probing() -> None:
    example = EXAMPLES["CG-01"]
    state = started("consistent_grouping:virtual=2,eps=0.25", 2, sources=1)
    wanted = list(example["input"]["probe_sequence"].values())
    rng = np.random.default_rng(2)
    for key, sequence in enumerate(wanted):
        while True:
            start, step = (int(word) for word in rng.integers(0, 2**63, 2))
            state.hashes[key] = start, step
            words = np.array([(start + j * step) & MASK for j in range(1, 5)], dtype=np.uint64)
            if hash_placement.place(hash_placement.mix64(words), 4).tolist() == sequence:
                break
    assert state.owners.owner.tolist() == example["input"]["owner"]
    for name, (place, worker) in zip(example["input"]["stream"], example["expected"]["bin_worker"], strict=True):
        before = state.load.copy()
        assert state.choose(0, "xy".index(name), 0) == worker
        assert np.flatnonzero(state.load - before)[-1] % 4 == place
    assert state.load[0].tolist() == example["expected"]["bins"]


def test_the_worked_example_of_signals() -> None:
    example = EXAMPLES["CG-02"]
    owners = bins.make_owners(np.arange(2), 2)
    assert {str(worker): bins.bins_of(owners, worker) for worker in (0, 1)} == example["input"]["bins_of"]
    for text in example["input"]["signals"]:
        what, worker = text.split()
        bins.signal(owners, int(worker), {"busy": BUSY, "idle": IDLE}[what])
    assert {str(worker): bins.bins_of(owners, worker) for worker in (0, 1)} == example["expected"]["bins_of"]
    assert owners.owner.tolist() == [0, 1, 1, 1]
    assert queue_of(owners, IDLE) == example["expected"]["idle_queue"]
    assert queue_of(owners, BUSY) == example["expected"]["busy_queue"]


@pytest.mark.parametrize(("exponent", "eps"), [(1.3, 0.1), (2.5, 0.1), (2.5, 0.01), (4.0, 3.0)])
def test_the_first_bin_with_room_is_found_though_searches_are_remembered(exponent: float, eps: float) -> None:
    state = started(f"consistent_grouping:virtual=3,eps={eps}", 5, sources=2)
    total, least_loaded = 15, 0
    order = {key: probes(key, total, total) for key in range(KEYS)}
    load, sent = [[0] * total for _ in range(2)], [0, 0]
    for i, key in enumerate(skewed(6000, exponent)):
        source = i % 2
        sent[source] += 1
        limit = ((1.0 + eps) / total) * sent[source]
        place = next((place for place in order[key] if float(load[source][place]) < limit), -1)
        if place < 0:
            least_loaded += 1
            place = load[source].index(min(load[source]))
        assert load[source][place] < limit
        load[source][place] += 1
        assert state.choose(source, key, 0) == place // 3
    assert state.load.tolist() == load
    assert least_loaded > 500 if exponent > 2 and eps < 1 else least_loaded < 5


def test_no_bin_is_above_its_bound() -> None:
    state = started("consistent_grouping:eps=0.1", 6, sources=1)
    for sent, key in enumerate(skewed(6000, 1.6), start=1):
        state.choose(0, key, 0)
        assert state.load.max() < 1.1 * sent / 60 + 1
    assert state.load.max() <= 1.1 * 100 + 1


def test_a_worker_waits_for_what_it_signalled_last() -> None:
    owners = bins.make_owners(np.arange(4), 2)
    for worker in (2, 0, 2, 3):
        bins.signal(owners, worker, IDLE)
    assert queue_of(owners, IDLE) == [2, 0, 3]
    # It leaves the one queue, finds the first of the others, and does not wait.
    bins.signal(owners, 0, BUSY)
    assert (queue_of(owners, IDLE), queue_of(owners, BUSY)) == ([3], [])
    assert bins.bins_of(owners, 2) == [4, 5, 1]
    # One with a single bin keeps it, and another one still waits.
    bins.signal(owners, 0, BUSY)
    assert (queue_of(owners, IDLE), queue_of(owners, BUSY)) == ([3], [])
    bins.signal(owners, 3, BUSY)
    bins.signal(owners, 0, BUSY)
    assert (queue_of(owners, IDLE), queue_of(owners, BUSY)) == ([], [3])
    # The bin that it got last goes first.
    bins.signal(owners, 2, BUSY)
    bins.signal(owners, 1, IDLE)
    bins.signal(owners, 1, IDLE)
    assert bins.bins_of(owners, 1) == [2, 3, 7, 1]
    assert (queue_of(owners, IDLE), queue_of(owners, BUSY)) == ([], [])


def served(state: Any, worker: int, arrival: int, start: int, finish: int) -> None:
    """Let a worker have been sent a tuple and finish it."""
    state.observe(0, 0, worker, arrival)
    state.tick(finish - 1)
    state.executed(worker, 0, arrival, start, finish)


def next_signals(state: Any) -> list[int]:
    return state.signals.signalled[state.signals.clock[2]].tolist()


def test_workers_say_whether_they_are_busy_or_idle() -> None:
    state = started("consistent_grouping:window=1s,busy=2,idle=0.1,signal_delay=5s", 6)
    # 1 works to the brim, 2 rests for 11 %, 3 for 9 %, 4 has one tuple that does not end, 0 and 5 have nothing.
    served(state, 2, 0, 0, 890_000_000)
    served(state, 3, 0, 0, 910_000_000)
    served(state, 1, 0, 0, SECOND)
    state.observe(0, 0, 4, 0)
    state.tick(SECOND - 1)
    assert state.control_messages[0] == 0
    state.tick(SECOND)
    assert next_signals(state) == [IDLE, 0, IDLE, 0, 0, IDLE]
    # To each of three sources.
    assert state.control_messages[0] == 3 * 3
    assert state.control_bytes[0] == 8 * 9


def test_a_worker_is_busy_by_the_wait_of_its_last_tuple_in_the_window() -> None:
    state = started("consistent_grouping:window=1s,busy=2,signal_delay=0", 3)
    for worker, first in ((0, 1), (1, 0)):
        state.observe(0, 0, worker, 0)
        state.observe(0, 0, worker, 0)
        state.signals.counters[worker, 1] += first
    state.tick(3 * SECOND)
    state.executed(0, 0, 0, 2 * SECOND + 10, 3 * SECOND + 20)
    state.executed(1, 0, 0, 2 * SECOND, 3 * SECOND + 30)
    before = state.control_messages[0]
    state.tick(4 * SECOND)
    # 0 waited for longer than two windows, 1 just for two; 2 is idle and gets the last bin of 0.
    assert state.control_messages[0] - before == 2 * 3
    assert [len(bins.bins_of(state.owners, worker)) for worker in range(3)] == [9, 10, 11]
    assert state.owners.owner[9] == 2


def test_missed_instants_are_made_up_for_once_with_the_last_window() -> None:
    state = started("consistent_grouping:window=1s,signal_delay=10s", 2)
    served(state, 0, 0, 0, SECOND)
    served(state, 1, 0, 0, 7 * SECOND + 1)
    # Of seven instants the last one came before that: 0 had done nothing since 6 s, 1 was at work.
    assert state.signals.clock[3] == 1
    state.tick(9 * SECOND + 5)
    assert state.signals.clock[3] == 2
    assert state.signals.signalled[:2].tolist() == [[IDLE, 0], [IDLE, IDLE]]
    assert state.control_messages[0] == 3 * 3


def test_signals_take_their_time() -> None:
    state = started("consistent_grouping:window=1s,signal_delay=1500ms,virtual=2", 2)
    state.observe(0, 0, 0, 0)
    state.signals.counters[0, 1] += 5
    state.tick(3 * SECOND)
    state.executed(0, 0, 0, 3 * SECOND - 1, 3 * SECOND + 10)
    state.tick(4 * SECOND)
    assert bins.bins_of(state.owners, 0) == [0, 1]
    state.tick(5_500_000_000 - 1)
    assert bins.bins_of(state.owners, 0) == [0, 1]
    state.tick(5_500_000_000)
    assert bins.bins_of(state.owners, 1) == [2, 3, 1]


def test_bins_of_a_leaver_go_to_those_with_the_fewest() -> None:
    state = started("consistent_grouping:virtual=4", 3)
    bins.signal(state.owners, 1, IDLE)
    after = changed(state, [0, 2, 3], joined=(3,), left=(1,))
    assert [bins.bins_of(after.owners, worker) for worker in range(4)] == [
        [0, 1, 2, 3],
        [],
        [8, 9, 10, 11],
        [4, 5, 6, 7],
    ]
    assert queue_of(after.owners, IDLE) == []
    # The state before is not touched.
    assert bins.bins_of(state.owners, 1) == [4, 5, 6, 7]
    assert queue_of(state.owners, IDLE) == [1]
    last = changed(after, [0, 2], left=(3,))
    assert [bins.bins_of(last.owners, worker) for worker in (0, 2)] == [[0, 1, 2, 3, 4, 6], [8, 9, 10, 11, 5, 7]]


def test_a_joiner_gets_bins_when_it_says_that_it_is_idle() -> None:
    state = started("consistent_grouping:virtual=2,window=1s,signal_delay=0", 2)
    for worker in (0, 1):
        state.observe(0, 0, worker, 0)
    after = changed(state, [0, 1, 2], joined=(2,))
    assert set(Counter(after.choose(0, key, 0) for key in range(200))) == {0, 1}
    after.tick(SECOND)
    assert queue_of(after.owners, IDLE) == [2]
    bins.signal(after.owners, 0, BUSY)
    assert after.owners.owner.tolist() == [0, 2, 1, 1]
    assert set(Counter(after.choose(0, key, 0) for key in range(200))) == {0, 1, 2}


def test_who_left_is_not_heard_any_more() -> None:
    state = started("consistent_grouping:virtual=2,window=1s,signal_delay=2s", 3)
    state.tick(SECOND)
    after = changed(state, [0, 1], left=(2,))
    after.tick(3 * SECOND)
    assert queue_of(after.owners, IDLE) == [0, 1]


def test_bins_and_loads_stay_when_workers_change() -> None:
    state = started("consistent_grouping:virtual=2", 4)
    for i in range(300):
        state.choose(i % 3, i % KEYS, 0)
    before = state.load.copy()
    after = changed(state, [0, 1, 3, 4, 5], joined=(4, 5), left=(2,))
    assert np.array_equal(after.load, before)
    assert sorted(after.owners.owner.tolist()) == [0, 0, 1, 1, 3, 3, 4, 5]
    assert after.state_entries == 16


def test_signals_that_take_thousands_of_windows_are_refused() -> None:
    with pytest.raises(UsageError, match="windows"):
        started("consistent_grouping:window=1us,signal_delay=1s", 2)
    with pytest.raises(UsageError, match="longer than 0"):
        started("consistent_grouping:window=0s", 2)
