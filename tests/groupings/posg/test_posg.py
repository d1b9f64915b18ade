"""POSG: both state machines by hand, the worked examples, and what 004 says that it does."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from streamgroup.base.errors import UsageError
from streamgroup.groupings.posg import sketches_in_flight
from streamgroup.groupings.posg.scheduler import EPOCH, ROUND_ROBIN, RUN, SEND_ALL, STATE, WAIT_ALL
from streamgroup.kernels.ordered.tournament_tree import set_leaf
from streamgroup.metrics.run_tables import summary
from streamgroup.replay.replay_trace import replay
from streamgroup.replay.scenario.grouping_selection import select
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.study.dry_run import dry_run
from streamgroup.traces.trace import Trace, open_trace
from tests.groupings.contexts_and_worker_changes import changed, started
from tests.traces_by_hand import write_trace

EXAMPLES = json.loads((Path(__file__).parents[2] / "data" / "examples.json").read_text())
A, B = 0, 1
# Wide sketches: A and B meet in no cell.
WIDE = "posg:batch=2,columns=1000,reply_delay=5ns,matrix_delay=3ns"


def example(name: str) -> tuple[Any, Any]:
    (found,) = [entry for entry in EXAMPLES if entry["id"] == name]
    return found["input"], found["expected"]


def send(state: Any, key: int, source: int = 0, now: int = 0) -> int:
    worker = int(state.choose(source, key, now))
    state.observe(source, key, worker, now)
    return worker


def serve(state: Any, worker: int, key: int, finish: int, took: int) -> None:
    state.executed(worker, key, finish - took, finish - took, finish)


def c_hat(state: Any, source: int = 0) -> list[float]:
    first = state.assigned.shape[1] // 2
    return [float(value) for value in state.assigned[source, first : first + len(state.counters)]]


def states(state: Any) -> list[int]:
    return [int(value) for value in state.plan[:, STATE]]


def told(state: Any, now: int, worker: int, sketch: Any = None) -> None:
    """Let a sketch of a worker come, by default an empty one."""
    cells = np.zeros_like(state.cells)
    if sketch is not None:
        cells[worker] = sketch
    sketches_in_flight.push(state.flight, cells, worker, now)
    set_leaf(state.due, state.first, 0, 0, now)
    state.tick(now)


def running(text: str, workers: int, sources: int = 1, until: int = 0) -> Any:
    """Start, and bring all sources to RUN with C_hat 0: empty sketches, and replies that have come by `until`."""
    state = started(text, workers, sources)
    for worker in range(workers):
        told(state, 0, worker)
    for source in range(sources):
        for worker in range(workers):
            assert send(state, A, source) == worker
            serve(state, worker, A, 0, 0)
    state.tick(until)
    assert states(state) == [RUN] * sources
    return state


def test_from_round_robin_to_run_by_hand() -> None:
    state = started(WIDE, 2, sources=1)
    assert [send(state, key) for key in (A, B) * 4] == [0, 1] * 4
    # A takes 10 and B takes 4. After two tuples a worker looks, after four nothing has changed and it sends.
    for finish in (4, 8, 10, 12, 16, 20, 30, 40):
        state.tick(finish - 1)
        if finish % 10 == 0:
            serve(state, 0, A, finish, 10)
        else:
            serve(state, 1, B, finish, 4)
    assert state.control_messages[0] == 2
    assert state.control_bytes[0] == 2 * 4 * 1000 * 16
    assert not state.cells.any()
    state.tick(42)
    assert states(state) == [ROUND_ROBIN]
    state.tick(43)
    assert states(state) == [SEND_ALL]
    assert state.plan[0, EPOCH] == 1
    # Worker 0 has never seen B: it is taken for average there, and A on worker 1.
    assert send(state, B) == 0
    assert states(state) == [SEND_ALL]
    assert send(state, A) == 1
    assert states(state) == [WAIT_ALL]
    assert c_hat(state) == [10.0, 4.0]
    # The least so far, while the replies are awaited.
    assert [send(state, A) for _ in range(3)] == [1, 1, 0]
    assert c_hat(state) == [20.0, 12.0]
    # The fifth of each carries the marker: Delta is 47 - 10 and 54 - 4, 5 ns later.
    serve(state, 0, B, 47, 4)
    state.tick(52)
    serve(state, 1, A, 54, 10)
    state.tick(58)
    assert states(state) == [WAIT_ALL]
    assert c_hat(state) == [20.0, 12.0]
    state.tick(59)
    assert states(state) == [RUN]
    assert c_hat(state) == [20.0 + 37, 12.0 + 50]
    assert [send(state, A) for _ in range(3)] == [0, 1, 1]
    assert c_hat(state) == [67.0, 70.0]
    assert state.control_messages[0] == 4
    assert state.control_bytes[0] == 2 * 4 * 1000 * 16 + 2 * 16


@pytest.mark.parametrize(("unseen", "estimate"), [("mean", 27 / 5), ("zero", 0.0)])
def test_an_item_that_was_never_seen(unseen: str, estimate: float) -> None:
    given, expected = example("POSG-05")
    assert given["note"] == "d hashes to row0 col2 (F=0) and row1 col0 (F=2)"
    assert expected["authors_code"].startswith("0 ")
    assert expected["recommended"].endswith("= 5.4")
    state = started(f"posg:rows=2,columns=3,unseen={unseen}", 1, sources=1)
    state.cell_of[A] = (2, 3)
    state.cell_of[B] = (1, 3)
    told(state, 0, 0, [[2, 20], [3, 7], [0, 0], [2, 20], [3, 7], [0, 0]])
    send(state, A)
    assert c_hat(state) == [estimate]
    # One that was seen has the mean of the row in which its F is smallest.
    send(state, B)
    assert c_hat(state) == [estimate + 10.0]


def test_the_sum_of_what_was_executed_ignores_idle_time() -> None:
    state = started(WIDE + ",sync=exec", 1, sources=1)
    for finish in (100, 200, 300, 400):
        assert send(state, A) == 0
        serve(state, 0, A, finish, 10)
    state.tick(403)
    send(state, A)
    serve(state, 0, A, 500, 10)
    state.tick(505)
    assert states(state) == [RUN]
    # C_hat was 10 in the marker; executed were 50.
    assert c_hat(state) == [50.0]


def test_synchronisation_and_stale_epochs_of_the_paper() -> None:
    given, expected = example("POSG-07")
    # In tenths, as the clock has whole ns.
    marked, true, later = (
        [int(10 * value) for value in row]
        for row in (given["C_hat_at_marker"], given["C_true_at_marker_end"], given["C_hat_when_all_replies"])
    )
    state = started("posg", given["k"], sources=1)
    told(state, 0, 0)
    told(state, 0, 1)
    told(state, 0, 1)
    assert state.plan[0, EPOCH] == given["epoch"] - 1
    send(state, A)
    # Another sketch comes while the marker of epoch 2 is with worker 0, which then replies: 99 tenths.
    told(state, 1, 1)
    assert state.plan[0, EPOCH] == given["epoch"]
    serve(state, 0, A, 990, 0)
    state.tick(990)
    for worker in range(2):
        set_leaf(state.assigned, state.least, 0, worker, float(marked[worker]))
        assert send(state, A) == worker
        assert c_hat(state)[worker] == marked[worker]
    for worker in range(2):
        set_leaf(state.assigned, state.least, 0, worker, float(later[worker]))
    serve(state, 1, A, true[1], 1)
    state.tick(true[1])
    assert c_hat(state) == later
    serve(state, 0, A, true[0], 1)
    state.tick(true[0])
    assert c_hat(state) == [10 * value for value in expected["C_hat_after"]]
    assert states(state) == [{"RUN": RUN}[expected["state"]]]


def test_a_sketch_comes_before_replies_of_the_same_instant() -> None:
    state = running("posg:reply_delay=2ns", 2, until=2)
    told(state, 5, 0)
    assert [send(state, A), send(state, A)] == [0, 1]
    serve(state, 0, A, 8, 1)
    serve(state, 1, A, 8, 1)
    # Both replies are due at 10, and so is another sketch: they are of an epoch that has passed.
    told(state, 10, 1)
    assert states(state) == [SEND_ALL]
    assert c_hat(state) == [0.0, 0.0]
    assert state.due[0, 1] > 1 << 62


def test_markers_of_several_sources_at_one_worker_and_the_newest_of_each() -> None:
    state = started("posg:reply_delay=1ns", 2, sources=2)
    told(state, 0, 0)
    told(state, 0, 1)
    # Source 0 sends its marker to worker 0, is told to begin anew, and sends the next one after source 1's.
    assert send(state, A, 0) == 0
    told(state, 1, 0)
    assert send(state, A, 1) == 0
    assert send(state, A, 0) == 0
    assert [send(state, A, 0), send(state, A, 1)] == [1, 1]
    for finish in (10, 20, 30):
        serve(state, 0, A, finish, 10)
    assert state.control_messages[0] == 2
    for finish in (31, 40):
        serve(state, 1, A, finish, 9)
    assert state.control_messages[0] == 4
    state.tick(32)
    assert states(state) == [RUN, WAIT_ALL]
    state.tick(41)
    assert states(state) == [RUN, RUN]
    assert c_hat(state, 0) == [30.0, 31.0]
    assert c_hat(state, 1) == [20.0, 40.0]


def test_sketches_that_move_are_not_sent() -> None:
    state = started("posg:batch=1,mu=0.05,stability=skip_empty", 1, sources=1)
    for place, took in enumerate((100, 200, 400, 800)):
        serve(state, 0, A, 1000 * (place + 1), took)
    assert state.control_messages[0] == 0
    # The mean of 1500 over four moves to 1875 over five, exactly 0.
    serve(state, 0, A, 9000, 375)
    assert state.control_messages[0] == 1


@pytest.mark.parametrize("windows", [0, 3])
def test_a_source_synchronises_by_itself(windows: int) -> None:
    state = running(f"posg:batch=4,resync_windows={windows}", 2)
    found = []
    for _ in range(40):
        send(state, A)
        found.append(states(state)[0])
    first = found.index(SEND_ALL) if SEND_ALL in found else None
    assert first == (2 * 4 * windows if windows else None)
    assert state.plan[0, EPOCH] == (2 if windows else 1)


def test_round_robin_starts_at_the_source() -> None:
    state = started("posg", 3, sources=5)
    assert [[send(state, A, source) for _ in range(4)] for source in range(5)] == [
        [0, 1, 2, 0],
        [1, 2, 0, 1],
        [2, 0, 1, 2],
        [0, 1, 2, 0],
        [1, 2, 0, 1],
    ]


def test_when_a_worker_joins_its_sketch_is_awaited() -> None:
    before = running("posg", 2, sources=2)
    for worker, value in enumerate((50.0, 70.0)):
        set_leaf(before.assigned, before.least, 1, worker, value)
    state = changed(before, [0, 1, 2], joined=(2,))
    assert states(state) == [ROUND_ROBIN] * 2
    assert state.plan[:, EPOCH].tolist() == [2, 2]
    assert c_hat(state, 1) == [50.0, 70.0, 50.0]
    assert state.state_entries == 3 * (2 * 4 * 54 + 1)
    assert [send(state, A) for _ in range(3)] == [0, 1, 2]
    told(state, 5, 1)
    assert states(state) == [ROUND_ROBIN] * 2
    told(state, 6, 2)
    assert states(state) == [SEND_ALL] * 2
    assert [send(state, A, 1) for _ in range(4)] == [0, 1, 2, 0]
    # The old state is as it was.
    assert states(before) == [RUN] * 2


def test_when_a_worker_leaves_the_sketches_of_the_others_are_known() -> None:
    state = running("posg:batch=1,matrix_delay=1us", 3)
    serve(state, 1, A, 10, 10)
    serve(state, 1, A, 20, 10)
    sent = int(state.control_messages[0])
    state = changed(state, [0, 2], left=(1,))
    # What the leaver has said does not come, and it says nothing more.
    state.tick(2_000)
    for finish in (3000, 4000, 5000, 6000):
        serve(state, 1, A, finish, 10)
    assert state.control_messages[0] == sent
    assert states(state) == [ROUND_ROBIN]
    told(state, 9000, 0)
    assert states(state) == [SEND_ALL]
    assert [send(state, A) for _ in range(2)] == [0, 2]
    assert states(state) == [WAIT_ALL]


@pytest.mark.parametrize("text", ["posg:reply_delay=5", "posg:matrix_delay=-1ms", "posg:sync=never", "posg:batch=0"])
def test_parameters_are_checked(text: str) -> None:
    with pytest.raises(UsageError):
        started(text, 2)


def skewed(folder: Path, exponent: float, tuples: int = 60_000, every: int = 10) -> Trace:
    """Write keys of a Zipf law over 512 that cost 1 to 64 ms each, an arrival every `every` ms, as 004 has them."""
    rng = np.random.default_rng(5)
    share = np.arange(1, 513, dtype=np.float64) ** -exponent
    keys = rng.choice(512, tuples, p=share / share.sum())
    cost = 1000.0 * (1 + rng.permutation(512) % 64)
    rows = [(place * every * 1000, b"%d" % key, float(cost[key])) for place, key in enumerate(keys)]
    return open_trace(write_trace(folder / f"zipf{exponent}", rows))


@pytest.mark.parametrize("exponent", [1.5, 2.0])
def test_it_beats_shuffling_and_not_full_knowledge(tmp_path: Path, exponent: float) -> None:
    trace = skewed(tmp_path, exponent)
    found = {}
    for name in ("sg", "posg", "full_knowledge"):
        options = ReplayOptions(name, workers=5, sources=1, arrivals="utilization=0.99", window="10%")
        outcome = replay(trace, options, log_directory=tmp_path / name)
        log = pq.read_table(tmp_path / name)
        late = (log["finish_ns"].to_numpy() - log["arrival_ns"].to_numpy())[trace.tuples // 2 :]
        found[name] = (summary(outcome)["latency_mean_ms"], float(late.mean()), outcome)
    assert found["full_knowledge"][0] <= found["posg"][0] < found["sg"][0]
    # It stays so once sources estimate: the second half alone.
    assert found["posg"][1] < found["sg"][1]
    outcome = found["posg"][2]
    # 004, theorem 3.3: a few messages for each batch of a worker.
    assert 0 < outcome.control_messages < 3 * 5 * trace.tuples / 1024


def test_one_worker_is_as_round_robin(tmp_path: Path) -> None:
    trace = skewed(tmp_path, 1.5, tuples=8000, every=30)
    logs = []
    for name in ("sg", "posg:batch=64"):
        replay(trace, ReplayOptions(name, workers=1, sources=2), log_directory=tmp_path / name[:2])
        logs.append(pq.read_table(tmp_path / name[:2]))
    assert logs[0] == logs[1]


def test_arrivals_of_the_paper(tmp_path: Path) -> None:
    given, expected = example("POSG-10")
    costs = [1000.0 * cost for cost in range(given["w_min"], given["w_max"] + 1)]
    rows = [(place, b"%d" % place, cost) for place, cost in enumerate(costs)]
    trace = open_trace(write_trace(tmp_path / "t", rows))
    assert trace.total_cost_ns == expected["mean_exec_ms_uniform_items"] * 1e6 * given["w_n"]
    for percent in given["overprovisioning_pct"]:
        options = ReplayOptions("posg", workers=given["k"], arrivals=f"utilization={100 / percent:.15f}")
        replay(trace, options, log_directory=tmp_path / str(percent), interpreted=True)
        arrivals = pq.read_table(tmp_path / str(percent))["arrival_ns"].to_numpy()
        assert arrivals[-1] / (len(rows) - 1) / 1e6 == pytest.approx(expected["inter_arrival_ms"][str(percent)])


def test_it_is_refused_where_tuples_are_dropped(tmp_path: Path) -> None:
    path = write_trace(tmp_path / "t", [(0, b"a", None), (1, b"b", None)])
    options = ReplayOptions("posg:batch=8", workers=2, queue_capacity=5, when_full="drop")
    for attempt in (lambda: replay(open_trace(path), options), lambda: dry_run(path, options)):
        with pytest.raises(UsageError, match=r"-g posg:batch=8 counts .* --when-full drop") as error:
            attempt()
        assert error.value.exit_code == 2
        assert error.value.hint == "use --when-full block"
    dry_run(path, ReplayOptions("posg", workers=2, queue_capacity=5, when_full="block"))
    dry_run(path, ReplayOptions("sg", workers=2, queue_capacity=5, when_full="drop"))


def test_a_batch_that_is_too_small_is_told() -> None:
    assert select("posg").params.doubts(64, 1, 1000) == []
    assert "raise batch" in select("posg:batch=64").params.doubts(640, 1, 1000)[0]
    assert select("posg:batch=64").params.doubts(50, 1, 1000) == []
