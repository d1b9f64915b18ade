"""Reports of workers against a model of them: one list of messages, and all times taken anew at each look."""

from typing import Any

import numpy as np
import pytest

from streamgroup.groupings.fish.backlogs import make_backlogs
from streamgroup.groupings.fish.delayed_service_reports import finished, make_reports, pass_time, with_workers


class Model:
    """Workers that report after 50 tuples and at timers; all messages that are due are looked for among all."""

    def __init__(self, interval: int, delay: int) -> None:
        self.interval, self.delay, self.timer = interval, delay, interval
        self.times: dict[int, list[int]] = {}
        self.spoke: set[int] = set()
        self.messages: list[tuple[int, int, float]] = []
        self.made = 0

    def report(self, worker: int, now: int) -> None:
        times = self.times.pop(worker)
        self.messages.append((now + self.delay, worker, sum(times) / len(times)))
        self.spoke.add(worker)
        self.made += 1

    def finish(self, worker: int, took: int, now: int) -> None:
        self.times.setdefault(worker, []).append(took)
        if len(self.times[worker]) == 50 and worker not in self.spoke:
            self.report(worker, now)

    def pass_time(self, now: int) -> None:
        if self.timer <= now:
            instant = now - now % self.interval
            self.timer = instant + self.interval
            for worker in sorted(self.spoke & set(self.times)):
                self.report(worker, instant)

    def times_at(self, now: int, live: list[int]) -> tuple[int, list[float]]:
        told = {worker: mean for due, worker, mean in self.messages if due <= now}
        total = 0.0
        for worker in live:
            total += told.get(worker, 0.0)
        known = sum(worker in told for worker in live)
        return known, [told.get(worker, total / known if known else 1.0) for worker in live]


def joined(backlogs: Any, live: list[int]) -> Any:
    """Give backlogs with one worker more."""

    def wider(array: Any, fill: float) -> Any:
        return np.concatenate([array, np.full((*array.shape[:-1], 1), fill)], axis=-1)

    return backlogs._replace(
        left=wider(backlogs.left, 3.0),
        cost=wider(backlogs.cost, 3.0),
        time_per_tuple=wider(backlogs.time_per_tuple, 1.0),
        floor=np.full(len(backlogs.left), -1.0),
        live=np.array(live, dtype=np.int64),
    )


@pytest.mark.parametrize(("interval", "delay"), [(7, 0), (50, 3), (20, 300), (10_000, 40)])
@pytest.mark.parametrize("workers", [1, 2, 9])
def test_times_are_those_of_the_model(workers: int, interval: int, delay: int) -> None:
    rng = np.random.default_rng(workers + interval)
    live, now, seen = list(range(workers)), 0, set()
    reports, backlogs = make_reports(workers, 3, interval, delay), make_backlogs(2, np.arange(workers), interval, 2.0)
    backlogs.left[:] = rng.integers(0, 9, backlogs.left.shape)
    backlogs.cost[:] = backlogs.left
    model, ever = Model(interval, delay), workers
    for step in range(2500):
        now += int(rng.integers(0, 4))
        pass_time(reports, backlogs, now - 1)
        model.pass_time(now - 1)
        worker, took = int(rng.integers(ever)), int(rng.integers(0, 1000))
        finished(reports, worker, took, now)
        model.finish(worker, took, now)
        if step in (900, 1000, 1700):
            # One joins; at first one leaves too, which goes on to report.
            live = [worker for worker in live if worker != 0 or workers == 1] + [ever]
            ever += 1
            backlogs, reports = joined(backlogs, live), with_workers(reports, ever)
        if step % 3 == 0:
            pass_time(reports, backlogs, now)
            model.pass_time(now)
            known, times = model.times_at(now, live)
            assert backlogs.known[0] == known
            assert backlogs.time_per_tuple[live].tolist() == times
            assert np.array_equal(backlogs.cost, backlogs.left * backlogs.time_per_tuple)
            assert (backlogs.floor <= backlogs.cost[:, live].min(axis=1)).all()
            # As a choice among all workers does.
            backlogs.floor[:] = backlogs.cost[:, live].min(axis=1)
            seen.add(known)
    assert reports.messages[0] == 3 * model.made
    assert {0, workers} <= seen
