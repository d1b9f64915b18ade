"""The decayed SpaceSaving: worked examples, and random streams against a dictionary."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgroup.groupings.fish.decayed_space_saving import (
    BEFORE,
    EPOCHS,
    KEY,
    LAST,
    SIZE,
    STEP,
    TOP,
    TOTAL,
    DecayedTable,
    count_tuple,
    make_table,
    slot_of,
)

EXAMPLES = json.loads((Path(__file__).parents[2] / "data" / "examples.json").read_text())


def example(name: str) -> tuple[Any, Any]:
    (found,) = [entry for entry in EXAMPLES if entry["id"] == name]
    return found["input"], found["expected"]


def entries(table: DecayedTable, source: int = 0) -> dict[int, tuple[float, float, int]]:
    """Give what a source tracks: stored, error, last update of each key."""
    used = table.who[source, 1 : table.numbers[source, SIZE] + 1] & ((1 << 20) - 1)
    return {
        int(table.info[source, slot, KEY]): (
            float(table.stored[source, slot]),
            float(table.error[source, slot]),
            int(table.info[source, slot, LAST]),
        )
        for slot in used
    }


class Plain:
    """The definition: one dictionary, and every question answered by looking at all of it."""

    def __init__(self, capacity: int, alpha: float, epoch: int) -> None:
        self.capacity, self.alpha, self.epoch = capacity, alpha, epoch
        self.held: dict[int, tuple[float, float, int]] = {}
        self.total = self.before = 0.0
        self.step = 1.0
        self.seen = self.updates = self.epochs = 0

    def decay(self) -> None:
        self.epochs += 1
        if self.alpha == 0:
            self.held, self.total, self.step = {}, 0.0, 1.0
        else:
            self.step = self.step / self.alpha
            if self.step >= 2.0**400:
                back = 2.0**-400
                self.held = {key: (c * back, e * back, last) for key, (c, e, last) in self.held.items()}
                self.step, self.total = self.step * back, self.total * back
            self.held = {key: entry for key, entry in self.held.items() if entry[0] >= 1e-6 * self.step}
        self.before = self.total

    def count(self, key: int) -> None:
        if self.seen == self.epoch:
            self.decay()
            self.seen = 0
        self.seen += 1
        self.updates += 1
        self.total += self.step
        stored, error = 0.0, 0.0
        if key in self.held:
            stored, error, _ = self.held[key]
        elif len(self.held) == self.capacity:
            victim = min(self.held, key=lambda other: (self.held[other][0], self.held[other][2]))
            stored = error = self.held.pop(victim)[0]
        self.held[key] = (stored + self.step, error, self.updates)


def same(table: DecayedTable, source: int, plain: Plain) -> None:
    assert entries(table, source) == plain.held
    assert table.sums[source, TOTAL] == plain.total
    assert table.sums[source, STEP] == plain.step
    assert table.sums[source, BEFORE] == plain.before
    assert table.sums[source, TOP] == max(stored for stored, _, _ in plain.held.values())
    assert table.numbers[source, EPOCHS] == plain.epochs
    for key in plain.held:
        assert table.info[source, slot_of(table, source, key), KEY] == key
    free = table.free[source, : table.stored.shape[1] - len(plain.held)]
    assert len({*free.tolist(), *(slot_of(table, source, key) for key in plain.held)}) == table.stored.shape[1]


@pytest.mark.parametrize("name", ["SS-03", "SS-04"])
def test_worked_examples(name: str) -> None:
    given_, expected = example(name)
    table = make_table(1, given_["capacity"], given_["alpha"], given_["N_epoch"])
    wanted = [json.loads(line.partition(" ")[2]) for line in expected["trace"] if not line.startswith("decay")]
    for letter, state in zip(given_["stream"].replace(" ", ""), wanted, strict=True):
        count_tuple(table, 0, ord(letter))
        step = table.sums[0, STEP]
        found = {chr(key): [stored / step, error / step] for key, (stored, error, _) in entries(table).items()}
        assert found.keys() == state.keys()
        for key, value in state.items():
            assert found[key] == pytest.approx(value, rel=1e-12)


def test_the_decayed_total_at_the_ends_of_epochs() -> None:
    given_, expected = example("FISH-01")
    table = make_table(1, 10, given_["alpha"], given_["N_epoch"])
    for before, after in expected["S"]:
        for _ in range(given_["N_epoch"]):
            count_tuple(table, 0, 1)
        total = table.sums[0, TOTAL] / table.sums[0, STEP]
        assert total == pytest.approx(before)
        assert total * given_["alpha"] == pytest.approx(after)


@settings(max_examples=150, deadline=None)
@given(
    st.integers(1, 9),
    st.sampled_from([0.0, 0.2, 0.5, 1.0, 1e-7, 1e-100]),
    st.integers(1, 12),
    st.lists(st.tuples(st.integers(0, 1), st.integers(0, 14)), max_size=200),
)
def test_random_streams(capacity: int, alpha: float, epoch: int, stream: list[tuple[int, int]]) -> None:
    table = make_table(2, capacity, alpha, epoch)
    plain = [Plain(capacity, alpha, epoch) for _ in range(2)]
    for source, key in stream:
        slot = count_tuple(table, source, key)
        plain[source].count(key)
        assert table.info[source, slot, KEY] == key
        same(table, source, plain[source])


@pytest.mark.parametrize(("capacity", "alpha", "epoch"), [(100, 0.2, 50), (300, 0.9, 1000), (64, 0.2, 3), (37, 1.0, 9)])
def test_a_long_skewed_stream(capacity: int, alpha: float, epoch: int) -> None:
    keys = np.random.default_rng(capacity).zipf(1.3, 20_000) % 5000
    table, plain = make_table(1, capacity, alpha, epoch), Plain(capacity, alpha, epoch)
    for place, key in enumerate(keys.tolist()):
        count_tuple(table, 0, key)
        plain.count(key)
        if place % 97 == 0:
            same(table, 0, plain)
    same(table, 0, plain)


def test_no_decay_counts_everything() -> None:
    keys = np.random.default_rng(2).zipf(1.5, 3000) % 400
    table = make_table(1, 50, 1.0, 7)
    for key in keys.tolist():
        count_tuple(table, 0, key)
    true = np.bincount(keys, minlength=400)
    assert table.sums[0, TOTAL] == sum(stored for stored, _, _ in entries(table).values()) == 3000
    for key, (stored, error, _) in entries(table).items():
        assert stored - error <= true[key] <= stored


def test_no_memory_is_a_fresh_table_each_epoch() -> None:
    keys = np.random.default_rng(3).zipf(1.5, 1000) % 60
    table = make_table(1, 20, 0.0, 100)
    for begin in range(0, 1000, 100):
        fresh = make_table(1, 20, 1.0, 1000)
        for key in keys[begin : begin + 100].tolist():
            count_tuple(table, 0, key)
            count_tuple(fresh, 0, key)
        assert {key: entry[:2] for key, entry in entries(table).items()} == {
            key: entry[:2] for key, entry in entries(fresh).items()
        }
