"""Consistent Grouping in the naive twin: worked examples, traces by hand, properties. Times in comments are in ms."""

from typing import Any

import pytest

from tests.naive.cases_by_hand import MS, at_ms
from tests.naive.groupings.consistent_grouping import ConsistentGrouping, Mapping, Worker
from tests.naive.groupings.simple_groupings import Setting, WorkersChange
from tests.naive.replay.options import Change
from tests.naive.replay.simulate import simulate
from tests.naive.worked_examples import example


def test_cg_01_probes() -> None:
    given, expected = example("CG-01")
    probes = given["probe_sequence"]
    setting = Setting(2, 1, candidates=lambda key, j: probes[(key or b"").decode()][j - 1])
    grouping = ConsistentGrouping(setting, virtual=2, eps=0.25)
    assert [grouping.mapping.owner(b) for b in range(4)] == given["owner"]
    found = []
    for key in given["stream"]:
        before = list(grouping.load[0])
        worker = grouping.choose(0, key.encode(), 0)
        (placed,) = [b for b in range(4) if grouping.load[0][b] > before[b]]
        found.append([placed, worker])
    assert found == expected["bin_worker"]
    assert grouping.load[0] == expected["bins"]
    assert grouping.state_entries(0) == 8


def test_cg_02_signals() -> None:
    given, expected = example("CG-02")
    mapping = Mapping([0, 1], 2)
    assert {str(w): bins for w, bins in mapping.bins.items()} == given["bins_of"]
    for signal in given["signals"]:
        kind, worker = signal.split()
        mapping.signal(int(worker), kind)
    assert {str(w): bins for w, bins in mapping.bins.items()} == expected["bins_of"]
    assert (mapping.idle, mapping.busy) == (expected["idle_queue"], expected["busy_queue"])


def test_queues() -> None:
    mapping = Mapping([0, 1, 2], 2)
    for worker in (0, 2, 0):
        mapping.signal(worker, "busy")
    assert mapping.busy == [0, 2]
    mapping.signal(0, "idle")
    # 0 left the busy queue, and takes from 2
    assert (mapping.bins, mapping.busy, mapping.idle) == ({0: [0, 1, 5], 1: [2, 3], 2: [4]}, [], [])
    mapping.signal(2, "busy")
    assert mapping.busy == []
    mapping.signal(1, "idle")
    mapping.signal(1, "idle")
    assert mapping.idle == [1]
    mapping.signal(2, "busy")
    assert (mapping.bins[2], mapping.idle) == ([4], [1])
    mapping.signal(0, "busy")
    assert (mapping.bins, mapping.idle) == ({0: [0, 1], 1: [2, 3, 5], 2: [4]}, [])
    mapping.signal(7, "idle")
    assert mapping.idle == []
    mapping = Mapping([0, 1, 2], 2)
    mapping.signal(0, "busy")
    mapping.signal(1, "busy")
    mapping.bins[0].remove(1)
    mapping.signal(2, "idle")
    # who has one left is dropped
    assert (mapping.bins[2], mapping.busy) == ([4, 5, 3], [])


def test_no_place_below_the_limit() -> None:
    """A key that probes only bin 0 goes to the least loaded of all, once bin 0 is full."""
    grouping = ConsistentGrouping(Setting(2, 1, candidates=lambda key, j: 0), virtual=2, eps=1)
    # limits 0.5, 1, 1.5, 2, 2.5
    assert [grouping.choose(0, b"a", 0) for _ in range(5)] == [0, 0, 0, 1, 0]
    assert grouping.load[0] == [3, 1, 1, 0]


def feeling(tuples: list[tuple[int, int, int]], sent: int, at: int = 20, busy: float = 2.0, idle: float = 0.1) -> Any:
    worker = Worker()
    worker.sent = sent
    for arrival, start, finish in tuples:
        worker.finishes(arrival, start, finish)
    return worker.feels(at - 10, at, busy, idle)


def test_how_a_worker_feels() -> None:
    assert feeling([], 0) == "idle"
    # the last of those that finished in (10, 20] waited 21; 20; the last one waited 0
    assert feeling([(0, 0, 11), (-10, 11, 20)], 2) == "busy"
    assert feeling([(0, 0, 11), (-9, 11, 20)], 2) is None
    assert feeling([(-30, 0, 11), (11, 11, 20)], 2) is None
    # what finished at 10 is of the interval before; 9 of 10 is work, which is not less than 0.9
    assert feeling([(-99, 0, 10), (10, 11, 20)], 2) is None
    assert feeling([(-99, 0, 10), (10, 12, 20)], 2) == "idle"
    # one is under way: since the last finish, or all the time
    assert feeling([(0, 9, 11)], 2) is None
    assert feeling([(0, 0, 5)], 2) is None
    assert feeling([(0, 0, 5)], 1) == "idle"
    assert feeling([], 1) is None


def test_signals_move_bins() -> None:
    """Two workers with two bins each, window 10, all of the key's tuples of 8 each ms to worker 0.

    At 10: worker 0 finished one (at 8, it waited 0) and has others; it is neither. Worker 1 was sent none: idle,
    queues. At 20: the last that finished at 16, which came at 1, waited 7. With busy = 0.5 windows it is busy: bin 1
    moves. The signal takes 3: at 23.
    """
    setting = Setting(2, 1, candidates=lambda key, j: j - 1, control_delay=3 * MS)
    grouping = ConsistentGrouping(setting, virtual=2, eps=1000, window="10ms", busy=0.5)
    seen = []

    def look(source: int, key: bytes | None, worker: int, now: int) -> None:
        ConsistentGrouping.observe(grouping, source, key, worker, now)
        bins = {w: list(own) for w, own in grouping.mapping.bins.items()}
        seen.append((bins, list(grouping.mapping.idle), grouping.control_messages))

    grouping.observe = look  # type: ignore[method-assign]
    tuples: list[Any] = [(i * 1000, b"a", 8000.0) for i in range(24)]
    run = simulate(tuples, grouping, workers=2, sources=1, control_delay_ns=3 * MS)
    assert {r.worker for r in run.records} == {0}
    start = {0: [0, 1], 1: [2, 3]}
    assert seen[:10] == [(start, [], 0)] * 10
    assert seen[10:13] == [(start, [], 1)] * 3
    assert seen[13:20] == [(start, [1], 1)] * 7
    assert seen[20:23] == [(start, [1], 3)] * 3
    # worker 0, then worker 1, which is idle again
    assert seen[23] == ({0: [0], 1: [2, 3, 1]}, [1], 3)


def test_a_signal_without_delay_holds_for_the_tuple_of_that_instant() -> None:
    setting = Setting(2, 3, candidates=lambda key, j: 1)
    grouping = ConsistentGrouping(setting, virtual=2, eps=1000, window=10, busy=0.5)
    grouping.tick(5)
    assert grouping.choose(0, b"a", 5) == 0
    grouping.observe(0, b"a", 0, 5)
    grouping.executed(0, b"a", 0, 0, 10)
    grouping.tick(10)
    assert (grouping.choose(2, b"a", 10), grouping.mapping.idle) == (0, [1])
    assert grouping.mapping.bins == {0: [0, 1], 1: [2, 3]}
    grouping.observe(2, b"a", 0, 10)
    grouping.executed(0, b"a", 10, 16, 20)
    grouping.tick(20)
    assert grouping.choose(1, b"a", 20) == 1
    assert (grouping.control_messages, grouping.control_bytes) == (9, 72)


def test_workers_change() -> None:
    mapping = Mapping([0, 1, 2], 2)
    mapping.signal(1, "busy")
    mapping.change(WorkersChange(0, [0, 2], [], [1]))
    assert (mapping.bins, mapping.busy) == ({0: [0, 1, 2], 2: [4, 5, 3]}, [])
    mapping.change(WorkersChange(0, [0, 2, 3], [3], []))
    assert mapping.bins[3] == []
    mapping.signal(3, "busy")
    assert mapping.busy == []
    mapping.signal(3, "idle")
    assert mapping.idle == [3]
    mapping.change(WorkersChange(0, [2, 3], [], [0]))
    assert mapping.bins == {2: [4, 5, 3], 3: [0, 1, 2]}
    assert mapping.idle == [3]


@pytest.mark.parametrize("eps", [0.01, 0.1, 0.5])
def test_bound(eps: float) -> None:
    """No bin has more than (1 + eps) x mean + 1, whatever the keys; and nothing goes to who is not there."""
    tuples: list[Any] = [(i * 500, b"%d" % min(i * i % 97, 30), 2000.0) for i in range(3000)]
    changes = (Change("leave", at_ms(400), 2), Change("join", at_ms(700)), Change("crash", at_ms(900), 0))
    grouping = ConsistentGrouping(Setting(5, 2), virtual=4, eps=eps, window="20ms", signal_delay="5ms")
    choose = grouping.choose

    def watched(source: int, key: bytes | None, now: int) -> int:
        worker = choose(source, key, now)
        mean = grouping.seen[source] / grouping.bins
        assert max(grouping.load[source]) < (1 + eps) * mean + 1 + 1e-9
        assert sorted(b for bins in grouping.mapping.bins.values() for b in bins) == list(range(20))
        return worker

    grouping.choose = watched  # type: ignore[method-assign]
    simulate(tuples, grouping, workers=5, sources=2, changes=changes)
    assert sorted(grouping.mapping.bins) == [1, 3, 4, 5]
    assert grouping.mapping.bins[5] != []
    assert grouping.control_messages > 0
