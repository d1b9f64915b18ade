"""FINDOPTIMALCHOICES: the worked examples, the twin, and what n does to it."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgroup.kernels.optimal_choices import Variant, choices_needed, make_powers, power
from tests.naive.kernels.optimal_choices import find_d, shares_of_counts

EXAMPLES = {
    entry["id"]: entry for entry in json.loads((Path(__file__).parents[1] / "data" / "examples.json").read_text())
}
TOTAL = 10**12


def needed(
    counts: list[int], total: int, workers: int, eps: float = 1e-4, *, every: bool = False, code: bool = False
) -> int:
    estimates = np.array(counts, dtype=np.int64)
    variant = Variant(every, code, code)
    return int(choices_needed(estimates, len(counts), total, eps, make_powers(workers), variant))


def test_given_heads() -> None:
    for case in EXAMPLES["DC-02"]["expected"]:
        head = [round(share * TOTAL) for share in case["head"]]
        assert needed(head, TOTAL, case["n"]) == case["d_paper_h1_hH"]
        assert needed(head, TOTAL, case["n"], every=True) == case["d_paper_all_prefixes"]
        assert needed(head, TOTAL, case["n"], code=True) == case["d_shipped_code"]


@pytest.mark.parametrize("cell", EXAMPLES["DC-04"]["expected"])
def test_heads_of_zipf(cell: str) -> None:
    expected = EXAMPLES["DC-04"]["expected"][cell]
    exponent, workers = float(cell.split(",")[0][2:]), int(cell.split("n=")[1])
    shares = 1.0 / np.arange(1, 10_001) ** exponent
    shares /= shares.sum()
    head = [round(share * TOTAL) for share in shares if share >= 1 / (5 * workers)]
    assert len(head) == expected["H"]
    assert needed(head, TOTAL, workers) == expected["d"]
    assert needed(head, TOTAL, workers, every=True) == expected["d_all"]


def test_reachable_workers() -> None:
    for case, value in EXAMPLES["DC-01"]["expected"].items():
        h, d = (int(part.split("=")[1]) for part in case.split(","))
        assert 10 - 10 * power(0.9, h * d) == pytest.approx(value, abs=5e-7)


def test_the_start_forgives_the_last_bit() -> None:
    """0.07 x 100 is 7.000000000000001 in floating point (DC-05)."""
    assert needed([7], 100, 100, eps=1.0) == EXAMPLES["DC-05"]["expected"]["with_1e9_tolerance"]


def test_a_large_eps_gives_the_start() -> None:
    assert needed([400, 100], 1000, 10, eps=1.0) == 4
    assert needed([1], 1000, 10, eps=1.0) == 2


@settings(deadline=None)
@given(
    st.lists(st.integers(1, 10**6), min_size=1, max_size=30),
    st.floats(1.0, 5.0),
    st.sampled_from([1, 2, 3, 10, 50, 128]),
    st.sampled_from([1e-4, 1e-2, 1.0]),
    st.booleans(),
    st.booleans(),
)
def test_as_its_twin(counts: list[int], slack: float, workers: int, eps: float, every: bool, code: bool) -> None:
    counts = sorted(counts, reverse=True)
    total = max(1, round(sum(counts) * slack / 1.5))
    shares = shares_of_counts(counts, total, "all" if every else "ends")
    wanted = find_d(shares, workers, eps, start="round" if code else "ceil", slack="plain" if code else "scaled")
    assert min(needed(counts, total, workers, eps, every=every, code=code), workers) == min(wanted, workers)
