"""`explain`: one verdict with the right numbers, on built streams and on the shipped ones."""

import dataclasses
import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from streamgroup.base.errors import DataError, UsageError
from streamgroup.cli.app import app
from streamgroup.engines.flink import keyby_subtask
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.study.explain.explain_loads import Explanation, explain, explain_run
from streamgroup.study.explain.explain_text import as_json, headline, helps, worker_lines
from streamgroup.study.replay_run import run_to_directory
from streamgroup.traces.trace import open_trace
from tests.naive.metrics import explain as naive
from tests.naive.metrics.explain import Pair
from tests.traces_by_hand import write_trace

WORKERS = 16
FLINK = ReplayOptions("flink_keyby", WORKERS)


def _written(path: Path, keys: Sequence[str]) -> Path:
    """Write a trace of these keys in this order, a millisecond apart."""
    return write_trace(path, [(1000 * at, key.encode(), None) for at, key in enumerate(keys)])


def _shuffled(counts: dict[str, int]) -> list[str]:
    keys = [key for key, count in counts.items() for _ in range(count)]
    random.Random(7).shuffle(keys)
    return keys


def _cold(keys: int, each: int) -> dict[str, int]:
    return {f"cold{at}": each for at in range(keys)}


def _on(worker: int, start: int = 0) -> str:
    """Find a key of a subtask."""
    return next(f"hot{at}" for at in range(start, start + 10_000) if keyby_subtask(f"hot{at}", WORKERS) == worker)


def _agrees(found: Explanation, pairs: Sequence[Pair], length: int) -> None:
    """Compare all numbers with a recount, tuple by tuple."""
    workers = len(found.whole.tuples)
    number = naive.worst_window(pairs, workers, length)
    assert found.window is not None
    assert (found.window.first, found.window.end) == (number * length, min((number + 1) * length, len(pairs)))
    for period, part in ((found.whole, pairs), (found.window, pairs[number * length : (number + 1) * length])):
        assert period.tuples.tolist() == naive.loads(part, workers)
        assert period.keys == len({key for key, _ in part})
        assert period.peak == pytest.approx(max(naive.loads(part, workers)) * workers / len(part), rel=1e-12)
        for worker in period.top:
            wanted = naive.composition(part, workers, worker.worker)
            assert worker.load == pytest.approx(wanted["load"], rel=1e-12)
            got = {found.names[key.key_id]: key.load for key in worker.hot}
            assert got == pytest.approx(wanted["hot"], rel=1e-12)
            assert sorted(got.values(), reverse=True) == list(got.values())
            assert worker.other_keys == wanted["other_keys"]
            assert worker.other_load == pytest.approx(wanted["other_load"], abs=1e-12)
            assert sum(worker.excess.values()) == pytest.approx(worker.load - 1, abs=1e-9)


def _placed(keys: Sequence[str], rule: Callable[[str], int]) -> list[Pair]:
    place = {key: rule(key) for key in set(keys)}
    return [(key, place[key]) for key in keys]


def _flink(found: Explanation, keys: Sequence[str], **more: int) -> None:
    _agrees(found, _placed(keys, lambda key: keyby_subtask(key, found.options.workers, **more)), -(-len(keys) // 100))


def test_one_hot_key(tmp_path: Path) -> None:
    keys = _shuffled({**_cold(2000, 10), "hot": 4000})
    found = explain(_written(tmp_path / "t", keys), FLINK)
    assert found.verdict == "hot key"
    _flink(found, keys)
    top = found.whole.top[0]
    assert top.worker == keyby_subtask("hot", WORKERS)
    assert [key.load for key in top.hot] == [4000 * WORKERS / 24_000]
    assert top.parts == 1
    (line,) = [line for line in list(worker_lines(found, 5))[:4] if line.startswith(f"worker {top.worker}:")]
    assert f"{top.load:.2f} x mean = hot 2.67 + {top.other_keys} other keys {top.other_load:.2f};" in line
    assert line.endswith("key groups alone 1.00: it is the keys: one hot key")
    assert f"hot alone gives worker {top.worker} 2.67 times the mean of 16 workers" in headline(found)
    # Nothing but splitting helps, and that does.
    assert found.remedies is not None
    assert found.remedies.setting is None
    split = found.remedies.split
    assert split is not None
    assert {found.names[key]: pieces for key, pieces in split.pieces.items()} == {"hot": 11}
    salted = iter(range(4000))
    pieces = [f"hot#{next(salted) % 11}" if key == "hot" else key for key in keys]
    assert split.peak == pytest.approx(_peak(_placed(pieces, lambda key: keyby_subtask(key, WORKERS))), abs=0.01)
    assert split.peak is not None
    assert split.peak < 1.4


def _peak(pairs: Sequence[Pair], workers: int = WORKERS) -> float:
    return max(naive.loads(pairs, workers)) * workers / len(pairs)


def test_two_hot_keys_that_collide(tmp_path: Path) -> None:
    first = _on(3)
    second = _on(3, int(first.removeprefix("hot")) + 1)
    keys = _shuffled({**_cold(2000, 10), first: 1400, second: 1300})
    trace = _written(tmp_path / "t", keys)
    found = explain(trace, FLINK)
    assert found.verdict == "collision of hot keys"
    _flink(found, keys)
    top = found.whole.top[0]
    assert top.worker == 3
    assert [found.names[key.key_id] for key in top.hot] == [first, second]
    assert "it is the keys, and two hot ones collide" in list(worker_lines(found, 5))[1]
    assert "Two hot keys are on worker 3, together 1.90 times" in headline(found)
    _really_helps(trace, found, tmp_path)


def _really_helps(trace: Path, found: Explanation, tmp_path: Path) -> None:
    """Replay what is recommended: it gives the load that was counted, and a better one."""
    assert found.remedies is not None
    setting = found.remedies.setting
    assert setting is not None
    options = dataclasses.replace(found.options, **setting.options)  # type: ignore[arg-type]
    row = run_to_directory(trace, options).row
    assert row["peak_to_mean"] == pytest.approx(found.remedies.peak, rel=1e-12)
    assert row["peak_to_mean"] < 0.95 * found.whole.peak
    assert any(f"{row['peak_to_mean']:.2f} x mean instead of {found.whole.peak:.2f}" in line for line in helps(found))


def test_another_hash_seed(tmp_path: Path) -> None:
    """Under kg the candidates move with the seed; two keys that collide are sought by replaying."""
    keys = _shuffled({**_cold(2000, 10), **{f"hot{at}": 900 for at in range(8)}})
    trace = _written(tmp_path / "t", keys)
    found = explain(trace, ReplayOptions("kg", WORKERS, seed=3))
    assert found.verdict == "collision of hot keys"
    _really_helps(trace, found, tmp_path)


def test_another_number_of_workers_is_in_units_of_the_mean_of_today(tmp_path: Path) -> None:
    keys = _shuffled({**_cold(500, 10), **{f"hot{at}": 400 for at in range(8)}})
    trace = _written(tmp_path / "t", keys)
    found = explain(trace, ReplayOptions("storm_fields", WORKERS))
    assert found.parts is None
    assert found.remedies is not None
    assert found.remedies.name == "workers"
    setting = found.remedies.setting
    assert setting is not None
    assert setting.options == {"workers": setting.value}
    options = dataclasses.replace(found.options, workers=setting.value)
    peak = run_to_directory(trace, options).row["peak_to_mean"] * WORKERS / setting.value
    assert peak == pytest.approx(found.remedies.peak, rel=1e-12)
    assert any(line.startswith(f"-n {setting.value}: {peak:.2f} x the mean of 16 workers") for line in helps(found))


def test_uneven_key_groups(tmp_path: Path) -> None:
    keys = _shuffled({f"k{at}": 2 for at in range(20_000)})
    trace = _written(tmp_path / "t", keys)
    found = explain(trace, ReplayOptions("flink_keyby:max_parallelism=96", 64))
    assert found.verdict == "uneven key groups or partitions"
    _flink(found, keys, max_parallelism=96)
    top = found.whole.top[0]
    assert top.parts == pytest.approx(2 * 64 / 96)
    assert not top.hot
    assert list(worker_lines(found, 5))[1].endswith("key groups alone 1.33: it is the key groups")
    assert "96 key groups for 64 workers: some have 2 and some 1" in headline(found)
    _really_helps(trace, found, tmp_path)


def test_uneven_partitions(tmp_path: Path) -> None:
    keys = _shuffled({f"k{at}": 2 for at in range(20_000)})
    found = explain(_written(tmp_path / "t", keys), ReplayOptions("kafka:partitions=11", 5))
    assert found.verdict == "uneven key groups or partitions"
    assert "11 partitions for 5 workers: some have 3 and some 2" in headline(found)


def test_too_few_keys(tmp_path: Path) -> None:
    keys = _shuffled({f"k{at}": 2000 for at in range(10)})
    found = explain(_written(tmp_path / "t", keys), ReplayOptions("flink_keyby", 48))
    assert found.verdict == "too few keys"
    _flink(found, keys)
    idle = 48 - len({keyby_subtask(f"k{at}", 48) for at in range(10)})
    assert "10 keys of similar frequency for 48 workers" in headline(found)
    assert headline(found).endswith(f"and {idle} workers none.")
    assert any(line.startswith("No more than 10 workers") for line in helps(found))


def test_drift(tmp_path: Path) -> None:
    """Every worker has a hot key for one sixteenth of the time."""
    keys = []
    for worker in range(WORKERS):
        keys += _shuffled({**_cold(1000, 1), _on(worker): 500})
    found = explain(_written(tmp_path / "t", keys), FLINK)
    assert found.whole.peak < 1.2
    assert found.verdict == "drift"
    _flink(found, keys)
    assert found.window is not None
    assert found.focus is found.window
    assert found.window.top[0].cause == "hot key"
    assert "gets 1.1" in headline(found) or "gets 1.0" in headline(found)
    assert "over the whole trace" in headline(found)


def test_balanced_though_windows_are_small(tmp_path: Path) -> None:
    """Windows of 12 tuples on 16 workers look uneven by chance alone, which is no drift."""
    keys = _shuffled({f"k{at}": 1 for at in range(1200)})
    found = explain(_written(tmp_path / "t", keys), ReplayOptions("flink_keyby:max_parallelism=16384", 4))
    assert found.verdict == "balanced"
    assert found.window is not None
    assert found.window.peak > 2
    _flink(found, keys, max_parallelism=16384)
    assert found.remedies is None
    assert not list(helps(found))
    assert headline(found).endswith("which chance alone can give.")


def test_balanced(tmp_path: Path) -> None:
    keys = _shuffled({f"k{at}": 3 for at in range(20_000)})
    found = explain(_written(tmp_path / "t", keys), ReplayOptions("flink_keyby:max_parallelism=128", 8))
    assert found.verdict == "balanced"
    _flink(found, keys, max_parallelism=128)


def test_one_window_and_one_worker(tmp_path: Path) -> None:
    trace = _written(tmp_path / "t", ["a", "b"])
    found = explain(trace, ReplayOptions("kg", 1, window="100%"))
    assert (found.verdict, found.window, found.whole.peak) == ("balanced", None, 1.0)


@pytest.mark.parametrize("text", ["pkg", "sg", "d_choices", "dstream", "kg:ring=true"])
def test_a_run_is_explained_as_its_log_has_it(text: str, tmp_path: Path) -> None:
    """By the log, and without one by a second replay or by counting."""
    keys = _shuffled({**_cold(400, 5), "hot": 1500, "warm": 500})
    trace = _written(tmp_path / "t", keys)
    options = ReplayOptions(text, 8, sources=3, warmup="500", window="250")
    run_to_directory(trace, options, tmp_path / "logged", log=True)
    run_to_directory(trace, options, tmp_path / "plain")
    log = pq.read_table(tmp_path / "logged" / "assignments")
    texts = open_trace(trace).key_texts(range(402))
    pairs = [
        (texts[key], worker) for key, worker in zip(log["key_id"].to_pylist(), log["worker"].to_pylist(), strict=True)
    ][500:]
    how = "counted" if text.startswith("kg") else "log"
    found = explain_run(tmp_path / "logged")
    assert found.how == how
    assert found.window is not None
    window = dataclasses.replace(found.window, first=found.window.first - 500, end=found.window.end - 500)
    _agrees(dataclasses.replace(found, window=window), pairs, 250)
    again = explain_run(tmp_path / "plain")
    assert again.how == ("counted" if how == "counted" else "replayed")
    assert {**as_json(again), "how": how} == as_json(found)
    # And asked of the trace.
    assert as_json(explain(trace, options)) == as_json(again)


def test_a_key_that_two_workers_cannot_hold(tmp_path: Path) -> None:
    keys = _shuffled({**_cold(400, 5), "hot": 3000})
    found = explain(_written(tmp_path / "t", keys), ReplayOptions("pkg", 16))
    assert found.verdict == "hot key"
    assert "It has 9.60 in all: pkg does not spread it over enough workers." in headline(found)
    assert any("the hottest needs 10 workers at least" in line for line in helps(found))


def test_a_key_has_one_worker_also_where_that_must_be_replayed(tmp_path: Path) -> None:
    keys = _shuffled({**_cold(400, 5), "hot": 1000})
    trace = _written(tmp_path / "t", keys)
    found = explain(trace, ReplayOptions("kg", 16, arrivals="saturate"))
    assert (found.how, found.verdict) == ("replayed", "hot key")
    assert found.whole.tuples.tolist() == explain(trace, ReplayOptions("kg", 16)).whole.tuples.tolist()
    assert headline(found).endswith("nothing but splitting it goes below that.")


@pytest.mark.parametrize(
    ("text", "name"),
    [("kg", "hash seed"), ("storm_fields", "number of workers"), ("hazelcast", "number of partitions")],
)
def test_what_does_not_help(text: str, name: str, tmp_path: Path) -> None:
    keys = _shuffled({**_cold(400, 5), "hot": 3000})
    found = explain(_written(tmp_path / "t", keys), ReplayOptions(text, 8))
    assert any(line.startswith(f"Another {name} does not help: none of ") for line in helps(found))


def test_imbalance_that_no_key_explains(tmp_path: Path) -> None:
    """POSG sends less to a slow worker, by design."""
    keys = _shuffled(_cold(1000, 20))
    options = ReplayOptions("posg", 4, slowdown="1,4,4,4", arrivals="utilization=0.7")
    found = explain(_written(tmp_path / "t", keys), options)
    assert found.whole.peak > 1.2
    assert found.verdict == "choices of the grouping"
    assert not list(helps(found))


def test_windows_are_times_and_a_worker_joins(tmp_path: Path) -> None:
    keys = _shuffled({**_cold(400, 5), "hot": 1000})
    trace = _written(tmp_path / "t", keys)
    options = ReplayOptions("kg", 4, window="500ms", join=("50%",))
    run = run_to_directory(trace, options, tmp_path / "run", log=True)
    found = explain_run(tmp_path / "run")
    assert found.how == "log"
    assert found.whole.tuples.tolist() == run.tables["workers"]["tuples"].to_pylist()
    loads = np.array(run.tables["loads"]["tuples"].to_pylist()).reshape(-1, 5)
    worst = int((loads.max(axis=1) * 5 - loads.sum(axis=1)).argmax())
    assert found.window is not None
    assert found.window.tuples.tolist() == loads[worst].tolist()
    assert (found.window.first, found.window.end) == (worst * 500, worst * 500 + 500)
    assert (found.window.from_us, found.window.to_us) == (worst * 500_000, worst * 500_000 + 499_000)
    counted = explain(trace, dataclasses.replace(options, join=()))
    assert counted.how == "counted"
    assert counted.windows == found.windows


def test_a_run_whose_trace_is_another_one_by_now(tmp_path: Path) -> None:
    trace = _written(tmp_path / "t", ["a", "b", "c"] * 50)
    run_to_directory(trace, ReplayOptions("kg", 2), tmp_path / "run")
    trace.rename(tmp_path / "moved")
    with pytest.raises(DataError, match=r"its trace .* does not exist"):
        explain_run(tmp_path / "run")
    _written(trace, ["a", "b", "d"] * 50)
    with pytest.raises(DataError, match="is another one by now"):
        explain_run(tmp_path / "run")


def test_a_run_that_is_not_what_its_record_says(tmp_path: Path) -> None:
    trace = _written(tmp_path / "t", ["a", "b", "c"] * 50)
    run = tmp_path / "run"
    run_to_directory(trace, ReplayOptions("kg", 2), run)
    record = json.loads((run / "run.json").read_text())
    record["options"]["grouping"] = "sg"
    (run / "run.json").write_text(json.dumps(record))
    with pytest.raises(DataError, match="workers get other loads"):
        explain_run(run)
    (run / "run.json").write_text("{}")
    with pytest.raises(DataError, match="is not the record of a run"):
        explain_run(run)


@pytest.mark.parametrize("window", ["1%", "20ms"])
@pytest.mark.parametrize("warmup", ["0", "10ms"])
def test_a_run_with_a_damaged_log(tmp_path: Path, window: str, warmup: str) -> None:
    trace = _written(tmp_path / "t", ["a", "b", "c"] * 50)
    run_to_directory(trace, ReplayOptions("sg", 2, window=window, warmup=warmup), tmp_path / "run", log=True)
    assert explain_run(tmp_path / "run").how == "log"
    (part,) = (tmp_path / "run" / "assignments").iterdir()
    part.write_bytes(part.read_bytes()[:100])
    with pytest.raises(DataError, match=r"run/assignments cannot be read"):
        explain_run(tmp_path / "run")
    part.unlink()
    with pytest.raises(DataError, match=r"run/assignments cannot be read"):
        explain_run(tmp_path / "run")


def test_a_number_that_makes_no_sense(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--top-workers 0"):
        explain(_written(tmp_path / "t", ["a"]), ReplayOptions("kg", 2), workers=0)


SHIPPED = {
    "twitter": ("csv", "twitter-cache-cluster52/*.zst", "--key", "object"),
    "wikipedia": ("text", "jodie-wikipedia/*.gz", "--time", "4", "--key", "3"),
    "flights": ("csv", "nycflights13/*.gz", "--time", "time_hour", "--key", "dest"),
    "reviews": ("csv", "anon-reviews/*.bz2", "--time", "date", "--key", "vendorId"),
    "pageviews": ("wikipedia-pageviews", "wikimedia-pageviews-hourly/*.gz"),
}


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_streams(name: str, tmp_path: Path) -> None:
    reader, files, *more = SHIPPED[name]
    (raw,) = (Path(__file__).parents[3] / "traces" / "raw").glob(files)
    command = ["ingest", reader, str(raw), *more, "--engine", "local", "-o", str(tmp_path / "t")]
    assert CliRunner().invoke(app, command).exit_code == 0
    trace = open_trace(tmp_path / "t")
    texts = trace.key_texts(range(trace.keys))
    keys = [str(texts[key]) for batch in trace.batches() if batch.key_id is not None for key in batch.key_id.tolist()]
    found = explain(tmp_path / "t", ReplayOptions("flink_keyby", 60, window="1000"))
    _agrees(found, _placed(keys, lambda key: keyby_subtask(key, 60)), 1000)
    assert found.verdict == ("hot key" if name in ("twitter", "pageviews") else "collision of hot keys")


def test_a_run_is_explained_without_what_comes_after_its_workers(tmp_path: Path) -> None:
    app = tmp_path / "mine.py"
    app.write_text("from streamgroup.apps.count import finish, merge, start, update\n")
    trace = _written(tmp_path / "t", _shuffled({**_cold(40, 5), "hot": 100}))
    run_to_directory(trace, ReplayOptions("pkg", 4, app=str(app), aggregators=2), tmp_path / "run")
    app.unlink()
    assert explain_run(tmp_path / "run").how == "replayed"
