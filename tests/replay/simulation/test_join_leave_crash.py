"""Workers that come and go in both loops: what each grouping does then, and what a run says that cannot go on."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from streamgroup.base.errors import RunError, UsageError
from streamgroup.replay.replay_trace import replay
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.traces.trace import Trace, open_trace
from tests.traces_by_hand import Tuple, write_trace

LOOPS: dict[str, dict[str, Any]] = {"fast": {}, "ordered": {"queue_capacity": 1000}}
GROUPINGS = ["sg", "sg_random", "kg", "pkg", "greedy_d:d=4"]
TUPLES, HALF, WORKERS = 1200, 600, 4
# Each key once in each half: what a key's worker is before the change, and after it.
KEYS = HALF


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    """A tuple in 10 ms, each of 1 ms: nothing is under way when workers change."""
    rows: list[Tuple] = [(place * 10_000, b"k%d" % (place % KEYS), 1000.0) for place in range(TUPLES)]
    return open_trace(write_trace(tmp_path_factory.mktemp("go") / "x.trace", rows))


def workers(trace: Trace, directory: Path, grouping: str, **options: Any) -> np.ndarray:
    """Run it; where each tuple went, -1 if it was lost."""
    given = ReplayOptions(**{"grouping": grouping, "workers": WORKERS, **options})
    replay(trace, given, log_directory=directory, interpreted=True)
    rows = pq.read_table(directory)
    lost = rows["finish_ns"].is_null().to_numpy()
    return np.where(lost, -1, rows["worker"].to_numpy())


CHANGES: dict[str, tuple[dict[str, Any], list[int]]] = {
    "join": ({"join": (str(HALF),)}, [0, 1, 2, 3, 4]),
    "leave": ({"leave": (str(HALF),)}, [0, 1, 2]),
    "leave the second": ({"leave": ("50%:1",)}, [0, 2, 3]),
    "crash": ({"crash": (f"{HALF * 10}ms:0",)}, [1, 2, 3]),
    "crash and redeliver": ({"crash": (f"{HALF * 10}ms:2",), "redeliver": True}, [0, 1, 3]),
    "join and leave": ({"join": (str(HALF),), "leave": (f"{HALF}:0",)}, [1, 2, 3, 4]),
    "all": ({"join": (str(HALF),) * 2, "leave": (f"{HALF}:0",), "crash": (f"{HALF}:1",)}, [2, 3, 4, 5]),
}


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("grouping", GROUPINGS)
def test_only_who_is_there_is_chosen_and_all_are(
    trace: Trace, tmp_path: Path, grouping: str, change: str, loop: str
) -> None:
    options, live = CHANGES[change]
    found = workers(trace, tmp_path / "log", grouping, **options, **LOOPS[loop])
    assert set(found[:HALF]) == set(range(WORKERS))
    assert set(found[HALF:]) == set(live)
    # Nothing was under way, so nothing was lost; and before the change all is as without one.
    without = workers(trace, tmp_path / "without", grouping, **LOOPS[loop])
    assert np.array_equal(found[:HALF], without[:HALF])
    after = np.bincount(found[HALF:], minlength=6)[live]
    if grouping == "sg":
        assert after.max() - after.min() <= 5
    else:
        assert after.min() > HALF / len(live) / 2


def moved(before: list[int], after: list[int]) -> float:
    """F_1 is place n x of the n live ones, rounded down, x even in [0, 1): the share of x that gets another worker."""
    x = (np.arange(120_000) + 0.5) / 120_000
    places = [np.array(live)[(x * len(live)).astype(int)] for live in (before, after)]
    return float((places[0] != places[1]).mean())


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("change", ["join", "leave", "leave the second", "crash", "join and leave"])
def test_key_grouping_moves_as_many_keys_as_it_must(trace: Trace, tmp_path: Path, change: str, loop: str) -> None:
    options, live = CHANGES[change]
    found = workers(trace, tmp_path / "log", "kg", **options, **LOOPS[loop])
    share = float((found[:HALF] != found[HALF:]).mean())
    # Within four standard deviations of 600 keys.
    expected = moved(list(range(WORKERS)), live)
    assert share == pytest.approx(expected, abs=4 * (expected * (1 - expected) / KEYS) ** 0.5)
    # A key is where it would be had there never been other workers, under their names.
    fresh = workers(trace, tmp_path / "fresh", "kg", **{**LOOPS[loop], "workers": len(live)})
    assert np.array_equal(found[HALF:], np.array(live)[fresh[HALF:]])


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("grouping", GROUPINGS)
def test_a_crash_loses_what_is_under_way(tmp_path: Path, grouping: str, loop: str) -> None:
    """All tuples at once, 1 ms each: by 5.5 ms a worker has finished five; the others of the crashed one are lost."""
    trace = open_trace(write_trace(tmp_path / "x", [(0, b"k%d" % (place % 40), 1000.0) for place in range(80)]))
    whole = workers(trace, tmp_path / "whole", grouping, **LOOPS[loop])
    found = workers(trace, tmp_path / "log", grouping, crash=("5500us:2",), **LOOPS[loop])
    own = np.flatnonzero(whole == 2)
    assert len(own) > 5
    assert np.array_equal(np.flatnonzero(found < 0), own[5:])
    assert np.array_equal(found[found >= 0], whole[found >= 0])
    # Of one that leaves none are lost, and none of its own go elsewhere.
    left = workers(trace, tmp_path / "left", grouping, leave=("5500us:2",), **LOOPS[loop])
    assert np.array_equal(left, whole)
    again = workers(trace, tmp_path / "again", grouping, crash=("5500us:2",), redeliver=True, **LOOPS[loop])
    assert set(again[own[5:]]) <= {0, 1, 3}
    assert np.array_equal(np.delete(again, own[5:]), np.delete(whole, own[5:]))


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"leave": ("1", "2", "3", "4")}, "no worker is left at 0.04 s, before tuple 4"),
        ({"crash": ("0",) * 4}, "no worker is left at 0 s"),
        ({"leave": ("1", "2"), "crash": ("10ms:random", "25ms")}, "no worker is left at 0.025 s, before tuple 3"),
        ({"leave": ("5:1", "9:1")}, "--leave: worker 1 is not there at that moment"),
        ({"leave": ("5:1",), "crash": ("90ms:1",)}, "--crash: worker 1 is not there at that moment"),
        ({"join": ("9",), "crash": ("5:4",)}, "--crash: worker 4 is not there at that moment"),
    ],
)
def test_what_cannot_be_ends_the_run(
    trace: Trace, tmp_path: Path, options: dict[str, Any], words: str, loop: str
) -> None:
    with pytest.raises(RunError, match=words) as error:
        workers(trace, tmp_path / "log", "pkg", **options, **LOOPS[loop])
    assert error.value.exit_code == 1
    assert error.value.hint


@pytest.mark.parametrize("loop", LOOPS)
def test_what_would_be_after_the_end_never_happens(trace: Trace, tmp_path: Path, loop: str) -> None:
    """The last tuple finishes at 11.991 s."""
    plain = workers(trace, tmp_path / "plain", "pkg", **LOOPS[loop])
    late = workers(trace, tmp_path / "late", "pkg", leave=("11991000001ns",) * 4, **LOOPS[loop])
    assert np.array_equal(plain, late)
    with pytest.raises(RunError, match="no worker is left"):
        workers(trace, tmp_path / "last", "pkg", leave=("11990999999ns",) * 4, **LOOPS[loop])


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("option", ["join", "leave", "crash"])
def test_a_grouping_that_cannot_follow_is_refused(trace: Trace, tmp_path: Path, option: str, loop: str) -> None:
    listener = Path(__file__).parents[1] / "groupings_outside_package" / "listener.py"
    with pytest.raises(UsageError, match="does not say what happens when workers join, leave or crash") as error:
        workers(trace, tmp_path / "log", str(listener), **{option: ("50%",)}, **LOOPS[loop])
    assert error.value.exit_code == 2
    assert "workers_changed(self, change, context)" in str(error.value.hint)


def test_workers_that_can_never_be_are_refused(trace: Trace, tmp_path: Path) -> None:
    for options in ({"leave": ("5:4",)}, {"join": ("5",), "crash": ("9:5",)}, {"leave": ("1200",)}, {"join": ("5:1",)}):
        with pytest.raises(UsageError):
            workers(trace, tmp_path / "log", "pkg", **options)


def test_a_change_before_a_tuple_of_an_instant_comes_before_a_later_one(tmp_path: Path) -> None:
    """Four tuples at 0 and a source that waits: worker 1 joins before #2, at 0, worker 2 at 1 us, in this order."""
    rows: list[Tuple] = [(0, b"a", 10.0)] * 4
    trace = open_trace(write_trace(tmp_path / "x.trace", rows))
    options = ReplayOptions(
        "sg", 1, sources=1, queue_capacity=1, network_delay="3us", join=("1us", "2"), window="1",
    )  # fmt: skip
    outcome = replay(trace, options, interpreted=True)
    assert outcome.worker.alive_from_ns is not None
    assert outcome.worker.alive_from_ns.tolist() == [0, 0, 1000]
    assert outcome.window.ever is not None
    assert outcome.window.ever.tolist() == [1, 1, 2, 2]


def test_many_tuples_of_a_crash_come_back_in_order(tmp_path: Path) -> None:
    """All of worker 1's half are redelivered, by the order of the stream; worker 0 takes them."""
    count = 30_000
    rows: list[Tuple] = [(place, b"a", 1000.0) for place in range(count)]
    trace = open_trace(write_trace(tmp_path / "x.trace", rows))
    options = ReplayOptions("sg", 2, sources=1, crash=(str(count - 1),), redeliver=True)
    outcome = replay(trace, options, log_directory=tmp_path / "log")
    assert outcome.redelivered > count // 3
    table = pq.read_table(tmp_path / "log")
    again = table["start_ns"].to_numpy()[table["seq"].to_numpy() % 2 == 1]
    assert np.all(np.diff(again) > 0)
