"""What holds for every replay, on random ones: the twin is checked by rules that it does not work by."""

from collections import Counter
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings

from tests.naive.metrics.metrics import lower_bound, metrics
from tests.naive.replay.random_scenarios import Scenario, place, scenarios, time_ns
from tests.naive.replay.tuple_records import Run


def test_texts() -> None:
    assert [time_ns(text) for text in ("0", "5ns", "2.5us", "1ms", "3s")] == [0, 5, 2500, 10**6, 3 * 10**9]
    assert place("7") == ("count", 7)
    assert place("7us") == ("time", 7000)
    assert place("12.5%") == ("share", pytest.approx(1 / 8))


def check_all_tuples_end_once(run: Run) -> None:
    assert [r.seq for r in run.records] == list(range(len(run.records)))
    for r in run.records:
        assert r.status in ("finished", "dropped", "lost")
        assert (r.finish_ns is None) == (r.status != "finished")
        # each delivery but the last was lost by a crash; a dropped one is none
        assert len(r.deliveries) == r.redelivered + (r.status != "dropped")
    arrivals = [r.arrival_ns for r in run.records]
    assert arrivals == sorted(arrivals)


def check_workers_serve_one_at_a_time(run: Run) -> None:
    for worker, life in enumerate(run.lives):
        # The originals of a merged tuple are served together.
        served = [r for r in run.records if r.worker == worker and r.finish_ns is not None and r.bears]
        own = sorted((r.start_ns, r.finish_ns) for r in served)
        assert all(before[1] <= after[0] for before, after in pairwise(own))
        if life.how == "crash":
            assert all(finish <= life.ended_ns for _, finish in own)


def check_nobody_is_sent_to_who_is_not_there(run: Run) -> None:
    for c in run.choices:
        life = run.lives[c.worker]
        assert life.joined_ns <= c.now
        assert life.ended_ns is None or c.now <= life.ended_ns


def check_choices(run: Run) -> None:
    """In time, at least one for each tuple, and of one source's in order but for those that come back.

    The originals of merged tuples leave a mini-batch by key.
    """
    times = [c.now for c in run.choices]
    assert times == sorted(times)
    often = {seq for seq, n in Counter(c.seq for c in run.choices).items() if n > 1}
    assert {c.seq for c in run.choices} == {r.seq for r in run.records}
    for source in range(run.options.sources if run.options.combine is None else 0):
        once = [c.seq for c in run.choices if c.source == source and c.seq not in often]
        assert once == sorted(once)


def check_queues_keep_their_capacity(run: Run) -> None:
    capacity = run.options.queue_capacity
    for r in run.records:
        for delivery in r.deliveries:
            if capacity is not None and delivery.queue is not None:
                assert delivery.queue <= capacity


def check_pending(run: Run) -> None:
    """In a closed loop a source never has more under way than it may."""
    if run.options.arrivals[0] != "saturate" or run.options.changes:
        return
    for r in run.records:
        others = [o for o in run.records if o.source == r.source and o.seq <= r.seq and o.finish_ns > r.arrival_ns]
        assert len(others) <= run.options.max_pending


def check_metrics(scenario: Scenario, run: Run) -> dict[str, Any]:
    tables = metrics(run, scenario.window(), aggregate_every=scenario.aggregate_every())
    row = tables["summary"]
    measured = [r for r in run.records if r.measured]
    accepted = sum(len(r.deliveries) for r in measured)
    assert sum(w["tuples"] for w in tables["workers"]) == accepted
    assert sum(w["tuples"] for w in tables["windows"]) == sum(w["tuples"] for w in tables["loads"]) == accepted
    finished = sum(r.status == "finished" for r in measured)
    assert finished + row["lost"] + row["dropped"] == len(measured)
    assert accepted == finished + row["lost"] + row["redelivered"]
    assert row["utilization_max"] is None or row["utilization_max"] <= 1 + 1e-12
    bound = lower_bound(run, measured)
    if bound is not None and run.records[0].measured:
        # what each tuple costs and takes is rounded to whole ns
        assert row["makespan_s"] * 1e9 >= bound - 2 * len(measured)
    assert row["replicas"] <= row["aggregation_messages"]
    return tables


@settings(max_examples=300, deadline=None)
@given(scenarios())
def test_rules_that_every_replay_keeps(scenario: Scenario) -> None:
    run = scenario.run()
    check_all_tuples_end_once(run)
    check_workers_serve_one_at_a_time(run)
    check_nobody_is_sent_to_who_is_not_there(run)
    check_choices(run)
    check_queues_keep_their_capacity(run)
    check_pending(run)
    check_metrics(scenario, run)


def without_queues(run: Run) -> list[Any]:
    """A queue is told where the tuple joins it, which with `block` is where it is sent."""
    return [r._replace(deliveries=tuple(d._replace(queue=None) for d in r.deliveries)) for r in run.records]


@settings(max_examples=100, deadline=None)
@given(scenarios())
def test_a_queue_that_is_never_full_changes_nothing(scenario: Scenario) -> None:
    """Also a check of `block` and `drop` against the unbounded queue."""
    options = {**scenario.options, "queue_capacity": None, "when_full": None}
    unbounded = Scenario(scenario.tuples, options, scenario.key_cost).run()
    kinds = ["block"] if options["arrivals"] == "saturate" else ["block", "drop"]
    for when_full in kinds:
        wide = {**options, "queue_capacity": 1000, "when_full": when_full}
        run = Scenario(scenario.tuples, wide, scenario.key_cost).run()
        assert without_queues(run) == without_queues(unbounded)
        assert run.choices == unbounded.choices
