"""Warm-up at its edges: none, one, all but one, all; what is left is measured exactly, and nothing else."""

import math
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from streamgroup.base.errors import DataError
from streamgroup.metrics.run_tables import summary
from streamgroup.replay.accounting.outcome import Outcome
from streamgroup.replay.replay_trace import replay
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.traces.trace import open_trace
from tests.metrics.compare_with_naive import tables
from tests.traces_by_hand import Tuple, write_trace

N = 60
LOOPS: dict[str, dict[str, Any]] = {
    "fast": {},
    "ordered": {"queue_capacity": 1000},
    "closed": {"arrivals": "saturate"},
    "redeliver": {"crash": (str(N - 1),), "redeliver": True},
}


def rows(count: int = N) -> list[Tuple]:
    """Nobody ever waits: a tuple in 10 ms, of at most 3 ms."""
    return [(place * 10_000, b"k%d" % (place * place % 7), 1000.0 * (1 + place % 3)) for place in range(count)]


def run(directory: Path, tuples: list[Tuple], **options: Any) -> Outcome:
    trace = open_trace(write_trace(directory, tuples))
    given = {"grouping": "kg", "workers": 3, **options}
    return replay(trace, ReplayOptions(**given), interpreted=True)


def check_counts(outcome: Outcome, measured: int) -> dict[str, pl.DataFrame]:
    """Every table counts the measured tuples, and none has a figure that is none."""
    made = tables(outcome)
    assert outcome.measured == measured
    assert made["workers"]["tuples"].sum() == measured
    assert made["windows"]["tuples"].sum() == measured
    assert made["loads"]["tuples"].sum() == measured
    assert made["keys"]["count"].sum() == measured
    assert made["keys"]["share"].sum() == pytest.approx(1)
    assert made["latency"]["tuples"].sum() == measured
    for table in made.values():
        for column in table.iter_columns():
            if column.dtype == pl.Float64:
                assert all(math.isfinite(value) for value in column.drop_nulls())
    return made


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("warmup", [0, 1, 2, N // 2, N - 2, N - 1])
@pytest.mark.parametrize("window", ["1%", "7", "100ms"])
def test_counts_are_exact(tmp_path: Path, warmup: int, loop: str, window: str) -> None:
    options = {"window": window, "warmup": str(warmup), **LOOPS[loop]}
    found = run(tmp_path / "t", rows(), **options)
    made = check_counts(found, N - warmup)
    counted: dict[bytes, int] = {}
    for _, key, _ in rows()[warmup:]:
        assert key is not None
        counted[key] = counted.get(key, 0) + 1
    assert dict(zip(made["keys"]["key"], made["keys"]["count"], strict=True)) == {
        key.decode(): count for key, count in counted.items()
    }
    assert summary(found)["replicas"] == len(counted)
    if loop != "closed":
        work = sum(int(cost or 0) for _, _, cost in rows()[warmup:])
        assert made["workers"]["busy_s"].sum() == pytest.approx(work / 1e6, rel=1e-12)


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("warmup", [str(N), str(N + 1), "100%", "99%", "1h"])
def test_without_a_measured_tuple_there_is_no_run(tmp_path: Path, warmup: str, loop: str) -> None:
    with pytest.raises(DataError, match="none is measured") as error:
        run(tmp_path / "t", rows(), warmup=warmup, **LOOPS[loop])
    assert error.value.exit_code == 4


@pytest.mark.parametrize("loop", ["fast", "ordered", "redeliver"])
@pytest.mark.parametrize(
    ("warmup", "count"),
    [
        ("0%", 0), ("0s", 0), ("1ns", 1), ("10ms", 1), ("10000001ns", 2), ("20ms", 2), ("0.1%", 1), ("50%", 30),
        ("50.1%", 31), ("98.3%", 59), ("590ms", 59), ("580000001ns", 59),
    ],
)  # fmt: skip
def test_times_and_shares_are_counts(tmp_path: Path, warmup: str, count: int, loop: str) -> None:
    """A tuple is warm-up if it arrives before the time; of a share it is the next whole tuple."""
    one = run(tmp_path / "a", rows(), warmup=warmup, window="5", **LOOPS[loop])
    other = run(tmp_path / "b", rows(), warmup=str(count), window="5", **LOOPS[loop])
    check_counts(one, N - count)
    for table, same in zip(tables(one).values(), tables(other).values(), strict=True):
        assert table.equals(same)


def test_the_last_tuple_is_past_a_time_that_ends_before_it(tmp_path: Path) -> None:
    check_counts(run(tmp_path / "a", rows(), warmup="590ms"), 1)
    with pytest.raises(DataError, match="none is measured"):
        run(tmp_path / "b", rows(), warmup="590000001ns")


def test_a_time_in_a_closed_loop_is_that_of_emission(tmp_path: Path) -> None:
    """One worker, one tuple at a time, 1, 2, 3 ms by turns: emitted at 0, 1, 3, 6, 7, 9, 12 ms and so on."""
    options: dict[str, Any] = {"arrivals": "saturate", "max_pending": 1, "sources": 1, "workers": 1}
    for number, (warmup, count) in enumerate([("6ms", 3), ("6000001ns", 4), ("1ns", 1), ("117ms", N - 1)]):
        check_counts(run(tmp_path / str(number), rows(), warmup=warmup, **options), N - count)
    with pytest.raises(DataError, match="none is measured"):
        run(tmp_path / "late", rows(), warmup="117000001ns", **options)


@pytest.mark.parametrize("loop", ["fast", "ordered"])
@pytest.mark.parametrize("window", ["10%", "7", "100ms"])
@pytest.mark.parametrize("warmup", [1, 2, 30, N - 1])
def test_the_rest_is_measured_as_if_it_were_all(tmp_path: Path, warmup: int, window: str, loop: str) -> None:
    """With queues that are empty then, a grouping without a state, and times and windows that begin anew."""
    options = {"window": window, "slowdown": "1,2,1", **LOOPS[loop]}
    whole = run(tmp_path / "whole", rows(), warmup=str(warmup), **options)
    rest = run(tmp_path / "rest", rows()[warmup:], **options)
    # The offered load is that of the trace, with all of its tuples.
    found, expected = summary(whole), summary(rest)
    del found["offered_load"], expected["offered_load"]
    assert found == expected
    made, alone = tables(whole), tables(rest)
    starts = made["windows"]["start_s"] - warmup / 100
    assert starts.to_list() == pytest.approx(alone["windows"]["start_s"].to_list(), abs=1e-9)
    for name, table in made.items():
        # The cells of lag are of the whole run; nobody waits in it.
        if name == "lag":
            assert table["backlog_tuples"].sum() <= table["time_s"].n_unique()
        elif name != "summary":
            assert table.drop("start_s", strict=False).equals(alone[name].drop("start_s", strict=False)), name


TALKER = """
from typing import NamedTuple

import numpy as np

from streamgroup.groupings.protocol import GroupingParams


class Params(GroupingParams):
    pass


class Talker(NamedTuple):
    control_messages: np.ndarray
    control_bytes: np.ndarray

    def choose(self, source, key, now):
        self.control_messages[0] += 1
        self.control_bytes[0] += 8
        return 0

    def workers_changed(self, change, context):
        return self


def start(params, context):
    return Talker(np.zeros(1, np.int64), np.zeros(1, np.int64))
"""


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("warmup", [0, 1, N // 2, N - 1])
def test_what_a_grouping_sends_while_it_warms_up_is_not_counted(tmp_path: Path, warmup: int, loop: str) -> None:
    file = tmp_path / "talker.py"
    file.write_text(TALKER)
    options = {**LOOPS[loop], "crash": (f"{N - 1}:1",)} if "crash" in LOOPS[loop] else LOOPS[loop]
    found = run(tmp_path / "t", rows(), grouping=str(file), warmup=str(warmup), **options)
    assert found.control_messages == N - warmup
    assert found.control_bytes == 8 * (N - warmup)
