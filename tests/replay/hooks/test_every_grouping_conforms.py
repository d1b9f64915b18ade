"""What every grouping must do, found by discovery: a new file is tested without being named here."""

import importlib
import inspect
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, get_origin

import numpy as np
import pyarrow.parquet as pq
import pytest

from streamgroup.groupings.protocol import GroupingParams
from streamgroup.replay import interpreted_or_compiled
from streamgroup.replay.accounting.outcome import Outcome
from streamgroup.replay.replay_trace import replay
from streamgroup.replay.scenario.grouping_selection import family, select
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.traces.trace import Trace, open_trace
from tests.traces_by_hand import write_trace

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    rng = np.random.default_rng(7)
    keys = rng.zipf(1.3, 6000) % 300
    times = np.cumsum(rng.integers(0, 60, 6000))
    tuples = [(int(time), b"key %d" % key, None) for time, key in zip(times, keys, strict=True)]
    return open_trace(write_trace(tmp_path_factory.mktemp("conformance") / "t", tuples, parts=3))


def logged(trace: Trace, options: ReplayOptions, folder: Path, **how: Any) -> tuple[Any, Outcome]:
    outcome = replay(trace, options, log_directory=folder, **how)
    return pq.read_table(folder), outcome


def same(one: Outcome, other: Outcome) -> None:
    """Two outcomes are the same but for the seconds they took."""
    for name in vars(one):
        if name.endswith("_seconds"):
            continue
        _same(getattr(one, name), getattr(other, name), name)


def _same(one: Any, other: Any, name: str) -> None:
    if isinstance(one, np.ndarray):
        assert one.dtype == other.dtype, name
        assert np.array_equal(one, other), name
    elif hasattr(one, "__dataclass_fields__"):
        for field in one.__dataclass_fields__:
            _same(getattr(one, field), getattr(other, field), f"{name}.{field}")
    elif hasattr(one, "_fields"):
        for field in one._fields:
            _same(getattr(one, field), getattr(other, field), f"{name}.{field}")
    else:
        assert one == other, name


@pytest.mark.parametrize("name", family())
def test_compiled_equals_interpreted(trace: Trace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    # Slowdowns as in the comparison with twins: the same compiled code serves both.
    options = ReplayOptions(
        name, 9, sources=3, arrivals="utilization=1.1", network_delay="3us", slowdown="1,1.5", service="1ms"
    )
    compiled, fast = logged(trace, options, tmp_path / "compiled", interpreted=False)
    plain, slow = logged(trace, options, tmp_path / "plain", interpreted=True)
    assert compiled == plain
    same(fast, slow)
    # As if there were no code, and no time to go on without.
    monkeypatch.setattr(interpreted_or_compiled, "is_at_hand", lambda *_: False)
    monkeypatch.setattr(interpreted_or_compiled, "_FIRST", 500)
    monkeypatch.setattr(interpreted_or_compiled, "_LEAST_S", 0.0)
    monkeypatch.setattr(interpreted_or_compiled, "_TUPLES", 0)
    begun, mixed = logged(trace, options, tmp_path / "mixed")
    assert begun == compiled
    same(fast, mixed)
    assert mixed.interpreted_seconds > 0
    assert compiled.num_rows == trace.tuples
    workers = compiled["worker"].to_numpy()
    assert workers.min() >= 0
    assert workers.max() < 9


def own_code(name: str) -> str:
    """The source of a grouping, of its detector, and of what it takes from other groupings."""
    selection = select(name)
    rooms = {selection.module}
    detector = getattr(selection.params, "detector", None)
    # Greedy-d uses one for the head only.
    if detector is not None and getattr(selection.params, "scope", "head") == "head":
        rooms.add(importlib.import_module(f"streamgroup.groupings.detectors.{detector}"))
    for value in vars(selection.module).values():
        home = value if inspect.ismodule(value) else inspect.getmodule(value)
        if home is not None and home.__name__.startswith("streamgroup.groupings.") and "protocol" not in home.__name__:
            rooms.add(home)
    return "".join(inspect.getsource(room) for room in rooms)


@pytest.mark.parametrize("name", family())
def test_the_seed_alone_decides(trace: Trace, tmp_path: Path, name: str) -> None:
    options = ReplayOptions(grouping=name, workers=5, arrivals="rate=3000")
    first, one = logged(trace, options, tmp_path / "a")
    again, two = logged(trace, options, tmp_path / "b")
    assert first == again
    same(one, two)
    reseeded, _ = logged(trace, replace(options, seed=1), tmp_path / "c")
    rehashed, _ = logged(trace, replace(options, hash_seed=1), tmp_path / "d")
    # Nothing but the choices may change, and these only by the seed that the grouping uses.
    code, params = own_code(name), select(name).params
    # Round robin and Flink's rule draw nothing, and the ring takes no hash seed.
    draws = "draw_stream" in code and getattr(params, "pick", "random") == "random"
    draws &= getattr(params, "rule", "storm") == "storm"
    hashes = "candidate" in code and not getattr(params, "ring", False)
    for other, changes in ((reseeded, draws), (rehashed, hashes)):
        assert other["arrival_ns"] == first["arrival_ns"]
        assert other["source"] == first["source"]
        assert (other["worker"] != first["worker"]) is changes
    assert set(params.seeds_used()) == {*["seed"] * draws, *["hash_seed"] * hashes}


@pytest.mark.parametrize("name", family())
def test_one_worker_gets_everything(trace: Trace, name: str) -> None:
    outcome = replay(trace, ReplayOptions(grouping=name, workers=1, arrivals="rate=100"))
    assert outcome.worker.tuples.tolist() == [trace.tuples]
    assert outcome.worker.keys.tolist() == [trace.keys]


@pytest.mark.parametrize("name", family())
def test_parameters_and_the_rule_are_documented(name: str) -> None:
    selection = select(name)
    assert selection.text == name
    assert issubclass(selection.module.Params, GroupingParams)
    for field, info in selection.module.Params.model_fields.items():
        assert info.description, field
        assert info.metadata or info.annotation is bool or get_origin(info.annotation) is Literal, (
            f"{field} has no bounds"
        )
    assert selection.module.__doc__
    assert (ROOT / "docs" / "groupings" / f"{name}.md").is_file(), "every grouping has a page"
