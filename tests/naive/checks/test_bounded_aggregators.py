"""Workers that aggregators hold back in the naive twin, worked out by hand. Times in the comments are in ms."""

from typing import Any

from tests.naive.cases_by_hand import MS, chosen, served
from tests.naive.groupings.grouping_by_text import make
from tests.naive.groupings.simple_groupings import Grouping, Setting
from tests.naive.metrics.aggregation import Merge
from tests.naive.metrics.metric_formulas import as_float
from tests.naive.metrics.metrics import stage_metrics
from tests.naive.replay.bounded_aggregators import Bounded, simulate_bounded


class ToFirst(Grouping):
    """Sends each tuple to the worker that the first letter of its key names."""

    def choose(self, source: int, key: bytes | None, now: int) -> int:
        return int((key or b"0")[:1])


def held_back(
    rows: list[tuple[float, str, float]], *, workers: int, service: float, capacity: int, **options: Any
) -> Bounded:
    """Tuples (arrival, key, cost) to one aggregator, which serves each partial result for so long, in ms."""
    tuples = [(round(at * 1000), key.encode(), cost * 1000.0) for at, key, cost in rows]
    delay, every = options.get("network_delay_ns", 0), options.get("aggregate_every")
    merge = Merge(1, make("kg", Setting(1, workers)), every, round(service * MS), network_delay_ns=delay)
    return simulate_bounded(
        tuples, ToFirst(Setting(workers)), merge, workers=workers, queue_capacity=capacity, when_full="block", **options
    )


def sent(found: Bounded) -> list[tuple[Any, ...]]:
    """Of each partial result: worker, window, key; when it was chosen for and accepted, its start and finish in ms."""
    return [
        (
            one.worker,
            one.window,
            (one.key or b"").decode(),
            *(at / MS for at in (one.chosen_ns, one.accepted_ns, one.start_ns, one.finish_ns)),
        )
        for one in found.partials
    ]


def test_a_full_aggregator_holds_the_worker_and_then_its_source() -> None:
    """Q = 1, one worker of 1 a tuple, one aggregator of 3, each tuple a window of its own, all at 0 from one source.

    0: #0 starts, #1 queues, #2 waits at its source. 1: #0 is done, its result starts at once (1 to 4), #1 starts,
    #2 gets in, #3 waits. 2: #1 is done, its result waits at the aggregator (until 4), #2 starts, #3 gets in, #4 waits.
    3: #2 is done, its result finds the aggregator full: #3 may not start. 4: the second result starts, the third gets
    its place (it starts at 7), #3 starts, #4 gets in, #5 waits. 5: #3 is done, full. 7: place, #4 starts, #5 gets in.
    8: #4 is done, full. 10: place, #5 starts. 11: #5 is done, full. 13: place, it starts at 16.
    """
    found = held_back([(0, "0", 1)] * 6, workers=1, service=3, capacity=1, sources=1, aggregate_every=("count", 1))
    assert served(found.run) == [(0, 0, 1), (0, 1, 2), (0, 2, 3), (0, 4, 5), (0, 7, 8), (0, 10, 11)]
    assert [now for now, *_ in chosen(found.run)] == [0, 0, 0, 1, 2, 4]
    assert sent(found) == [
        (0, 0, "0", 1, 1, 1, 4),
        (0, 1, "0", 2, 2, 4, 7),
        (0, 2, "0", 3, 4, 7, 10),
        (0, 3, "0", 5, 7, 10, 13),
        (0, 4, "0", 8, 10, 13, 16),
        (0, 5, "0", 11, 13, 16, 19),
    ]
    # what waits ahead as #3 reaches its worker at 2: until 4, by what holds it back, too
    assert [record.deliveries[0].wait_ns / MS for record in found.run.records] == [0, 1, 1, 2, 3, 3]


def test_a_window_ends_when_its_last_tuple_has_its_place() -> None:
    """Q = 1, two workers, windows of four tuples, one source: worker 0 is done with #1 at 1 and sends nothing.

    #0 is on worker 1 until 4, #2 queues there, #3 waits at its source. At 4 #2 starts and #3 gets in: now the window
    is complete, and worker 0 sends. Worker 1 sends at 9, after #3. #4 is a window of its own: chosen at 4, until 6.
    """
    rows = [(0, "1", 4), (0, "0", 1), (0, "1", 4), (0, "1", 1), (2, "0", 2)]
    found = held_back(rows, workers=2, service=1, capacity=1, sources=1, aggregate_every=("count", 4))
    assert served(found.run) == [(1, 0, 4), (0, 0, 1), (1, 4, 8), (1, 8, 9), (0, 4, 6)]
    assert sent(found) == [(0, 0, "0", 4, 4, 4, 5), (0, 1, "0", 6, 6, 6, 7), (1, 0, "1", 9, 9, 9, 10)]


def test_who_has_waited_longest_goes_first_and_waits_again() -> None:
    """Q = 2 at workers and the aggregator, which takes 2; one window, complete at 0; keys by bytes, as all occur once.

    2: worker 0 sends 0a (2 to 4), 0b and 0c (places until 4 and 6). Worker 1 is done, too: 1a waits. 3: worker 2
    is done: 2a waits. 4: 0b starts, 1a gets its place (8); 1b is chosen for only now, and waits since 4. 6: 0c
    starts, 2a has waited since 3: its place (10). 8: 1a starts, 1b gets in (12).
    """
    rows = [(0, "0a", 0.5), (0, "0b", 0.5), (0, "0c", 1), (0, "1a", 1), (0, "1b", 1), (0, "2a", 3)]
    found = held_back(rows, workers=3, service=2, capacity=2, sources=1)
    assert [finish for _, _, finish in served(found.run)] == [0.5, 1, 2, 1, 2, 3]
    assert sent(found) == [
        (0, 0, "0a", 2, 2, 2, 4),
        (0, 0, "0b", 2, 2, 4, 6),
        (0, 0, "0c", 2, 2, 6, 8),
        (1, 0, "1a", 2, 4, 8, 10),
        (2, 0, "2a", 3, 6, 10, 12),
        (1, 0, "1b", 4, 8, 12, 14),
    ]


def test_equal_waits_go_by_worker() -> None:
    """Q = 1; both workers are done at 1, and worker 0 sends two: 0a starts (1 to 5), 0b has the place.

    Worker 2 is done at 1, too, after worker 1: both wait since 1. 5: worker 1 gets the place (9). 9: worker 2.
    """
    rows = [(0, "0a", 0.5), (0, "0b", 0.5), (0, "2a", 1), (0, "1a", 1)]
    found = held_back(rows, workers=3, service=4, capacity=1, sources=1)
    assert sent(found) == [
        (0, 0, "0a", 1, 1, 1, 5),
        (0, 0, "0b", 1, 1, 5, 9),
        (1, 0, "1a", 1, 5, 9, 13),
        (2, 0, "2a", 1, 9, 13, 17),
    ]


def test_a_window_ends_while_its_worker_serves_a_later_one() -> None:
    """Q = 1, three workers, an aggregator of 20, windows of two tuples; sources 0 and 1 in turn; two tuples of warm-up.

    Warm-up: #0 is on worker 1 until 6, #1 queues there until 6, until 7. Window 0, #2 and #3, is on worker 2 until 2:
    2a starts (2 to 22), 2b has the place until then. Window 1: #4 is on worker 0 until 1; #5 waits for worker 1, with
    all of source 1. Window 2: #6 is on worker 0, 3 to 8; #7 is behind #5.

    6: #1 starts, #5 gets in and completes window 1: worker 0 is to send it, and waits, but serves #6. #7 is chosen,
    and queues at worker 0. 8: #6 is done, but #7 may not start. #5 is done: worker 1 waits. 22: 2b starts, worker 0
    gets the place (42) and starts #7, until 24: window 2 waits. 42: worker 1, which waits since 8 (62). 62: the last.
    """
    rows = [
        *[(0, "1", 6), (0, "1", 1)],
        *[(0, "2a", 1), (0, "2b", 1)],
        *[(0, "0", 1), (0, "1", 1)],
        *[(3, "0", 5), (3, "0", 2)],
    ]
    found = held_back(
        rows, workers=3, service=20, capacity=1, sources=2, warmup=("count", 2), aggregate_every=("count", 2)
    )
    assert served(found.run) == [
        *[(1, 0, 6), (1, 6, 7)],
        *[(2, 0, 1), (2, 1, 2)],
        *[(0, 0, 1), (1, 7, 8)],
        *[(0, 3, 8), (0, 22, 24)],
    ]
    assert chosen(found.run)[-1] == (6, 1, 7, 0)
    assert sent(found) == [
        (2, 0, "2a", 2, 2, 2, 22),
        (2, 0, "2b", 2, 2, 22, 42),
        (0, 1, "0", 6, 22, 42, 62),
        (1, 1, "1", 8, 42, 62, 82),
        (0, 2, "0", 24, 62, 82, 102),
    ]


def test_partial_results_on_the_network_hold_places() -> None:
    """Delay 3, Q = 2, all takes no time; five keys of one window and worker: the last tuple reaches it at 9.

    9: 0a and 0b are sent, reach the aggregator at 12, start then, and hold its places until then. 12: both places
    open, 0c and 0d go. 15: 0e.
    """
    rows = [(0.0, f"0{letter}", 0.0) for letter in "abcde"]
    found = held_back(rows, workers=1, service=0, capacity=2, sources=1, network_delay_ns=3 * MS)
    assert [start for _, start, _ in served(found.run)] == [3, 3, 6, 6, 9]
    assert [one[3:] for one in sent(found)] == [
        (9, 9, 12, 12),
        (9, 9, 12, 12),
        (9, 12, 15, 15),
        (12, 12, 15, 15),
        (12, 15, 18, 18),
    ]


def test_the_aggregators_are_the_bottleneck() -> None:
    """Two workers of 1 ms and one aggregator of 1 ms: 1,000 a second, not 2,000. A closed loop, a result a tuple."""
    rows = [(0.0, f"{i % 2}", 1.0) for i in range(400)]
    found = held_back(
        rows, workers=2, service=1, capacity=3, sources=1, arrivals=("saturate",), max_pending=20,
        aggregate_every=("count", 1),
    )  # fmt: skip
    last = max(record.finish_ns for record in found.run.records)
    # As many ms as results, but for those that are still with the aggregator.
    assert 390 * MS <= last <= 400 * MS
    stages = stage_metrics(found.run, found.run.records, max(found.busy(1)))
    assert stages["bottleneck"] == "aggregators"
    assert stages["sustainable_tps"] == as_float(1000)
