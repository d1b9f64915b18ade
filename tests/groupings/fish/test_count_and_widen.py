"""How hot a key is and how many workers it gets: the worked examples, and exact halvings."""

import json
from math import ceil, floor, log2
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgroup.groupings.fish.decayed_space_saving import (
    BEFORE,
    TOP,
    TOTAL,
    WIDTH,
    count_tuple,
    make_table,
    slot_of,
)
from streamgroup.groupings.fish.number_of_choices import (
    average_width,
    chk_width,
    denominator,
    halvings,
    is_hot,
    optimal_width,
    sort_hot,
)

EXAMPLES = json.loads((Path(__file__).parents[2] / "data" / "examples.json").read_text())


def example(name: str) -> tuple[Any, Any]:
    (found,) = [entry for entry in EXAMPLES if entry["id"] == name]
    return found["input"], found["expected"]


def test_a_new_key_is_hot_right_after_a_decay() -> None:
    given_, expected = example("FISH-02")
    theta = 1 / (4 * given_["n"])
    assert theta == pytest.approx(expected["theta"], rel=1e-5)
    whole = given_["S_after_decay"] + given_["c_new"]
    assert given_["c_new"] / whole == pytest.approx(expected["f_c_over_S"], rel=1e-5)
    assert is_hot(given_["c_new"], theta, whole) is expected["hot_c_over_S"]
    assert is_hot(given_["c_new"], theta, 1 / 0.0008) is expected["hot_normalised"]


def table_of(stored: list[float], n_epoch: int = 1000, alpha: float = 0.2) -> Any:
    """Make a table in which key i has been counted `stored[i]` times a step."""
    table = make_table(1, 1000, alpha, n_epoch)
    for key in range(len(stored)):
        count_tuple(table, 0, key)
    for key, value in enumerate(stored):
        table.stored[0, slot_of(table, 0, key)] = value
    table.sums[0, TOP] = max(stored)
    return table


def test_the_two_denominators() -> None:
    given_, expected = example("FISH-09")
    for alpha, starts, shares in (
        (0.2, given_["S_start"], expected["f"]),
        (1.0, expected["alpha_1"]["S_start"], expected["alpha_1"]["f"]),
    ):
        table = table_of([1.0], given_["N_epoch"], alpha)
        for start, share in zip(starts, shares, strict=True):
            table.sums[0, BEFORE] = start
            assert given_["c_k"] / denominator(table, 0, True) == pytest.approx(share)
        assert denominator(table, 0, False) == table.sums[0, TOTAL] == 1.0


def test_chk_without_history() -> None:
    given_, expected = example("FISH-03")
    for row in expected:
        table = table_of([max(given_["f"]), row["f"]])
        slot = slot_of(table, 0, 1)
        if row["index"] is None:
            assert not is_hot(row["f"], 1 / 64, 1.0)
            continue
        assert is_hot(row["f"], 1 / 64, 1.0)
        assert halvings(row["f"], max(given_["f"])) == row["index"]
        assert chk_width(table, 0, slot, 16, row["d_min"]) == row["d"]


def test_chk_never_takes_back() -> None:
    given_, expected = example("FISH-04")
    table = table_of([given_["f_top"], 0.0])
    slot = slot_of(table, 0, 1)
    for share, d, most in expected["f_d_M"]:
        table.stored[0, slot] = share
        found = 2
        if is_hot(share, 1 / 64, 1.0):
            found = chk_width(table, 0, slot, given_["W_num"], given_["d_min"])
        assert found == d
        assert table.info[0, slot, WIDTH] == most


@settings(max_examples=300, deadline=None)
@given(st.floats(1e-100, 1e100), st.floats(1.0, 1e30))
def test_halvings_are_exact(stored: float, factor: float) -> None:
    top = stored * factor
    i = int(halvings(stored, top))
    assert i >= 0
    assert stored * 2.0**i <= top < stored * 2.0 ** (i + 1)
    assert abs(i - floor(log2(factor))) <= 1


def test_widths_for_all_hot_keys() -> None:
    stored = [5.0, 40.0, 1.0, 12.0, 40.0, 2.0]
    table = table_of(stored)
    hot = np.zeros(1000)
    size = sort_hot(table, 0, 0.02, 100.0, hot)
    assert hot[:size].tolist() == [40.0, 40.0, 12.0, 5.0]
    assert average_width(hot, size, 100.0, 50) == ceil(50 * 0.97 / 4)
    # One key with half of the stream needs half of the workers at least; in a huge slack, no more.
    assert optimal_width(np.array([50.0]), 1, 100.0, 64, 10.0) == 32
    assert optimal_width(np.array([50.0]), 1, 100.0, 64, 1e-4) > 32
    assert optimal_width(np.array([100.0]), 1, 100.0, 64, 1e-4) == 64
    assert optimal_width(np.array([1.0]), 1, 1.0, 1, 1e-4) == 1
