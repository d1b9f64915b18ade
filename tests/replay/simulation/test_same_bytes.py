"""The same bytes, however a run is cut into pieces: of the stream, of rows that are kept, of windows; and compiled."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pytest

from streamgroup.metrics.run_tables import tables
from streamgroup.replay.accounting import assignment_log, recorder
from streamgroup.replay.aggregator_backpressure import simulation as held_back
from streamgroup.replay.replay_trace import replay
from streamgroup.replay.scenario import import_user_code
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.replay.simulation import chunk_driven, event_driven
from streamgroup.traces import layout
from streamgroup.traces.trace import Trace, open_trace
from tests.traces_by_hand import Tuple, write_trace

FILES = {"listener": str(Path(__file__).parents[1] / "groupings_outside_package" / "listener.py")}
# The digests of what runs leave behind, by grouping and set of options.
Whole = dict[tuple[str, str], dict[str, str]]
TUPLES = 1500
COMMON: dict[str, Any] = {"workers": 5, "sources": 3, "window": "2%", "aggregate_every": "20ms"}
HELD: dict[str, Any] = {"aggregators": 2, "aggregator_service": "2ms:exponential", "queue_capacity": 3}
# All with costs from the trace and, but for merged tuples, sources in turn: few compiled loops of pkg serve them all.
RUNS: dict[str, dict[str, Any]] = {
    "open": {"slowdown": "1,2", "warmup": "100"},
    "leave": {"leave": ("33ms", "700:1"), "join": ("50%",), "window": "7ms"},
    "crash": {"crash": ("33ms", "700:random"), "window": "13", "warmup": "30ms"},
    "block": {"queue_capacity": 3, "when_full": "block", "warmup": "777"},
    "block and crash": {"queue_capacity": 2, "crash": ("40ms",), "join": ("41ms", "900"), "window": "9ms"},
    "drop": {"queue_capacity": 2, "when_full": "drop", "network_delay": "700us", "window": "11"},
    "saturate": {"arrivals": "saturate", "max_pending": 7, "warmup": "5ms"},
    "saturate and leave": {"arrivals": "saturate", "max_pending": 2, "queue_capacity": 1, "leave": ("60%",)},
    "state": {"state_cost": "1/10", "memory_limit": "8:1.5", "warmup": "30ms"},
    "state and block": {"state_cost": "1/10", "queue_capacity": 3, "warmup": "777", "crash": ("40ms",)},
    "state and merged tuples": {"state_cost": "1/10", "memory_limit": "8:1.5", "warmup": "333", "combine": "7"},
    "redeliver": {"crash": ("35ms:0", "1200"), "redeliver": True, "control_delay": "3ms", "join": ("300",)},
    "held back": {**HELD, "network_delay": "700us", "warmup": "30ms", "window": "7ms"},
    "held back, closed": {**HELD, "arrivals": "saturate", "max_pending": 7, "warmup": "5ms", "aggregate_every": "19"},
}
# Only the listener hears of finished tuples; it cannot follow workers that change.
HEARING = ["open", "block", "drop", "saturate", "held back"]
# Rows of a chunk; tuples chosen before they are served; events that are kept; cells of windows.
PIECES = {"chunks of 7": (7, 3, 1 << 17, 1 << 20), "small": (128, 256, 64, 11), "uneven": (1000, 1, 256, 1)}


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    rng = np.random.default_rng(3)
    times = np.cumsum(rng.choice([0, 0, 20, 100, 150], TUPLES)).tolist()
    keys = (rng.zipf(1.3, TUPLES) % 40).tolist()
    costs = rng.choice([50.0, 180.5, 400.0, 700.25], TUPLES).tolist()
    rows: list[Tuple] = [(at, b"k%d" % key, cost) for at, key, cost in zip(times, keys, costs, strict=True)]
    return open_trace(write_trace(tmp_path_factory.mktemp("same") / "x.trace", rows, parts=2))


@pytest.fixture(scope="module", autouse=True)
def _of_the_package() -> Iterator[None]:
    """Take the listener for a grouping of the package: those are rewritten to be interpreted, nothing is compiled."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(import_user_code, "_with_companions", lambda path, digest: "")
        yield


def cut(monkeypatch: pytest.MonkeyPatch, pieces: tuple[int, int, int, int]) -> None:
    rows, block, kept, cells = pieces
    monkeypatch.setattr(layout, "BLOCK_ROWS", rows)
    monkeypatch.setattr(chunk_driven, "BLOCK", block)
    monkeypatch.setattr(event_driven, "_EVENTS", kept)
    monkeypatch.setattr(recorder, "_WINDOW_CELLS", cells)
    monkeypatch.setattr(held_back, "_ROWS", 4)
    monkeypatch.setattr(held_back, "_LOG", block)


def digests(trace: Trace, directory: Path, *, interpreted: bool = True, **options: Any) -> dict[str, str]:
    """What a run leaves behind: its tables and the files of its log, by name."""
    given = ReplayOptions(**{"grouping": "pkg", **COMMON, **options})
    outcome = replay(trace, given, log_directory=directory, interpreted=interpreted)
    found = {}
    for name, table in tables(outcome).items():
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table.combine_chunks())
        found[name] = hashlib.sha256(sink.getvalue()).hexdigest()
    for part in sorted(directory.iterdir()):
        found[part.name] = hashlib.sha256(part.read_bytes()).hexdigest()
    return found


@pytest.fixture(scope="module")
def whole(trace: Trace, tmp_path_factory: pytest.TempPathFactory) -> Whole:
    """All runs, each in one piece, interpreted."""
    folder = tmp_path_factory.mktemp("whole")
    return {
        (grouping, name): digests(trace, folder / grouping / name, grouping=FILES.get(grouping, grouping), **RUNS[name])
        for grouping, name in ASKED
    }


ASKED = [("pkg", name) for name in RUNS] + [("listener", name) for name in HEARING]


@pytest.mark.parametrize(
    ("grouping", "name", "pieces"),
    [(*of, pieces) for of in ASKED for pieces in PIECES],
)
def test_pieces_of_any_size(
    trace: Trace, whole: Whole, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, grouping: str, name: str, pieces: str
) -> None:
    cut(monkeypatch, PIECES[pieces])
    found = digests(trace, tmp_path / "log", grouping=FILES.get(grouping, grouping), **RUNS[name])
    assert found == whole[grouping, name]


def test_a_change_comes_before_its_tuple_though_that_has_to_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tuple each us, 10 us each, one may wait: when #6 arrives and a worker joins, #3 still waits for a place."""
    trace = open_trace(write_trace(tmp_path / "x.trace", [(at, b"a", 10.0) for at in range(12)]))
    options = {"grouping": "sg", "workers": 1, "sources": 1, "queue_capacity": 1, "join": ("6",)}
    one = digests(trace, tmp_path / "one", **options)
    monkeypatch.setattr(layout, "BLOCK_ROWS", 3)
    assert digests(trace, tmp_path / "other", **options) == one


def test_who_is_alive_in_a_window_though_its_tuples_have_to_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tuples 0..8 arrive before the second worker."""
    monkeypatch.setattr(layout, "BLOCK_ROWS", 3)
    trace = open_trace(write_trace(tmp_path / "x.trace", [(at, b"a", 10.0) for at in range(12)]))
    options = ReplayOptions(grouping="sg", workers=1, sources=1, queue_capacity=1, join=("8500ns",), window="1")
    ever = replay(trace, options, interpreted=True).window.ever
    assert ever is not None
    assert ever.tolist() == [1] * 9 + [2] * 3


def test_runs_differ_from_each_other(whole: Whole) -> None:
    """The options of the sets are no empty words."""
    assert len({found["summary"] for found in whole.values()}) == len(whole)
    assert len({found["part-00000.parquet"] for found in whole.values()}) == len(whole)
    assert all(set(found) == {*tables_of_a_run(), "part-00000.parquet"} for found in whole.values())


def tables_of_a_run() -> set[str]:
    return {"summary", "windows", "workers", "loads", "latency", "keys", "lag"}


@pytest.mark.parametrize("name", RUNS)
def test_compiled_runs_are_the_same_again_and_in_pieces(
    trace: Trace, whole: Whole, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    for again in ("once", "twice"):
        assert digests(trace, tmp_path / again, interpreted=False, **RUNS[name]) == whole["pkg", name]
    pieces = "uneven" if name == "block and crash" else "small"
    cut(monkeypatch, PIECES[pieces])
    assert digests(trace, tmp_path / "small", interpreted=False, **RUNS[name]) == whole["pkg", name]


def test_parts_of_the_log_hold_the_same_rows(trace: Trace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a part ends depends on the number of rows alone, in both loops."""
    monkeypatch.setattr(assignment_log, "_CHUNK", 100)
    for name in ("open", "drop"):
        one = digests(trace, tmp_path / f"{name}-one", **RUNS[name])
        with pytest.MonkeyPatch.context() as patch:
            cut(patch, PIECES["small"])
            assert digests(trace, tmp_path / f"{name}-other", **RUNS[name]) == one
        assert sum(part.startswith("part-") for part in one) == 2
