"""What a dry run tells, against what a run then is."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from streamgroup.base.errors import DataError, StreamgroupError, UsageError
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.study import run_cost
from streamgroup.study.dry_run import dry_run
from streamgroup.study.replay_run import run_to_directory
from streamgroup.study.sweep.compile_in_background import note_of_compiling
from tests.traces_by_hand import write_trace

PLAIN = ReplayOptions("kg", 4, arrivals="utilization=0.5")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_trace(tmp_path / "t", [(i * 1000, b"k%d" % (i % 40), None) for i in range(1000)])


@pytest.fixture
def costly(tmp_path: Path) -> Path:
    return write_trace(tmp_path / "c", [(i * 1000, b"k%d" % (i % 40), 1.0 + i % 3) for i in range(900)])


def told(path: Path, **options: Any) -> dict[str, Any]:
    return dry_run(path, dataclasses.replace(PLAIN, **options))


def test_a_plain_run(path: Path) -> None:
    found = told(path)
    assert {name: found[name] for name in ("tuples", "keys", "grouping", "workers", "workers_ever", "loop")} == {
        "tuples": 1000, "keys": 40, "grouping": "kg", "workers": 4, "workers_ever": 4, "loop": "fast",
    }  # fmt: skip
    assert found["capacity_tps"] == 4000
    assert found["arrival_rate_tps"] == 2000
    assert found["offered_load"] == 0.5
    assert found["service"] == "1 ms for every tuple"
    assert found["slowdown"] == "4 with 1"
    assert found["queues"] == "without a limit"
    for name in ("slowdown_at", "speed_jitter", "membership", "warmup", "aggregate_every", "log_on_disk_mb"):
        assert found[name] is None
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_the_capacity_model_in_words(path: Path) -> None:
    found = told(
        path,
        slowdown="half:2",
        slowdown_at=("50%=1,3", "999=half:4"),
        speed_jitter="0.2:10",
        service_distribution="lognormal:0.5",
        queue_capacity=9,
        join=("10s",),
        leave=("5:random", "25%"),
        crash=("900:1",),
        redeliver=True,
        warmup="10%",
    )
    assert found["slowdown"] == "2 with 1, 2 with 2"
    assert found["slowdown_at"] == ["from tuple 500 (50 %): 1,3", "from tuple 999 (99.9 %): half:4"]
    assert found["speed_jitter"].startswith("a new factor every 10 tuples, 100 in all, from 0.")
    assert found["service_distribution"] == "lognormal:0.5"
    assert found["queues"] == "9 waiting tuples a worker, a full one holds its sources back"
    assert found["membership"] == [
        "a worker joins at 10 s",
        "a random worker leaves before tuple 5 (0.5 %)",
        "the worker with the highest id leaves before tuple 250 (25 %)",
        "worker 1 crashes before tuple 900 (90 %), its tuples are chosen anew",
    ]
    assert found["warmup"] == "the first 100 tuples"
    assert (found["workers_ever"], found["loop"]) == (5, "ordered")
    assert found["offered_load"] == 0.5


def test_other_words(path: Path) -> None:
    assert told(path, slowdown_at=("2s=3",))["slowdown_at"] == ["services that start from 2 s on: 3"]
    assert told(path, queue_capacity=1, when_full="drop")["queues"].endswith("a full one drops what comes")
    assert told(path, crash=("1s",))["membership"] == [
        "the worker with the highest id crashes at 1 s, its tuples are lost"
    ]
    closed = told(path, arrivals="saturate", max_pending=7, window="1s")
    assert closed["queues"] == "without a limit, at most 7 unfinished tuples a source"
    assert (closed["offered_load"], closed["windows_at_most"], closed["loop"]) == (None, None, "ordered")
    assert told(path, warmup="20ms")["warmup"] == "what arrives before 0.02 s"
    many = told(path, workers=20, slowdown=",".join(str(1 + i) for i in range(10)))["slowdown"]
    assert many.startswith("2 with 1, ")
    assert many.endswith(" and 2 other factors")


def test_the_source_of_costs_in_words(costly: Path, tmp_path: Path) -> None:
    assert told(costly)["service"] == "the trace's cost, mean 0.002 ms"
    assert told(costly, service="2ms")["service"] == "2 ms for every tuple instead of the trace's cost"
    by_key = tmp_path / "key.csv"
    by_key.write_text("key,cost\n" + "".join(f"k{i},500\n" for i in range(40)))
    assert told(costly, key_cost=str(by_key))["service"] == f"by key from {by_key}, mean 0.5 ms"
    both = tmp_path / "both.csv"
    both.write_text("key,worker,cost\n" + "".join(f"k{i},{w},{1000 + w}\n" for i in range(40) for w in range(4)))
    found = told(costly, key_cost=str(both))
    assert found["service"] == f"by key and worker from {both}, the workers' means from 1 ms to 1.003 ms"
    assert found["memory_costs_mb"] == 40 * 4 * 8 / 1e6
    assert told(costly, service="0", arrivals="trace")["capacity_tps"] is None


@pytest.mark.parametrize(
    "options",
    [{}, {"arrivals": "trace", "window": "7ms"}, {"window": "13", "warmup": "100"}, {"arrivals": "rate=500"}],
    ids=str,
)
def test_windows_are_those_of_the_run(path: Path, options: dict[str, str]) -> None:
    chosen = dataclasses.replace(PLAIN, **options)  # type: ignore[arg-type]
    run = run_to_directory(path, chosen)
    assert dry_run(path, chosen)["windows_at_most"] == len(run.tables["windows"])


def test_memory_grows_with_what_it_is_for(path: Path) -> None:
    small = told(path)
    assert small["memory_mb"] == pytest.approx(
        sum(value for name, value in small.items() if name.startswith("memory_") and name != "memory_mb")
    )
    large = told(path, workers=400, speed_jitter="0.1:1", grouping="pkg")
    for name in ("pairs", "histograms", "windows", "candidates", "speeds"):
        assert large[f"memory_{name}_mb"] > small[f"memory_{name}_mb"]
    assert told(path, aggregate_every="10", workers=400)["memory_pairs_mb"] == 2 * large["memory_pairs_mb"]


def test_many_pairs_are_a_hash_set(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamgroup.study.dry_run.MAX_BITS", 100)
    # 40 keys, 25 tuples each, one worker each: 40 pairs, in 128 slots of 16 bytes.
    assert told(path)["memory_pairs_mb"] == 128 * 16 / 1e6


def test_time_by_what_slows_a_run_down(path: Path, tmp_path: Path) -> None:
    speeds = run_cost.TUPLES_PER_S
    assert told(path)["assumed_tuples_per_s"] == speeds["fast"]
    assert told(path, service_distribution="exponential")["assumed_tuples_per_s"] == speeds["random factors"]
    assert told(path, queue_capacity=5)["assumed_tuples_per_s"] == speeds["ordered"]
    logged = dry_run(path, PLAIN, tmp_path / "run", log=True)
    assert logged["assumed_tuples_per_s"] == speeds["log"]
    assert logged["log_on_disk_mb"] == pytest.approx(0.017)
    changing = dataclasses.replace(PLAIN, leave=("50%",), workers=5)
    once, twice = (dry_run(path, changing, baseline=both)["time_s"] for both in (False, True))
    assert once == run_cost.START_S + 1000 / speeds["fast"]
    assert twice == run_cost.START_S + 2000 / speeds["fast"]


def test_a_grouping_that_listens_takes_its_time(path: Path) -> None:
    listener = Path(__file__).parents[1] / "replay" / "groupings_outside_package" / "listener.py"
    found = told(path, grouping=str(listener))
    assert found["loop"] == "fast"
    assert found["assumed_tuples_per_s"] == run_cost.TUPLES_PER_S["ordered"]


def test_what_holds_whatever_the_keys(path: Path, tmp_path: Path) -> None:
    options = dataclasses.replace(PLAIN, grouping="hazelcast:partition_count=9")
    run_to_directory(path, options, tmp_path / "run")
    kept = json.loads((tmp_path / "run" / "run.json").read_text())["grouping"]["facts"]
    assert kept == {"partitions_per_worker_min": 2, "partitions_per_worker_max": 3, "structural_peak_to_mean": 12 / 9}
    assert dry_run(path, options).items() >= kept.items()


def test_what_flows_back_needs_the_ordered_loop(path: Path) -> None:
    assert told(path, arrivals="saturate")["loop"] == "ordered"
    assert told(path, crash=("50%",), workers=5)["loop"] == "fast"
    assert told(path, crash=("50%",), redeliver=True, workers=5)["loop"] == "ordered"


@pytest.mark.parametrize(
    ("options", "more", "kind"),
    [
        ({"grouping": "pgk"}, {}, UsageError),
        ({"slowdown_at": ("1000=2",)}, {}, UsageError),
        ({"capacity": "nosuch.toml"}, {}, UsageError),
        ({"warmup": "100%"}, {}, DataError),
        ({"service": "100d", "slowdown": "2"}, {}, DataError),
        ({}, {"log": True}, UsageError),
        ({}, {"baseline": True}, UsageError),
    ],
    ids=str,
)
def test_the_errors_are_those_of_the_run(
    path: Path, options: dict[str, Any], more: dict[str, bool], kind: type[StreamgroupError]
) -> None:
    chosen = dataclasses.replace(PLAIN, **options)
    messages = []
    for function in (dry_run, run_to_directory):
        with pytest.raises(kind) as caught:
            function(path, chosen, None, **more)
        messages.append((caught.value.message, caught.value.hint))
    assert messages[0] == messages[1]


def test_an_output_that_exists_is_refused_and_nothing_is_written(path: Path, tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    with pytest.raises(UsageError, match="exists already"):
        dry_run(path, PLAIN, tmp_path / "taken")
    dry_run(path, PLAIN, tmp_path / "new" / "run", log=True)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["t", "taken"]


def test_what_is_not_compiled_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STREAMGROUP_CACHE_DIR", str(tmp_path))
    runs = [ReplayOptions(grouping=text, workers=4) for text in ("kg", "pkg", "kg")]
    note = note_of_compiling(runs)
    assert note is not None
    assert note.startswith("not compiled yet: kg, pkg; ")
    # As compiling leaves it.
    (tmp_path / "compiled" / "of-some-sources").mkdir()
    (tmp_path / "compiled" / "of-some-sources" / "choose.choose_block_kg-1.py311.nbi").touch()
    left = note_of_compiling(runs)
    assert left is not None
    assert left.startswith("not compiled yet: pkg; ")
    assert note_of_compiling(runs[:1]) is None
