"""A grouping never sees what has not happened yet: runs with the same past and another future look the same to it."""

import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from streamgroup.replay.replay_trace import replay
from streamgroup.replay.scenario import grouping_selection, import_user_code
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.replay.simulation import chunk_driven
from streamgroup.traces import layout
from streamgroup.traces.trace import open_trace
from tests.naive.replay.random_scenarios import Scenario, scenarios
from tests.replay.groupings_outside_package import spy as names
from tests.traces_by_hand import Tuple, write_trace

SPY = Path(__file__).parents[1] / "groupings_outside_package" / "spy.py"
SPIES = [f"{SPY}{given}" for given in ("", ":looks=true", ":hears=true", ":looks=true,hears=true")]


@pytest.fixture(scope="module", autouse=True)
def _no_companions() -> Iterator[None]:
    """Do not look for what the spy imports, in every one of hundreds of runs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(import_user_code, "_with_companions", lambda path, digest: digest)
        yield


@dataclass(frozen=True)
class Seen:
    """What a run looked like: the spy's calls in order, and when each tuple arrived."""

    calls: np.ndarray
    arrivals: list[int]

    def before(self, at: int) -> list[list[int]]:
        """All calls before a time, at which something differs: the clock may be told the instant before."""
        return [row for row in self.calls.tolist() if row[names.AT] < at - 1]

    def until_choice(self, count: int) -> list[list[int]]:
        """All calls before and with the choice of that number."""
        chosen = np.flatnonzero(self.calls[:, names.HOOK] == names.OBSERVE)
        return self.calls[: chosen[count] + 1].tolist()


def seen(scenario: Scenario) -> Seen:
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder)
        trace = open_trace(write_trace(directory / "x.trace", scenario.tuples))
        options = dict(scenario.options)
        if scenario.key_cost is not None:
            options["key_cost"] = str(scenario.write_key_cost(directory / "costs.csv"))
        replay(trace, ReplayOptions(**options), log_directory=directory / "log", interpreted=True)
        arrivals = pq.read_table(directory / "log")["arrival_ns"].to_pylist()
    state = grouping_selection.select(scenario.options["grouping"]).module.LATEST[0]
    return Seen(state.calls[: state.used[0]].copy(), arrivals)


def other_future(draw: Any, scenario: Scenario, first: int, at: int) -> Scenario:
    """Draw another future from tuple `first` on, which arrives at `at` ns in the run that there was."""
    tuples = list(scenario.tuples)
    keys = [key for _, key, _ in tuples]
    costs = [cost for _, _, cost in tuples] + ([] if tuples[0][2] is None else [0.25, 100.0])
    gaps = draw(st.lists(st.sampled_from([0, 0, 1, 3, 50]), min_size=len(tuples), max_size=len(tuples)))
    now = tuples[first - 1][0]
    for place in range(first, len(tuples)):
        now += gaps[place]
        tuples[place] = (now, draw(st.sampled_from(keys)), draw(st.sampled_from(costs)))
    return Scenario(tuples, other_changes(draw, scenario, first, at), scenario.key_cost)


def other_changes(draw: Any, scenario: Scenario, first: int, at: int) -> dict[str, Any]:
    """Let speeds and workers change besides, at a time or a tuple that the other run had not come to."""
    options = dict(scenario.options)
    place = draw(st.sampled_from([f"{at + draw(st.integers(0, 3)) * 500}ns", str(first)]))
    steps = options["slowdown_at"]
    # `free` says when a worker will be done, with the speeds that it will have: that is what declared exceptions see.
    foreseen = "looks" in options["grouping"] and place.endswith("s")
    refused = options.get("combine") is not None and not place.endswith("s")
    if not foreseen and not refused and (not steps or steps[0].partition("=")[0].endswith("s") == place.endswith("s")):
        options["slowdown_at"] = (*steps, *draw(st.sampled_from([(), (f"{place}=3,0.25",)])))
    goes = (*options["leave"], *options["crash"])
    # Named or drawn workers might become others by one more change before or after.
    if not any(":" in text for text in goes):
        if len(goes) < options["workers"] - 1:
            kind = draw(st.sampled_from(["leave", "crash"]))
            options[kind] = (*options[kind], place)
        options["join"] = (*options["join"], *draw(st.sampled_from([(), (place,)])))
    return options


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_the_same_past_looks_the_same_whatever_the_future(data: st.DataObject) -> None:
    # With a mean cost or times that are spread, the arrivals themselves follow from the whole trace.
    drawn = data.draw(scenarios(SPIES))
    options = {**drawn.options, "spread_ties": False}
    if "utilization" in options["arrivals"]:
        options["arrivals"] = "saturate" if options["when_full"] != "drop" else "trace"
    scenario = replace(drawn, options=options)
    if len(scenario.tuples) < 2:
        return
    first = data.draw(st.integers(1, len(scenario.tuples) - 1))
    one = seen(scenario)
    future = other_future(data.draw, scenario, first, one.arrivals[first])
    other = seen(future)
    at = min(one.arrivals[first], other.arrivals[first])
    assert one.arrivals[:first] == other.arrivals[:first]
    assert one.before(at) == other.before(at)
    event(f"calls differ: {one.calls.tolist() != other.calls.tolist()}, some are the same: {bool(one.before(at))}")


def stream(count: int, seed: int, first: int) -> list[Tuple]:
    """Keys, costs and gaps in us, of which those from tuple `first` on depend on the seed."""
    rng = np.random.default_rng(7)
    rows = np.stack([rng.choice([0, 100, 900, 1000], count), rng.integers(0, 9, count), rng.integers(1, 5, count)])
    rng = np.random.default_rng(seed)
    later = [rng.choice([0, 200, 1500], count), rng.integers(0, 9, count), rng.integers(0, 9, count)]
    rows[:, first:] = np.stack(later)[:, first:]
    # The first different tuple comes later than the one before it.
    rows[0, first] = 300
    times = np.cumsum(rows[0]).tolist()
    return [(t, b"k%d" % key, cost * 700.0) for t, key, cost in zip(times, *rows[1:].tolist(), strict=True)]


MODES: dict[str, dict[str, Any]] = {
    "open": {},
    "delays": {"network_delay": "1700us", "control_delay": "3ms"},
    "draws": {"service_distribution": "exponential", "speed_jitter": "0.3:5"},
    "block": {"queue_capacity": 1, "when_full": "block"},
    "drop": {"queue_capacity": 1, "when_full": "drop", "network_delay": "1ms"},
    "saturate": {"arrivals": "saturate", "max_pending": 3},
    "saturate and block": {"arrivals": "saturate", "max_pending": 4, "queue_capacity": 1},
    "crash": {"crash": ("20ms", "30:0")},
    "redeliver": {"crash": ("20ms", "30:0"), "redeliver": True, "control_delay": "2ms"},
    "come and go": {"join": ("15",), "leave": ("10ms",), "network_delay": "1ms"},
    "speeds": {"slowdown": "1,2", "slowdown_at": ("20=3", "30=1,1,4")},
}
FIRST, COUNT = 60, 120
LATER: list[dict[str, Any]] = [
    {"slowdown_at": (f"{FIRST}=0.2,5",)},
    {"leave": (str(FIRST),), "join": (str(FIRST + 5),)},
    {"crash": (str(FIRST), str(FIRST + 1)), "join": (str(FIRST + 1),)},
]


def merged(mode: dict[str, Any], later: dict[str, Any]) -> dict[str, Any]:
    return {**mode, **{name: (*mode.get(name, ()), *texts) for name, texts in later.items()}}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("spy", "rows"),
    [(SPIES[0], None), (SPIES[0], 16), (SPIES[1], 16), (SPIES[2], None), (SPIES[3], 16)],
    ids=["told", "told-16", "looks-16", "hears", "both-16"],
)
def test_every_mode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str, spy: str, rows: int | None) -> None:
    """Also where the future is read in the same chunk as the past, or is not."""
    if rows is not None:
        monkeypatch.setattr(layout, "BLOCK_ROWS", rows)
        monkeypatch.setattr(chunk_driven, "BLOCK", 8)
    found = []
    for number, later in enumerate([{}, *LATER]):
        options = {"grouping": spy, "workers": 5, "sources": 2, **merged(MODES[mode], later)}
        trace = open_trace(write_trace(tmp_path / f"{number}.trace", stream(COUNT, number, FIRST)))
        replay(trace, ReplayOptions(**options), log_directory=tmp_path / f"{number}.log", interpreted=True)
        arrivals = pq.read_table(tmp_path / f"{number}.log")["arrival_ns"].to_pylist()
        state = grouping_selection.select(spy).module.LATEST[0]
        found.append(Seen(state.calls[: state.used[0]].copy(), arrivals))
    at = min(one.arrivals[FIRST] for one in found)
    past = found[0].before(at)
    assert all(one.before(at) == past for one in found)
    kinds = Counter(row[names.HOOK] for row in past)
    assert kinds[names.OBSERVE] >= FIRST // 2
    assert (kinds[names.EXECUTED] > 10) == ("hears" in spy)
    if "block" not in mode and mode != "redeliver":
        # Choices come in the order of the stream.
        assert all(one.until_choice(FIRST - 1) == found[0].until_choice(FIRST - 1) for one in found)
    assert len({one.calls.tobytes() for one in found}) == len(found)
