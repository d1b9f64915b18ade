"""What replays share is read once, and none can tell from its results that it shared."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from streamgroup.base.errors import DataError
from streamgroup.metrics.run_tables import tables
from streamgroup.replay.input.chunk_cache import ChunkCache
from streamgroup.replay.input.prefetch import ChunkReader
from streamgroup.replay.replay_trace import replay
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.traces import layout
from streamgroup.traces.trace import Trace, open_trace
from tests.traces_by_hand import Tuple, write_trace

TUPLES = 200
# Each two differ in what their chunks hold, or only in what has nothing to do with it.
RUNS: list[dict[str, Any]] = [
    {},
    {"workers": 7},
    {"seed": 5},
    {"hash_seed": 5},
    {"sources": 2},
    {"speedup": "2"},
    {"spread_ties": True},
    {"window": "7"},
    {"warmup": "100"},
    {"warmup": "5ms"},
    {"service": "1ms"},
    {"service_distribution": "exponential"},
    {"service_distribution": "exponential", "seed": 5},
    {"arrivals": "rate=1000"},
    {"arrivals": "utilization=0.5"},
    {"arrivals": "utilization=0.5", "workers": 7},
    {"arrivals": "poisson=1000"},
    {"arrivals": "poisson=1000", "seed": 5},
    {"arrivals": "saturate"},
    {"source_assignment": "random"},
    {"source_assignment": "random", "seed": 5},
    {"source_assignment": "random", "sources": 2},
    {"source_assignment": "key"},
    {"queue_capacity": 2, "when_full": "drop"},
    {"leave": ("50%",)},
]


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    rng = np.random.default_rng(3)
    times = np.cumsum(rng.choice([0, 0, 20, 100, 150], TUPLES)).tolist()
    keys = (rng.zipf(1.3, TUPLES) % 40).tolist()
    costs = rng.choice([50.0, 180.5, 400.0], TUPLES).tolist()
    rows: list[Tuple] = [(at, b"k%d" % key, cost) for at, key, cost in zip(times, keys, costs, strict=True)]
    return open_trace(write_trace(tmp_path_factory.mktemp("chunk_cache") / "x.trace", rows, parts=2))


def found(trace: Trace, options: dict[str, Any], chunk_cache: ChunkCache | None) -> dict[str, Any]:
    given = ReplayOptions(**{"grouping": "pkg", "workers": 5, "sources": 3, **options})
    made = tables(replay(trace, given, interpreted=True, chunk_cache=chunk_cache))
    return {name: table.to_pydict() for name, table in made.items()}


def test_results_do_not_tell_that_chunks_were_shared(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "BLOCK_ROWS", 64)
    alone = [found(trace, options, None) for options in RUNS]
    # All that is read fits, or some of it, so that chunks come, go and come again.
    for budget in (1 << 30, 30 * TUPLES):
        chunk_cache = ChunkCache(budget)
        with ThreadPoolExecutor(3) as pool:
            shared = list(pool.map(lambda options: found(trace, options, chunk_cache), RUNS))  # noqa: B023 (used up here)
        assert shared == alone


def test_replays_that_need_the_same_chunks_make_them_once(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "BLOCK_ROWS", 64)
    made = []
    make = ChunkReader._make
    monkeypatch.setattr(ChunkReader, "_make", lambda self, batch: made.append(batch.offset) or make(self, batch))
    chunk_cache = ChunkCache(1 << 20)
    for options in ({}, {"grouping": "kg"}, {"workers": 9}, {"seed": 3}, {"sources": 4}, {"hash_seed": 2}):
        found(trace, options, chunk_cache)
    once = len(made)
    assert once == len(set(made))
    found(trace, {"speedup": "3"}, chunk_cache)
    assert len(made) == 2 * once


def counting(items: list[int], begun: list[int]) -> Iterator[int]:
    begun.append(1)
    yield from items


def test_what_does_not_fit_is_made_anew_and_what_nobody_reads_makes_room() -> None:
    chunk_cache = ChunkCache(100)
    begun: dict[str, list[int]] = {"a": [], "b": [], "c": [], "d": []}

    def read(name: str, size: int) -> list[int]:
        return list(chunk_cache.shared(name, size, lambda: counting([1, 2], begun[name])))

    for _ in range(2):
        assert read("a", 60) == [1, 2]
    assert read("b", 40) == [1, 2]
    assert (len(begun["a"]), len(begun["b"])) == (1, 1)
    reading = chunk_cache.shared("b", 40, lambda: counting([1, 2], begun["b"]))
    assert next(reading) == 1
    # a is forgotten for it, b is being read.
    assert read("c", 50) == [1, 2]
    assert read("a", 60) == [1, 2]
    assert (len(begun["a"]), len(begun["b"]), len(begun["c"])) == (2, 1, 1)
    assert list(reading) == [2]
    # Larger than all there is: read, and not kept.
    for times in (1, 2):
        assert list(chunk_cache.shared("d", 101, lambda: counting([1, 2], begun["d"]))) == [1, 2]
        assert len(begun["d"]) == times


def test_an_error_is_everybodys() -> None:
    def broken() -> Iterator[int]:
        yield 1
        raise DataError("the file is damaged", "make it again")

    chunk_cache = ChunkCache(100)
    for _ in range(2):
        items = chunk_cache.shared("x", 10, broken)
        assert next(items) == 1
        with pytest.raises(DataError, match="damaged"):
            next(items)


def test_threads_see_all_items_in_order() -> None:
    chunk_cache = ChunkCache(1 << 20)
    begun: list[int] = []
    start = threading.Barrier(4)

    def read() -> list[int]:
        start.wait()
        return list(chunk_cache.shared("x", 10, lambda: counting(list(range(5000)), begun)))

    with ThreadPoolExecutor(4) as pool:
        taken = list(pool.map(lambda _: read(), range(4)))
    assert taken == [list(range(5000))] * 4
    assert len(begun) == 1


def test_a_reader_that_stops_leaves_the_rest_to_others(tmp_path: Path, trace: Trace) -> None:
    chunk_cache = ChunkCache(1 << 20)

    def stop(done: int) -> None:
        raise KeyboardInterrupt

    given = ReplayOptions(grouping="pkg", workers=5)
    with pytest.raises(KeyboardInterrupt):
        replay(trace, given, interpreted=True, chunk_cache=chunk_cache, progress=stop)
    assert found(trace, {}, chunk_cache) == found(trace, {}, None)
