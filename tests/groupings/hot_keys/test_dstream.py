"""DStream: its coins, its synopsis, what is announced, and where tuples go."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from streamgroup.base.errors import UsageError
from streamgroup.groupings.detectors.synopsis import bit_vectors, messages_in_flight
from streamgroup.kernels import random_draws
from streamgroup.replay.scenario.grouping_selection import select
from tests.groupings.contexts_and_worker_changes import KEYS, changed, context, started

EXAMPLES = {one["id"]: one for one in json.loads((Path(__file__).parents[2] / "data" / "examples.json").read_text())}
RNG = np.random.default_rng(5)


def grown(state: Any) -> Any:
    """As the loop makes room for more."""
    return state._replace(detector=state.detector.grown())


def tosses(count: int, shortest: int, longest: int, seed: int = 0) -> np.ndarray:
    coins = np.array([random_draws.stream(seed, "coin")], dtype=np.uint64)
    return np.array([bit_vectors.toss(coins, 0, shortest, longest) for _ in range(count)])


def run(state: Any, keys: Any, *, sources: int = 3, step: int = 1) -> list[int]:
    """Send keys one after another, `step` ns apart; give the workers."""
    found = []
    for i, key in enumerate(keys):
        if hasattr(state.detector, "room") and state.detector.room[0] < 1:
            state = grown(state)
        state.tick(i * step)
        found.append(int(state.choose(i % sources, int(key), i * step)))
    return found


def skewed(count: int) -> np.ndarray:
    return np.random.default_rng(8).zipf(1.5, count) % KEYS


def test_a_run_of_heads_is_the_trailing_zeros_of_a_word() -> None:
    words = random_draws.words(0, "coin", np.arange(3000))
    for shortest, longest in ((0, 5), (2, 3), (3, 64)):
        wanted = [min((int(word) & -int(word)).bit_length() - 1, longest) for word in words]
        assert tosses(3000, shortest, longest).tolist() == [t if t >= shortest else -1 for t in wanted]


def test_reports_and_bits_have_the_probabilities_of_the_worked_example() -> None:
    example = EXAMPLES["DS-01"]
    r, l = example["input"]["r"], example["input"]["l"]  # noqa: E741
    count = 400_000
    lengths = tosses(count, r + 1, r + l)
    reports = lengths[lengths >= 0]
    share = example["expected"]["P_report_t_gt_r"]
    assert abs(len(reports) - share * count) < 4 * (share * count) ** 0.5
    assert reports.max() - r - 1 == l - 1
    bits = Counter((reports - r - 1).tolist())
    for bit, probability in example["expected"]["bit_probabilities_given_report"].items():
        assert abs(bits[int(bit)] / len(reports) - probability) < 4 * (probability / len(reports)) ** 0.5
    assert abs((tosses(count, r, r + l) >= 0).mean() - example["expected"]["P_t_ge_r"]) < 0.001


def test_how_often_a_key_of_a_size_is_reported_once_at_most() -> None:
    example = EXAMPLES["DS-02"]
    r, trials = 4, 4000
    for c, wanted in zip(example["input"]["c"], example["expected"]["values_pct"], strict=True):
        # The law depends on c - r alone; a short run makes the trial cheap.
        tuples = 1 << (c - example["input"]["r"] + r)
        reported = (tosses(tuples * trials, r, 64, seed=c) >= 0).reshape(trials, tuples).sum(axis=1)
        assert abs((reported <= 1).mean() - wanted / 100) < 0.025


def test_two_lengths_are_seen_with_the_probability_of_the_worked_example() -> None:
    example = EXAMPLES["DS-04"]
    r, trials = 6, 400
    for tuples in example["input"]["N"][2:]:
        lengths = tosses(tuples * trials, r + 1, r + 16).reshape(trials, tuples)
        announced = 0
        for trial in lengths:
            table = bit_vectors.make_synopsis(4, 0)
            announced += any(bit_vectors.note(table, 9, t - r - 1, 2) for t in trial[trial >= 0])
        wanted = example["expected"][f"r=6,N={tuples}"]
        assert abs(announced / trials - wanted) < 4 * (wanted * (1 - wanted) / trials) ** 0.5


@pytest.mark.parametrize("bit", ["0", "3", "15"])
def test_a_lone_bit_is_shifted_out_after_the_updates_of_the_worked_example(bit: str) -> None:
    example = EXAMPLES["DS-06"]
    wanted, trials = example["expected"][bit], 200
    chance = int(example["input"]["p"] * 2**53)
    table, updates = bit_vectors.make_synopsis(2, random_draws.stream(1, bit)), 0
    for _ in range(trials):
        bit_vectors.note(table, 1, int(bit), 2)
        while table.size[0]:
            bit_vectors.decline(table, chance)
            updates += 1
    spread = wanted / (int(bit) + 1) ** 0.5
    assert abs(updates / trials - wanted) < 4 * spread / trials**0.5


def test_decline_keeps_the_order_and_tells_who_left() -> None:
    table = bit_vectors.make_synopsis(8, 0)
    for key, bit in ((5, 0), (3, 1), (5, 2), (9, 0), (3, 3), (7, 4)):
        bit_vectors.note(table, key, bit, 2)
    assert table.announced[:4].tolist() == [1, 1, 0, 0]
    assert bit_vectors.decline(table, 1 << 53) == 0
    assert table.key[: table.size[0]].tolist() == [5, 3, 7]
    assert table.bits[:3].tolist() == [0b10, 0b101, 0b1000]
    bit_vectors.decline(table, 1 << 53)
    assert bit_vectors.decline(table, 1 << 53) == 1
    assert table.left[0] == 5
    assert table.key[: table.size[0]].tolist() == [3, 7]
    # What comes back is new, at the end.
    assert not bit_vectors.note(table, 5, 1, 2)
    assert table.key[: table.size[0]].tolist() == [3, 7, 5]


def test_drawn_decline_shifts_just_the_share() -> None:
    table = bit_vectors.make_synopsis(64, 17)
    for key in range(40):
        bit_vectors.note(table, key, 60, 9)
    total = 0
    for _ in range(50):
        before = table.bits[:40].copy()
        bit_vectors.decline_exactly(table, 0.06)
        shifted = int((table.bits[:40] != before).sum())
        assert shifted in (2, 3)
        total += shifted
    assert abs(total - 50 * 2.4) < 4 * (50 * 0.24) ** 0.5


def test_messages_come_by_time_then_source_then_creation() -> None:
    queue, sent = messages_in_flight.make_messages(64), []
    for number in range(60):
        due, source = int(RNG.integers(0, 8)), int(RNG.integers(0, 4))
        messages_in_flight.push(queue, due, source, number, 2 * number)
        sent.append((due, source, number))
    queue = messages_in_flight.doubled(queue)
    for due, _, number in sorted(sent):
        assert messages_in_flight.next_due(queue) == due
        assert messages_in_flight.pop(queue) == (number, 2 * number)
    assert messages_in_flight.next_due(queue) == messages_in_flight.NEVER


def test_cold_keys_go_to_their_first_candidate_and_hot_ones_to_all_in_turn() -> None:
    state = started("dstream:r=40", 6)
    assert run(state, range(KEYS)) == context(list(range(6))).candidates(1)[:, 0].tolist()
    assert state.choices[0] == 0
    # Let every filter answer yes.
    state.detector.counters[:] = 1
    assert run(state, [1, 2, 3] * 6) == [place for step in range(6) for place in [(s + step) % 6 for s in range(3)]]
    assert state.choices[0] == 6


@pytest.mark.parametrize("text", ["dstream:r=1,filter=exact", "dstream:r=1,filter=exact,broadcast_delay=700ns"])
def test_the_filter_holds_what_is_announced(text: str) -> None:
    state = started(text, 6)
    detector, size = state.detector, 4000
    run(state, skewed(size))
    state.tick(size + 10_000)
    table = detector.table
    hot = {int(key) for key, told in zip(table.key, table.announced[: table.size[0]], strict=False) if told}
    assert hot
    assert set(np.flatnonzero(detector.counters).tolist()) == hot
    assert state.state_entries.tolist() == [len(hot)] * 3
    assert state.detector_entries[0] == table.size[0]
    assert table.size[0] > 0
    assert (table.bits[: table.size[0]] != 0).all()


def test_counters_are_zero_when_all_have_left() -> None:
    state = started("dstream:r=1,p=1", 6)
    run(state, skewed(3000))
    detector = state.detector
    # With p = 1 a report shifts every vector, and a long silence but for one key lets the others leave.
    for number in range(70):
        messages_in_flight.push(detector.reports, 4000 + number, 0, 0, 0)
        detector.due[0] = 0
        state.tick(4000 + number)
    assert detector.table.size[0] == 0
    assert not detector.counters.any()
    assert state.detector.control_messages[0] > 3000


def test_messages_are_counted_when_they_are_sent() -> None:
    state = started("dstream:r=2,broadcast_delay=1s,coin_delay=1s", 6)
    run(state, skewed(800))
    reports = state.detector.reports.size[0]
    assert state.detector.control_messages[0] == 800 + reports
    assert state.detector.control_bytes[0] == 8 * 800 + 16 * reports
    state.tick(10**9 + 2000)
    broadcasts = state.detector.broadcasts.size[0]
    assert broadcasts > 0
    assert not state.detector.counters.any()
    assert state.detector.control_messages[0] == 800 + reports + 3 * broadcasts
    assert state.detector.control_bytes[0] == 8 * 800 + 16 * reports + 3 * 16 * broadcasts
    state.tick(2 * 10**9 + 2000)
    assert state.detector.counters.any()


def test_a_report_without_delay_is_handled_at_the_next_tuple() -> None:
    state = started("dstream:r=0,report=from", 4)
    state.tick(0)
    state.choose(0, 7, 0)
    assert state.detector_entries[0] == 0
    state.tick(0)
    assert state.detector_entries[0] == 1


def test_room_is_enough_for_as_many_tuples_as_it_says() -> None:
    common = "dstream:r=0,report=from,coin_delay=3us,broadcast_delay=9us"
    texts = (f"{common},p=0.002", f"{common},p=0.005,signals=code")
    for text in texts:
        big, small = started(text, 5), started(text, 5)
        big = grown(grown(grown(big)))
        detector = small.detector
        tiny = detector._replace(
            reports=messages_in_flight.make_messages(1),
            table=bit_vectors.make_synopsis(1, int(detector.table.draw[0]), detector.table.announces_all),
            broadcasts=messages_in_flight.make_messages(8),
        )  # fmt: skip
        small = small._replace(detector=tiny)
        small.detector.room[0] = 1
        keys, growths = skewed(6000), 0
        for i, key in enumerate(keys):
            while small.detector.room[0] < 1:
                small, growths = grown(small), growths + 1
            for state in (big, small):
                state.tick(i)
            before = int(small.detector.room[0])
            assert big.choose(i % 3, int(key), i) == small.choose(i % 3, int(key), i)
            assert small.detector.room[0] >= before - 1
            assert 0 <= small.detector.reports.size[0] <= len(small.detector.reports.row)
            assert small.detector.table.size[0] <= len(small.detector.table.bits)
            assert small.detector.broadcasts.size[0] <= len(small.detector.broadcasts.row)
        assert growths > 5
        assert small.detector_entries[0] == big.detector_entries[0] > 50


def reported(state: Any, key: int, bit: int, now: int) -> tuple[int, int]:
    """Let a report come; give how many broadcasts it made, and how many counters of the key there are then."""
    detector = state.detector
    before = int(detector.control_messages[0])
    messages_in_flight.push(detector.reports, now, 0, key, bit)
    detector.due[0] = now
    state.tick(now)
    sources = len(detector.held)
    return (int(detector.control_messages[0]) - before) // sources, int(detector.counters[detector.columns[key, 0]])


@pytest.mark.parametrize(
    ("kind", "signals", "comes", "leaves"),
    [
        ("bloom", "once", [(0, 0), (0, 0), (1, 1), (0, 1), (0, 1)], (0, 1)),
        ("exact", "once", [(0, 0), (0, 0), (1, 1), (0, 1), (0, 1)], (0, 0)),
        # Who is in is not added again. What leaves was never announced: it takes away the counter that it shares.
        ("bloom", "code", [(0, 0), (0, 0), (1, 1), (1, 1), (1, 1)], (1, 0)),
        ("exact", "code", [(0, 0), (0, 0), (1, 1), (1, 1), (1, 1)], (1, 0)),
    ],
)
def test_what_is_announced(kind: str, signals: str, comes: list[tuple[int, int]], leaves: tuple[int, int]) -> None:
    """Once, or as in the code: each report of a hot key, and all who leave."""
    state = started(f"dstream:p=1e-12,hashes=1,filter={kind},signals={signals}", 4)
    assert [reported(state, 7, bit, at) for at, bit in enumerate((0, 0, 3, 3, 1))] == comes
    if kind == "bloom":
        state.detector.columns[9, 0] = state.detector.columns[7, 0]
    assert reported(state, 9, 0, 10)[0] == 0
    # Now all are shifted: 7 loses one of three bits, and 9 its only one.
    state = state._replace(detector=state.detector._replace(chance=1 << 53))
    assert reported(state, 9, 0, 11) == leaves
    assert state.detector.table.key[: state.detector.table.size[0]].tolist() == [7]
    assert state.detector.held.tolist() == [1024 if kind == "bloom" else 1] * 3


def test_who_is_hot_stays_so_when_workers_change() -> None:
    state = started("dstream:r=1", 5)
    run(state, skewed(2000))
    pointers = state.pointer.copy()
    after = changed(state, [0, 2, 3], left=(1, 4))
    assert after.pointer.tolist() == (pointers % 3).tolist()
    assert np.array_equal(after.detector.counters, state.detector.counters)
    assert set(run(after, skewed(500))) == {0, 2, 3}


def test_another_detector_can_say_what_is_hot() -> None:
    state = started("dstream:detector=space_saving,theta=1/4", 5)
    assert run(state, [3] * 9, sources=1) == [0, 1, 2, 3, 4, 0, 1, 2, 3]
    assert not hasattr(state.detector, "control_messages")


@pytest.mark.parametrize(
    "text", ["r=40,l=30", "counters=1000", "coin_delay=soon", "p=0", "filter=none", "signals=code,l=6"]
)
def test_impossible_parameters_are_refused(text: str) -> None:
    with pytest.raises(UsageError):
        select(f"dstream:{text}")
