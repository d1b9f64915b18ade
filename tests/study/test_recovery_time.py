"""How long it takes to catch up, on backlogs that are known."""

from typing import Any

import polars as pl
import pytest

from streamgroup.study.recovery_time import Drain, find_drains

# 100 tuples, ten a second.
WINDOWS = pl.DataFrame({"start_s": [float(at) for at in range(10)], "tuples": [10] * 10})


def _lag(*largest: float | None) -> pl.DataFrame:
    """Two workers, of which one is never behind; a row for each at the end of each second."""
    rows = [
        {"time_s": at + 1.0, "worker": worker, "backlog_s": value if worker else 0.0}
        for at, value in enumerate(largest)
        for worker in (0, 1)
    ]
    return pl.DataFrame(rows, schema_overrides={"backlog_s": pl.Float64})


def _record(**options: Any) -> dict[str, Any]:
    return {"options": {"crash": None, "slowdown_at": None, **options}, "trace": {"tuples": 100}}


@pytest.mark.parametrize(
    ("crash", "what"),
    [("3s", "the crash at 3s"), ("30%:1", "the crash at 30%:1"), ("30:random", "the crash at 30:random")],
)
def test_a_crash(crash: str, what: str) -> None:
    lag = _lag(0.1, 0.2, 0.1, 2.0, 3.0, 1.0, 0.2, 0.1)
    assert find_drains(_record(crash=crash), lag, WINDOWS) == [Drain(what, 3.0, 4.0)]


def test_who_never_catches_up() -> None:
    assert find_drains(_record(crash="3s"), _lag(0.1, 0.1, 0.1, 2.0, 3.0), WINDOWS) == [
        Drain("the crash at 3s", 3.0, None)
    ]
    # Null: never done with what it was sent.
    assert find_drains(_record(crash="3s"), _lag(0.1, 0.1, 0.1, 0.1, None), WINDOWS)[0].seconds is None


def test_a_crash_that_sets_nobody_back() -> None:
    assert find_drains(_record(crash="3s"), _lag(0.1, 0.3, 0.1, 0.3, 0.2), WINDOWS)[0].seconds == 0
    assert find_drains(_record(crash="9s"), _lag(0.1, 0.3), WINDOWS)[0].seconds == 0


def test_a_slow_phase_counts_from_its_end_and_by_what_was_before_it_began() -> None:
    lag = _lag(0.1, 0.2, 1.0, 2.0, 3.0, 2.0, 1.0, 0.2, 0.1)
    found = find_drains(_record(slowdown_at="20%=0:3 50%=1"), lag, WINDOWS)
    assert found == [Drain("the slow phase from 20% to 50%", 5.0, 3.0)]
    assert find_drains(_record(slowdown_at="20%=0:3"), lag, WINDOWS) == []


def test_nothing_happened() -> None:
    assert find_drains(_record(), _lag(1.0), WINDOWS) == []


def test_a_place_in_the_middle_of_a_window_and_after_a_warm_up() -> None:
    lag = _lag(*[0.0] * 10)
    assert find_drains(_record(crash="35"), lag, WINDOWS)[0].at_s == pytest.approx(3.5)
    # The first 20 of the 100 tuples are in no window.
    late = WINDOWS.slice(2)
    assert find_drains(_record(crash="35"), lag, late)[0].at_s == pytest.approx(3.5)
    assert find_drains(_record(crash="99"), lag, late)[0].at_s == pytest.approx(9.0)
