"""The declared oracles: worked examples, the bound on the makespan, and what they see."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgroup.replay.replay_trace import replay
from streamgroup.replay.scenario.grouping_selection import select
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.traces.trace import Trace, open_trace
from tests.groupings.contexts_and_worker_changes import changed, chosen, started, workers
from tests.traces_by_hand import write_trace

EXAMPLES = json.loads((Path(__file__).parents[1] / "data" / "examples.json").read_text())
SECOND = 1_000_000_000


def example(name: str) -> tuple[Any, Any]:
    (found,) = [entry for entry in EXAMPLES if entry["id"] == name]
    return found["input"], found["expected"]


def replayed(trace: Trace, folder: Path, **options: Any) -> list[dict[str, Any]]:
    replay(trace, ReplayOptions(**options), log_directory=folder, interpreted=True)
    rows: list[dict[str, Any]] = pq.read_table(folder).to_pylist()
    return rows


@pytest.mark.parametrize("text", ["full_knowledge", "full_knowledge:backlog=true", "oracle"])
def test_the_stream_of_the_paper(tmp_path: Path, text: str) -> None:
    given_, expected = example("POSG-02")
    tuples = [
        (arrival * 1_000_000, b"k", float(cost) * 1_000_000)
        for arrival, cost in zip(given_["arrivals_s"], given_["exec_s"], strict=True)
    ]
    trace = open_trace(write_trace(tmp_path / "t", tuples))
    rows = replayed(trace, tmp_path / "log", grouping=text, workers=given_["k"])
    assert [row["worker"] for row in rows] == expected["assignment"]
    completion = [(row["finish_ns"] - row["arrival_ns"]) // SECOND for row in rows]
    assert completion == expected["completion_s"]
    assert sum(completion) == expected["cumulated_s"]


def test_the_sums_are_those_of_the_paper() -> None:
    given_, expected = example("POSG-02")
    seen = workers(given_["k"])
    state = started("full_knowledge", given_["k"], seen=seen)
    for cost in given_["exec_s"]:
        seen.cost[0] = cost * SECOND
        state.choose(0, 0, 0)
    assert [work // SECOND for work in state.work.tolist()] == expected["C_final"]


def makespan(text: str, costs: list[int], count: int) -> int:
    """Send tuples that are all there at once, each with its own cost, and give the last finish."""
    seen = workers(count)
    state = started(text, count, seen=seen)
    for cost in costs:
        seen.cost[0] = cost
        seen.free[state.choose(0, 0, 0)] += cost
    return int(seen.free.max())


@pytest.mark.parametrize("text", ["full_knowledge", "oracle"])
def test_the_bound_is_reached(text: str) -> None:
    given_, expected = example("POSG-03")
    assert makespan(text, given_["w"], given_["k"]) == expected["greedy_makespan"]


@pytest.mark.parametrize("text", ["full_knowledge", "oracle"])
@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(1, 1000), min_size=1, max_size=60), st.integers(1, 9))
def test_the_makespan_is_near_the_least_possible(text: str, costs: list[int], count: int) -> None:
    # No schedule is shorter than the mean work of a worker, or than the longest tuple: here both are times `count`.
    work, longest = sum(costs), max(costs) * count
    assert makespan(text, costs, count) * count**2 <= (2 * count - 1) * max(work, longest)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from([0.0, 0.4995, 1.5, 700.25, 31_000.0]), min_size=1, max_size=50),
    st.sampled_from([(1.0,), (1.0, 2.5), (0.5, 1.0, 0.333), (3.0, 1.0, 1.0, 1.0)]),
    st.integers(1, 6),
    st.booleans(),
)
def test_tuple_by_tuple_as_the_rules_read(
    tmp_path_factory: pytest.TempPathFactory,
    costs: list[float],
    factors: tuple[float, ...],
    count: int,
    constant: bool,
) -> None:
    folder = tmp_path_factory.mktemp("rules")
    gaps = [300 * (i % 5) for i in range(len(costs))]
    times = np.cumsum(gaps).tolist()
    trace = open_trace(write_trace(folder / "t", [(t, b"k", c) for t, c in zip(times, costs, strict=True)]))
    options = {
        "workers": count,
        "slowdown": ",".join(map(str, factors)),
        "service": "700us" if constant else None,
        "network_delay": "1ms",
    }
    speed = [factors[worker % len(factors)] for worker in range(count)]
    for text in ("full_knowledge", "oracle"):
        sums, free = [0] * count, [0] * count
        rows = replayed(trace, folder / text, grouping=text, **options)
        for row, time, cost in zip(rows, times, costs, strict=True):
            now = (time - times[0]) * 1000
            base = 700_000 if constant else round(float(np.float32(cost)) * 1000)
            ranks = sums if text == "full_knowledge" else [max(now, done) for done in free]
            worker = ranks.index(min(ranks))
            service = round(base * speed[worker])
            sums[worker] += service
            free[worker] = max(free[worker], now + 1_000_000) + service
            assert (row["worker"], row["finish_ns"]) == (worker, free[worker])


def test_an_idle_worker_is_seen_with_backlog_only() -> None:
    seen = workers(2)
    paper, oracle = started("full_knowledge", 2, seen=seen), started("oracle", 2, seen=seen)
    seen.cost[0] = 10
    assert chosen(paper, 0, 2) == [0, 1]
    seen.cost[0] = 1
    assert paper.choose(0, 0, 0) == 0
    # All is done at 10, long ago: the sums still say that worker 1 has less.
    seen.free[:] = (11, 10)
    assert paper.choose(0, 0, 100) == 1
    assert oracle.choose(0, 0, 100) == 0
    assert oracle.choose(0, 0, 10) == 1


def test_one_sum_for_the_whole_stream() -> None:
    state = started("full_knowledge", 3, sources=3)
    assert [state.choose(source, 0, 0) for source in (0, 1, 2, 2, 0)] == [0, 1, 2, 0, 1]


def test_a_joiner_has_the_smallest_sum_of_those_who_are_left() -> None:
    seen = workers(3)
    state = started("full_knowledge", 3, seen=seen)
    for cost in (1, 50, 70):
        seen.cost[0] = cost
        state.choose(0, 0, 0)
    after = changed(state, [1, 2, 3], joined=(3,), left=(0,))
    assert after.work.tolist() == [1, 50, 70, 50]
    assert chosen(after, 0, 1) == [1]
    assert chosen(after, 0, 1) == [3]


def test_arrays_of_the_loop_are_taken_anew() -> None:
    for text in ("full_knowledge", "oracle"):
        state = started(text, 2, seen=workers(2))
        grown = workers(4, (1.0, 1.0, 9.0, 1.0))
        grown.free[:] = (50, 50, 40, 0)
        after = changed(state, [0, 2, 3], joined=(2, 3), left=(1,), seen=grown)
        for field in set(after._fields) & {"cost", "free", "slowdown"}:
            assert getattr(after, field) is getattr(grown, field)
        assert chosen(after, 0, 1) == ([3] if text == "oracle" else [0])


def test_they_see_what_they_declare_and_no_more() -> None:
    assert select("full_knowledge").params.sees() == ("cost", "slowdown")
    assert select("full_knowledge:backlog=true").params.sees() == select("oracle").params.sees() == ("free",)
    assert select("full_knowledge:backlog=true").text == "full_knowledge:backlog=true"
    assert select("oracle").text == "oracle"
