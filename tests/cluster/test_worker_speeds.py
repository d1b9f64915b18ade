"""Slowdown factors, their changes, and the drift of speeds."""

import math
import statistics
from fractions import Fraction

import numpy as np
import pytest

from streamgroup.base.errors import UsageError
from streamgroup.cluster.worker_speeds import (
    Speeds,
    jitter_factors,
    make_speeds,
    parse_jitter,
    parse_slowdown,
    repetition,
)
from streamgroup.kernels import random_draws


def speeds(
    slowdown: str | None = None, *changes: str, jitter: str | None = None, workers: int = 3, joiners: int = 0
) -> Speeds:
    return make_speeds(slowdown, changes, jitter, workers=workers, joiners=joiners, tuples=100, seed=1)


def test_factors_repeat_to_n_and_half_are_the_highest_ids() -> None:
    assert parse_slowdown("1,2.5", 5) == [1, Fraction(5, 2), 1, Fraction(5, 2), 1]
    assert parse_slowdown("half:2", 5) == [1, 1, 1, 2, 2]
    assert parse_slowdown("half:2", 1) == [1]
    assert parse_slowdown("0.1", 1) == [Fraction(1, 10)]


def test_workers_by_name() -> None:
    assert parse_slowdown("one:2", 5) == [1, 1, 1, 1, 2]
    assert parse_slowdown("one:2", 1) == [2]
    assert parse_slowdown("0:3", 3) == [3, 1, 1]
    assert parse_slowdown("2:3, 0:0.5", 3) == [Fraction(1, 2), 1, 3]
    assert parse_slowdown("half:2,1:4", 4) == [1, 4, 2, 2]
    assert speeds("1", "50%=one:3").slowdown.tolist() == [[1, 1, 1], [1, 1, 3]]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("14:2", "there is no worker 14 among 3"),
        ("all:2", "'all' is no worker"),
        ("1:2,3", "is not a number"),
        ("-1:2", "is no worker"),
        (":2", "is no worker"),
        ("one:", "is not a number"),
        ("one:0", "is not a factor"),
    ],
)
def test_workers_that_are_none(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        parse_slowdown(text, 3)


def test_a_short_list_repeats_and_says_so() -> None:
    assert repetition("2,1", 64) == "2,1 repeats: 32 of 64 workers are slow"
    assert repetition("1,1,2", 64) == "1,1,2 repeats: 21 of 64 workers are slow"
    for text in ("2", "1,1", "half:2", "one:2", "3:2,4:2"):
        assert repetition(text, 64) is None
    assert repetition("1,2,3", 3) is None


def test_nothing_given_is_steady() -> None:
    plain = speeds()
    assert plain.steady
    assert plain.initial == [1, 1, 1]
    assert plain.longest_factor() == 1
    assert speeds("1,2", jitter="0:7").steady


def test_a_change_at_the_start_is_the_initial_speed() -> None:
    for when in ("0", "0%", "0s", "0ns"):
        changed = speeds("5", f"{when}=2,1")
        assert changed.initial == [2, 1, 2]
        assert changed.steady
        assert changed.slowdown.tolist() == [[2, 1, 2]]


def test_changes_are_sorted_by_where_they_begin_and_the_last_of_one_place_counts() -> None:
    changed = speeds("1,2", "50%=3", "10=half:4", "50=5", joiners=2)
    assert not changed.by_time
    assert changed.begins.tolist() == [0, 10, 50]
    # The joiners' slowdown is 1 throughout.
    assert changed.slowdown.tolist() == [[1, 2, 1, 1, 1], [1, 1, 4, 1, 1], [5, 5, 5, 1, 1]]
    assert changed.initial == [1, 2, 1]
    assert changed.longest_factor() == 5
    assert not changed.steady
    assert changed.at(10**18, 9).tolist() == [1, 2, 1, 1, 1]
    assert changed.at(0, 10).tolist() == [1, 1, 4, 1, 1]
    assert changed.at(0, 99).tolist() == [5, 5, 5, 1, 1]


def test_changes_by_time() -> None:
    changed = speeds(None, "2ms=2", "1s=0.5")
    assert changed.by_time
    assert changed.begins.tolist() == [0, 2_000_000, 10**9]
    assert changed.at(2_000_000, 0).tolist() == [2, 2, 2]
    assert changed.at(1_999_999, 99).tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["50%"], "--slowdown-at 50%: no start is given"),
        (["50%="], "--slowdown-at 50%=: '' is not a number"),
        (["=2"], "'' is not a time"),
        (["50%=fast"], "--slowdown-at 50%=fast: 'fast' is not a number"),
        (["50%=1,0"], "0 is not a factor between"),
        (["50%=half:1e7"], "1e7 is not a factor between"),
        (["100=2"], "there is no tuple 100"),
        (["150%=2"], "not between 0% and 100%"),
        (["50%=2", "1s=2"], "some changes are at a time and some at a tuple"),
    ],
)
def test_what_is_wrong_in_a_change_is_told(given: list[str], words: str) -> None:
    with pytest.raises(UsageError) as caught:
        speeds(None, *given)
    assert words in caught.value.message


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("0.1", "is not CV:EVERY"),
        ("0.1:", "is not CV:EVERY"),
        ("0.1:0", "is not CV:EVERY"),
        ("0.1:10s", "is not CV:EVERY"),
        ("0.1:10:level", "there is no start 'level'"),
        ("x:10", "'x' is not a number"),
        ("-0.1:10", "not between 0 and 100"),
    ],
)
def test_what_is_wrong_in_a_drift_is_told(text: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_jitter(text)
    assert "--speed-jitter" in caught.value.message
    assert words in caught.value.message


def test_a_drift_that_no_memory_holds_is_refused() -> None:
    with pytest.raises(UsageError, match="1000000000 batches of 1 tuples for 64 workers are over 476 GB"):
        jitter_factors(parse_jitter("0.1:1"), 0, 64, 10**9)


@pytest.mark.parametrize(("text", "first"), [("0.3:7", 1.0), ("0.3:7:equal", math.sqrt(0.19))])
def test_the_drift_is_the_recursion_worker_by_worker(text: str, first: float) -> None:
    table = jitter_factors(parse_jitter(text), 9, 4, 100)
    assert table.shape == (15, 4)
    spread = math.sqrt(math.log(1 + 0.09))
    for worker in range(4):
        x = 0.0
        for batch in range(15):
            step = math.sqrt(0.19) if batch else first
            x = 0.9 * x + step * spread * random_draws.normal(9, f"jitter:{worker}", np.array([batch]))[0]
            assert table[batch, worker] == pytest.approx(math.exp(x), rel=1e-14)


def test_a_workers_drift_does_not_depend_on_how_many_there_are_or_how_long_the_trace_is() -> None:
    small = jitter_factors(parse_jitter("0.3:5"), 9, 2, 50)
    large = jitter_factors(parse_jitter("0.3:5"), 9, 8, 500)
    assert (large[:10, :2] == small).all()


def test_the_drift_is_slow_and_has_the_variation_that_was_asked_for() -> None:
    table = np.log(jitter_factors(parse_jitter("0.2:1"), 2, 20, 20_000))
    settled = table[100:]
    assert settled.std() == pytest.approx(math.sqrt(math.log(1.04)), rel=0.03)
    correlation = statistics.mean(float(np.corrcoef(settled[1:, w], settled[:-1, w])[0, 1]) for w in range(20))
    assert correlation == pytest.approx(0.9, abs=0.01)


def test_speeds_differ_as_much_in_the_first_batch_as_later_unless_they_start_equal() -> None:
    """000 fig. 4: ten workers over twelve batches, 4.37 %."""
    for text, expected in (("0.0437:50000", 0.0437), ("0.0437:50000:equal", 0.0437 * math.sqrt(0.19))):
        first = jitter_factors(parse_jitter(text), 3, 2000, 600_000)[0]
        assert first.std() / first.mean() == pytest.approx(expected, rel=0.04)


def test_joiners_drift_too() -> None:
    drifting = speeds("2", jitter="0.1:10", joiners=1)
    assert not drifting.steady
    assert drifting.jitter.shape == (10, 4)
    assert (drifting.jitter[:, 3] != 1).all()
    assert drifting.longest_factor() == pytest.approx(2 * drifting.jitter.max())
