"""How many workers, the peak, and other things that `advise` is asked besides the grouping."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from streamgroup.base.errors import RunError, UsageError
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.study.advise.advice_text import as_text, compared, headline
from streamgroup.study.advise.advise import Advice, AdviceRequest, advise
from streamgroup.study.advise.offered_load import find_offered_load
from streamgroup.study.advise.recommendation import Targets
from streamgroup.study.replay_run import run_to_directory
from streamgroup.traces.trace import open_trace
from tests.traces_by_hand import write_trace

pytestmark = pytest.mark.many_groupings


def ask(path: Path, workers: int = 1, groupings: tuple[str, ...] = (), **options: Any) -> Advice:
    targets = Targets(max_p99_ms=options.pop("max_p99", None), max_replication=options.pop("max_replication", None))
    question = AdviceRequest(targets, groupings, any_workers=options.pop("any_workers", False))
    return advise(path, ReplayOptions("kg", workers, **options), question)


@pytest.fixture(scope="module")
def skewed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tuple each ms for 2 s; one key has a third of them. So few are interpreted in all runs of a search."""
    drawn = np.random.default_rng(1).integers(300, size=2_000).tolist()
    keys = [b"hot" if key < 100 else b"k%d" % key for key in drawn]
    return write_trace(tmp_path_factory.mktemp("skewed") / "t", [(i * 1000, key, None) for i, key in enumerate(keys)])


def test_the_number_of_workers_is_found_and_is_enough(skewed: Path) -> None:
    found = ask(skewed, any_workers=True, max_p99=25.0, service="10ms")
    assert found.by_workers is not None
    able = {one.grouping: one for one in found.by_workers if one.workers is not None}
    best = min(one.workers for one in able.values() if one.workers is not None)
    # 1,000 tuples a second of 10 ms are work for ten.
    assert best >= 10
    assert "kg" not in able
    workers = found.offered.options.workers
    few = [one for one in able.values() if one.workers is not None and one.workers <= 1.1 * best]
    chosen = min(few, key=lambda one: one.row.replication_factor if one.row else 0)
    assert chosen.workers == workers
    assert found.met
    assert headline(found) == f"Take {found.recommended} for {workers} workers."
    for one in able.values():
        assert one.workers is not None
        for number, enough in ((one.workers, True), (one.workers - 1, False)):
            run = run_to_directory(
                skewed, ReplayOptions(one.grouping, number, service="10ms", window="20%", top_keys=0), None
            )
            windows = run.tables["windows"].to_pydict()
            load = run.tables["summary"].to_pylist()[0]["offered_load"]
            holds = max(windows["latency_p99_ms"]) <= 25 and load <= 1
            assert holds or not enough, (one.grouping, number)
            if number < best:
                assert not holds
    text = as_text(found)
    assert "Least workers that meet the target:\ngrouping" in text
    assert "over 4,096" in text
    told = found.to_json()
    assert {one["grouping"] for one in told["least_workers_of_all"]} == {one.grouping for one in found.by_workers}


def test_state_limits_the_number_of_workers(skewed: Path) -> None:
    found = ask(skewed, any_workers=True, max_p99=40.0, max_replication=2.0, service="10ms")
    assert found.choice.recommended.replication_factor <= 2
    assert found.by_workers is not None
    assert any("pieces" in (one.reason or "") for one in found.by_workers)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "needs a target"),
        ({"max_p99": 50.0}, "one is unknown"),
        ({"max_p99": 50.0, "service": "1ms", "arrivals": "utilization=0.5"}, "one is unknown"),
        ({"max_p99": 50.0, "service": "0ms"}, "one is unknown"),
    ],
)
def test_without_a_load_there_is_no_number(skewed: Path, options: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        ask(skewed, any_workers=True, **options)


def test_a_target_that_no_number_meets(skewed: Path) -> None:
    with pytest.raises(RunError, match="up to 4,096 workers"):
        ask(skewed, any_workers=True, max_p99=5.0, service="10ms")


def test_the_peak_is_told(tmp_path: Path) -> None:
    # 10 s at 1,000 tuples a second, then 0.1 s at 100,000.
    times = [*range(0, 10_000_000, 1000), *range(10_000_000, 10_100_001, 10)]
    path = write_trace(tmp_path / "t", [(time, b"k%d" % (i % 997), None) for i, time in enumerate(times)])
    found = ask(path, 4, service="1ms")
    peak = found.offered.peak
    assert peak is not None
    assert peak.first >= 9_900_000
    width = 10_100_000 / 100
    inside = sum(peak.first <= time <= peak.last for time in times)
    assert peak.rate == pytest.approx(inside / (width / 1e6), rel=1e-3)
    assert peak.load == pytest.approx(peak.rate * 0.001 / 4, rel=1e-3)
    assert peak.load > 1
    assert "of what they can do: no grouping keeps up then." in headline(found)
    # From 9.999 s on, 10,002 tuples in 0.101 s.
    assert "99,029.7 tuples/s, 2,476 %." in as_text(found)
    faster = find_offered_load(open_trace(path), ReplayOptions("kg", 4, service="1ms", speedup="2")).peak
    assert faster is not None
    assert faster.rate == pytest.approx(2 * peak.rate)
    assert find_offered_load(open_trace(path), ReplayOptions("kg", 4, service="1ms", arrivals="rate=100")).peak is None
    assert "keeps up then" not in headline(ask(path, 200, service="1ms"))


def test_a_few_tuples_have_no_peak(tmp_path: Path) -> None:
    path = write_trace(tmp_path / "t", [(i * 1_000_000, b"k%d" % i, None) for i in range(50)])
    found = ask(path, 1, service="900ms")
    assert found.offered.peak is None
    assert "at the peak" not in as_text(found)


def test_each_grouping_asked_has_a_row(skewed: Path) -> None:
    rows = compared(ask(skewed, 4, ("pkg", "greedy_d:d=3", "mine=greedy_d:d=1")))
    roles = {row["grouping"]: row["role"] for row in rows}
    assert {"pkg", "greedy_d:d=3", "mine:d=1"} <= roles.keys()
    assert all("asked" in roles[name] for name in ("pkg", "greedy_d:d=3", "mine:d=1"))


def test_hot_keys_that_share_a_worker_are_all_named(tmp_path: Path) -> None:
    # On one of two workers there are two of three keys.
    path = write_trace(tmp_path / "t", [(i * 1000, b"key%d" % (i % 3), None) for i in range(3000)])
    found = ask(path, 2)
    together = found.hot_keys.together
    assert len(together) >= 2
    text = as_text(found)
    for key, share in together:
        assert share == pytest.approx(1 / 3)
        assert f"'{key}'" in text
    assert "shares its worker with" in text or "the most loaded worker has the hot keys" in text


def test_ranges_say_when_they_are_not_around_the_total(tmp_path: Path) -> None:
    # In each fifth one of five keys has all tuples.
    path = write_trace(tmp_path / "t", [(i * 1000, b"k%d" % (i // 1000), None) for i in range(5000)])
    found = ask(path, 16)
    assert found.kg.peak_to_mean < found.kg.peak_to_mean_low
    assert "within a segment)" in as_text(found)
