"""The hook contract, with a grouping outside the package and its naive twin; compiled equals interpreted."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgroup.base.errors import RunError
from streamgroup.kernels.ordered.tournament_tree import set_leaf
from streamgroup.replay.replay_trace import replay
from streamgroup.replay.scenario.grouping_selection import select
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.replay.simulation.tuples_in_flight import make_in_flight
from streamgroup.replay.tuple_arrays import NEVER
from streamgroup.traces.trace import open_trace
from tests.naive.replay.simulate import simulate
from tests.traces_by_hand import Tuple, write_trace

LISTENER = Path(__file__).parents[1] / "groupings_outside_package" / "listener.py"
DELAY = 1_500_000


class NaiveListener:
    """The listener again, on lists and dictionaries."""

    def __init__(self, workers: int, bonus: int) -> None:
        self.outstanding = [-bonus] + [0] * (workers - 1)
        self.messages: list[tuple[int, int]] = []
        self.calls: list[tuple[Any, ...]] = []

    def choose(self, source: int, key: Any, now: int) -> int:
        return self.outstanding.index(min(self.outstanding))

    def observe(self, source: int, key: Any, worker: int, now: int) -> None:
        self.outstanding[worker] += 1
        self.calls.append(("observe", source, key, worker, now))

    def executed(self, worker: int, key: Any, arrival: int, start: int, finish: int) -> None:
        self.calls.append(("executed", worker, key, arrival, start, finish))
        self.messages.append((finish + DELAY, worker))

    def tick(self, now: int) -> None:
        while self.messages and self.messages[0][0] <= now:
            self.outstanding[self.messages.pop(0)[1]] -= 1
        self.calls.append(("tick", now))


def stream(seed: int, count: int) -> list[Tuple]:
    rng = np.random.default_rng(seed)
    gaps = rng.choice([0, 0, 200, 1000, 4000], count)
    keys = rng.zipf(1.4, count) % 7
    return [(int(time), b"k%d" % key, None) for time, key in zip(np.cumsum(gaps), keys, strict=True)]


def heard(trace: Any, options: ReplayOptions, *, interpreted: bool) -> tuple[list[tuple[Any, ...]], Any]:
    outcome = replay(trace, options, interpreted=interpreted)
    state = select(options.grouping).module.LATEST[0]
    names = {0: ("tick", 1), 1: ("executed", 5), 2: ("observe", 4)}
    texts = trace.key_bytes(list(range(trace.keys)))
    calls = []
    for row in state.calls[: state.used[0]].tolist():
        name, fields = names[row[0]]
        call = [name, *row[1 : 1 + fields]]
        if name != "tick":
            call[2] = texts[row[2]]
        calls.append(tuple(call))
    return calls, outcome


@pytest.mark.parametrize("interpreted", [True, False])
@pytest.mark.parametrize(("workers", "slowdown"), [(1, "1"), (3, "1,2.5"), (6, "1")])
def test_every_hook_is_called_when_it_must_be(tmp_path: Path, interpreted: bool, workers: int, slowdown: str) -> None:
    tuples = stream(workers, 2500)
    trace = open_trace(write_trace(tmp_path / "t", tuples))
    options = ReplayOptions(
        grouping=f"{LISTENER}:bonus=2",
        workers=workers,
        sources=2,
        slowdown=slowdown,
        network_delay="700us",
        control_delay=f"{DELAY}ns",
    )
    twin = NaiveListener(workers, 2)
    run = simulate(tuples, twin, workers=workers, sources=2, slowdown=slowdown, network_delay_ns=700_000)
    calls, outcome = heard(trace, options, interpreted=interpreted)
    assert calls == twin.calls
    assert outcome.control_messages == len(tuples)
    assert outcome.last_finish_ns == max(record.finish_ns for record in run.records)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 9), st.lists(st.tuples(st.integers(0, 8), st.integers(0, 5)), min_size=1, max_size=80))
def test_the_tournament_names_the_earliest_event_of_the_lowest_worker(
    workers: int, sets: list[tuple[int, int]]
) -> None:
    queue = make_in_flight(workers)
    at = [NEVER] * workers
    assert queue.tree[0, 1] == NEVER
    for worker, moment in sets:
        at[worker % workers] = moment if moment else NEVER
        set_leaf(queue.tree, queue.winner, 0, worker % workers, at[worker % workers])
        assert queue.tree[0, 1] == min(at)
        if min(at) < NEVER:
            assert queue.winner[0, 1] == at.index(min(at))


@pytest.mark.parametrize("interpreted", [True, False])
@pytest.mark.parametrize("costs", [None, (1000.0, 2500.0, 400.5)])
def test_a_declared_exception_sees_the_workers_as_they_are(
    tmp_path: Path, interpreted: bool, costs: tuple[float, ...] | None
) -> None:
    oracle = Path(__file__).parents[1] / "groupings_outside_package" / "oracle.py"
    tuples = [(i * 300, b"k%d" % (i % 9), costs[i % 3] if costs else None) for i in range(900)]
    trace = open_trace(write_trace(tmp_path / "t", tuples))
    slowdown = [1.0, 2.0, 0.5, 1.0]
    options = ReplayOptions(grouping=str(oracle), workers=4, sources=3, slowdown="1,2,0.5,1")
    outcome = replay(trace, options, interpreted=interpreted)
    free, loads = [0.0] * 4, [0] * 4
    for time, _, cost in tuples:
        base = 1_000_000.0 if cost is None else cost * 1000
        finish = [max(time * 1000, free[w]) + base * slowdown[w] for w in range(4)]
        worker = finish.index(min(finish))
        free[worker] = finish[worker]
        loads[worker] += 1
    assert outcome.worker.tuples.tolist() == loads
    blind = replay(trace, ReplayOptions(grouping=f"{oracle}:blind=true", workers=4), interpreted=interpreted)
    assert blind.worker.tuples.tolist() == [900, 0, 0, 0]


@pytest.mark.parametrize(("worker", "interpreted"), [(-1, True), (4, True), (1 << 40, True), (-1, False)])
def test_a_worker_that_there_is_not_stops_the_run(tmp_path: Path, interpreted: bool, worker: int) -> None:
    trace = open_trace(write_trace(tmp_path / "t", [(i, b"a", None) for i in range(300)]))
    file = tmp_path / "mine.py"
    file.write_text(
        "from typing import NamedTuple\n"
        "import numpy as np\n"
        "from streamgroup.groupings.protocol import GroupingParams as Params\n\n"
        "class Bad(NamedTuple):\n"
        "    seen: np.ndarray\n"
        "    def choose(self, source, key, now):\n"
        "        self.seen[0] += 1\n"
        f"        return {worker} if self.seen[0] == 290 else 0\n\n"
        "def start(params, context):\n"
        "    return Bad(np.zeros(1, np.int64))\n"
    )
    with pytest.raises(RunError, match="a worker that does not exist, for tuple 289") as error:
        replay(trace, ReplayOptions(grouping=str(file), workers=4), interpreted=interpreted)
    assert error.value.hint == "choose() must return 0..3"
