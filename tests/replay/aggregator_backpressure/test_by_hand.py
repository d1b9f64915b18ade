"""Full aggregators hold workers back: worked out by hand. Times in the comments are in ms."""

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from streamgroup.metrics.run_tables import summary
from streamgroup.replay.replay_trace import replay
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.traces.trace import open_trace
from tests.traces_by_hand import write_trace

MS = 1_000_000
OPTIONS: dict[str, Any] = {"sources": 1, "queue_capacity": 1, "aggregators": 1, "aggregate_every": "1"}


def run(path: Path, tuples: list[tuple[int, bytes, float]], **options: Any) -> tuple[list[Any], dict[str, Any]]:
    """Replay tuples (arrival, key, cost); return (worker, start, finish) of each, and the summary."""
    trace = open_trace(write_trace(path / "x.trace", [(at * 1000, key, cost * 1000.0) for at, key, cost in tuples]))
    outcome = replay(trace, ReplayOptions(**{**OPTIONS, **options}), log_directory=path / "log", interpreted=True)
    rows = [row for part in sorted((path / "log").iterdir()) for row in pq.read_table(part).to_pylist()]
    return [(row["worker"], row["start_ns"] / MS, row["finish_ns"] / MS) for row in rows], summary(outcome)


def test_a_worker_waits_with_a_partial_result_and_starts_no_tuple(tmp_path: Path) -> None:
    """One worker of 1 a tuple, one aggregator of 10 a partial result; each tuple is a window.

    The first three results are accepted at 1 (starts at once), 2 (waits, starts at 11) and 11, when that starts: so
    tuple #3 starts at 11. Its result, of 12, gets its place at 21, when the third starts, and #4 starts then.
    """
    served, found = run(tmp_path, [(0, b"a", 1)] * 5, grouping="kg", workers=1, aggregator_service="10ms")
    assert served == [(0, 0, 1), (0, 1, 2), (0, 2, 3), (0, 11, 12), (0, 21, 22)]
    assert found["partials"] == 5
    # Complete at 11, 21, 31, 41 and 51; all windows ended at 0.
    assert found["result_delay_ms_mean"] == 31
    assert found["result_delay_ms_max"] == 51
    assert found["completion_s"] == 0.051
    assert found["aggregator_utilization_max"] == pytest.approx(50 / 51)
    assert found["queue_max"] == 1


def test_a_larger_queue_holds_back_later(tmp_path: Path) -> None:
    """With two places the result of 3 is accepted at once, that of 4 waits until 11."""
    served, _ = run(tmp_path, [(0, b"a", 1)] * 6, grouping="kg", workers=1, aggregator_service="10ms", queue_capacity=2)
    assert served == [(0, 0, 1), (0, 1, 2), (0, 2, 3), (0, 3, 4), (0, 11, 12), (0, 21, 22)]


def test_a_window_is_closed_when_its_last_tuple_is_accepted(tmp_path: Path) -> None:
    """Windows of two tuples. Worker 0 finishes #0 at 1, but #1 comes at 5: what is merged in 2 leaves then.

    #1 is done at 6, and its result waits for the aggregator until 7. The window ends at 5: results take 2 and 4.
    """
    served, found = run(
        tmp_path, [(0, b"a", 1), (5, b"b", 1)], grouping="sg", workers=2, aggregator_service="2ms", aggregate_every="2"
    )
    assert served == [(0, 0, 1), (1, 5, 6)]
    assert (found["result_delay_ms_mean"], found["result_delay_ms_max"]) == (3, 4)


# Keys that `kg` sends to worker 0, and to worker 1, of two.
ZERO, ONE = [b"b", b"d", b"e", b"i", b"j"], [b"a", b"c", b"f"]


def test_the_tuple_in_service_goes_on_while_its_worker_waits(tmp_path: Path) -> None:
    """Windows of six tuples of 1 to 10; one place at each worker, and at an aggregator of 100.

    At 0 source 0 has #0, #2 for worker 0 and #4 for worker 1, where #1 (to 5) and #3 of source 1 are: so it is blocked
    until 5, and #6 with it. Source 1 sends #5 and #7 to worker 0, which begins #7, of the second window, at 3.

    #4 is accepted at 5 and closes the first window. Worker 0 has three results to send: the first starts, the second
    takes the place, it waits with the third. #7 ends at 13, and #6 cannot start before 105, when the second result
    starts. Worker 1 waits from 15 on, worker 0 again from 106, worker 1 with its second result from 205: who has waited
    longest gets the place that opens every 100.
    """
    keys = [ZERO[0], ONE[0], ZERO[1], ONE[1], ONE[2], ZERO[2], ZERO[3], ZERO[4]]
    tuples = list(zip([0, 0, 0, 0, 0, 1, 2, 2], keys, [1, 5, 1, 5, 5, 1, 1, 10], strict=True))
    served, found = run(
        tmp_path, tuples, grouping="kg", workers=2, sources=2, aggregator_service="100ms", aggregate_every="6"
    )
    assert served == [
        (0, 0, 1), (1, 0, 5), (0, 1, 2), (1, 5, 10), (1, 10, 15), (0, 2, 3), (0, 105, 106), (0, 3, 13),
    ]  # fmt: skip
    # Worker 0 at 105, 205, 305; then 1: 405, 0: 505, 1: 605, 0: 705, 1: 805. Windows end at 1 and at 2.
    first, second = [105, 205, 305, 405, 605, 805], [505, 705]
    delays = [at - 1 for at in first] + [at - 2 for at in second]
    assert found["partials"] == len(delays)
    assert found["result_delay_ms_mean"] == sum(delays) / len(delays)
    assert found["result_delay_ms_max"] == 804
    assert found["completion_s"] == 0.805


def test_of_workers_that_wait_since_the_same_instant_the_lowest_id_goes_first(tmp_path: Path) -> None:
    """Three workers finish at 1: 0 is served by the aggregator, 1 has its place, 2 waits until 11.

    #3 and #4 start at 1, #5 at 11. At 2 workers 0 and 1 wait behind worker 2, of which 0 gets the place of 21, 1 that
    of 31.
    """
    tuples = [(0, b"%d" % i, 1) for i in range(9)]
    served, found = run(tmp_path, tuples, grouping="sg", workers=3, aggregator_service="10ms")
    assert served[:6] == [(0, 0, 1), (1, 0, 1), (2, 0, 1), (0, 1, 2), (1, 1, 2), (2, 11, 12)]
    assert served[6:] == [(0, 21, 22), (1, 31, 32), (2, 41, 42)]
    assert found["completion_s"] == 0.091


def test_tuples_of_the_warmup_have_no_partial_results(tmp_path: Path) -> None:
    """The first three are served one after the other; the results of #3, #4 and #5 are accepted at 4, 5 and 14."""
    served, found = run(tmp_path, [(0, b"a", 1)] * 7, grouping="kg", workers=1, aggregator_service="10ms", warmup="3")
    assert [start for _, start, _ in served] == [0, 1, 2, 3, 4, 5, 14]
    assert found["partials"] == 4


def test_without_windows_all_leaves_at_the_end(tmp_path: Path) -> None:
    """Nothing holds a worker back before its last tuple. Four keys on one worker: merged at 16, 26, 36, 46."""
    tuples = [(0, key, 1) for key in (b"a", b"b", b"c", b"d", b"a", b"b")]
    served, found = run(tmp_path, tuples, grouping="kg", workers=1, aggregator_service="10ms", aggregate_every=None)
    assert [start for _, start, _ in served] == [0, 1, 2, 3, 4, 5]
    assert found["partials"] == 4
    assert found["result_delay_ms_mean"] == 31
    assert found["result_delay_ms_max"] == 46


def test_the_network_takes_places(tmp_path: Path) -> None:
    """An aggregator that takes no time is full of the one that is on its way to it, for 5.

    #0 and #1 start when they reach their workers, at 5. At 6 worker 0 sends its result, which arrives at 11; worker 1
    waits until then, so that #3, which reaches it at 10, starts at 11. At 11 worker 0 has finished #2 and waits until
    16, worker 1 waits from 12 to 21.
    """
    served, found = run(tmp_path, [(0, b"%d" % i, 1) for i in range(6)], grouping="sg", workers=2, network_delay="5ms")
    assert [start for _, start, _ in served] == [5, 5, 10, 11, 16, 21]
    assert found["result_delay_ms_max"] == 36


def test_a_closed_loop_goes_at_the_speed_of_the_aggregators(tmp_path: Path) -> None:
    """One pending tuple: emitted when the one before has finished, and started when its result has a place."""
    served, _ = run(
        tmp_path, [(0, b"a", 1)] * 5, grouping="kg", workers=1, aggregator_service="10ms", arrivals="saturate",
        max_pending=1,
    )  # fmt: skip
    assert [start for _, start, _ in served] == [0, 1, 2, 11, 21]
