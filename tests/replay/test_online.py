"""A partitioner decides as a replay does: source by source, with keys that it learns as they come."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import streamgroup as sg
from streamgroup.base.errors import UsageError
from streamgroup.online import Partitioner
from streamgroup.replay.scenario.grouping_selection import family, select
from streamgroup.traces.trace import open_trace

N = 4
# How the groupings are asked that refuse to decide alone by default.
ALONE = {"dalton": "dalton:sync=false", "rivetti_dkg": "rivetti_dkg:learner=source,learning_length=200"}
NEVER = {"full_knowledge", "oracle", "salted"}
ONE_SOURCE = {"consistent_grouping", "dstream", "load_aware", "posg"}
OTHERS = ("kg:ring=true", "fish:ring=false", "fish:hwa=false", "d_choices:detector=lossy_counting")


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("online") / "z.trace"
    sg.synth("zipf", path, tuples=1200, keys=300, exponent=1.2, seed=3)
    return path


Log = dict[str, Any]


def replayed(trace: Path, folder: Path, grouping: str, sources: int) -> tuple[Log, list[bytes | None]]:
    sg.replay(
        trace, grouping, N, sources=sources, arrivals="utilization=0.9", service="1ms", control_delay="1ms",
        output=folder / "run", log=True,
    )  # fmt: skip
    table = pq.read_table(folder / "run" / "assignments")
    log = {name: table[name].to_numpy() for name in table.column_names}
    keys = list(open_trace(trace).all_keys())
    return log, [keys[key] for key in log["key_id"]]


def reports(log: Log, keys: list[bytes | None]) -> Iterator[tuple[int, Callable[[Partitioner], None]]]:
    """Give what workers report, in the order of the finishes, with the times of these."""
    for i in np.lexsort((log["worker"], log["finish_ns"])).tolist():
        worker, arrival, start, finish = (int(log[c][i]) for c in ("worker", "arrival_ns", "start_ns", "finish_ns"))
        yield finish, lambda p, a=(worker, keys[i], arrival, start, finish): p.finished(*a)  # type: ignore[misc]


def decided(p: Partitioner, log: Log, keys: list[bytes | None], mine: list[int], between: list[bytes]) -> list[int]:
    """Let a partitioner decide for the tuples of its source: some one by one, others at once; keys come in between."""
    found: list[int] = []
    waiting = list(reports(log, keys)) if p.listens else []
    half = len(mine) // 2
    p.known(pa.array(keys[: len(keys) // 3]))
    for number, at in enumerate(mine):
        if number == half:
            p.known([*between, *dict.fromkeys(keys)])
        now = int(log["arrival_ns"][at])
        while waiting and waiting[0][0] <= now:
            waiting.pop(0)[1](p)
        if number >= half + 5 and not p.listens:
            rest = mine[number:]
            return found + p.choose_batch([keys[i] for i in rest], log["arrival_ns"][rest]).tolist()
        found += [p.choose(keys[at], now)] if number % 2 else p.choose_batch(pa.array([keys[at]]), now).tolist()
    return found


@pytest.mark.many_groupings
@pytest.mark.parametrize("name", sorted({*family(), *OTHERS} - NEVER))
def test_decisions_are_those_of_a_replay(trace: Path, tmp_path: Path, name: str) -> None:
    grouping, sources = ALONE.get(name, name), 1 if name in ONE_SOURCE else 2
    log, keys = replayed(trace, tmp_path, grouping, sources)
    source = sources - 1
    mine = np.flatnonzero(log["source"] == source).tolist()
    p = Partitioner(grouping, N, source, sources=sources, control_delay="1ms", interpreted=True)
    # More than there is room for at first.
    between = [b"between-%d" % i for i in range(5000)]
    assert decided(p, log, keys, mine, between) == log["worker"][mine].tolist()
    assert p.state["keys"] == len(between) + len(set(keys))


@pytest.mark.parametrize("grouping", ["pkg"])
def test_compiled_decides_as_interpreted(trace: Path, tmp_path: Path, grouping: str) -> None:
    log, keys = replayed(trace, tmp_path, grouping, 2)
    mine = np.flatnonzero(log["source"] == 1).tolist()
    p = Partitioner(grouping, N, 1, sources=2)
    assert [p.choose(keys[i], int(log["arrival_ns"][i])) for i in mine[:200]] == log["worker"][mine[:200]].tolist()
    rest = mine[200:]
    p.known([b"x%d" % i for i in range(5000)])
    assert p.choose_batch([keys[i] for i in rest], log["arrival_ns"][rest]).tolist() == log["worker"][rest].tolist()


@pytest.mark.parametrize("name", [*sorted(NEVER), "dstream", "dalton", "rivetti_dkg", "fish:scope=global", "posg"])
def test_some_cannot_decide_alone(name: str) -> None:
    with pytest.raises(UsageError, match=f"-g {name}.* "):
        Partitioner(name, N, sources=5, interpreted=True)


def test_what_is_wrong_is_refused() -> None:
    with pytest.raises(UsageError, match="source 5 is not one of 5"):
        Partitioner("kg", 4, 5, sources=5)
    with pytest.raises(UsageError, match="no option 'sed'"):
        Partitioner("kg", 4, sed=3)
    with pytest.raises(UsageError, match="0 workers"):
        Partitioner("kg", 0)
    with pytest.raises(UsageError, match="0 sources are not between"):
        Partitioner("kg", 4, sources=0)
    with pytest.raises(UsageError, match="--seed -1 is not between"):
        Partitioner("kg", 4, seed=-1)
    with pytest.raises(UsageError, match="key-type"):
        Partitioner("kg", 4, key_type="strings")
    p = Partitioner("kg", 4, interpreted=True)
    for ids in ([3], [-1], [2**32], np.array([-(2**32)])):
        p.known([b"a", b"b", b"c"])
        with pytest.raises(UsageError, match="ids of known keys are 0 to 2"):
            p.choose_known(ids)
    listens = Partitioner("fish", 4, sources=1, interpreted=True)
    for worker in (4, -1):
        with pytest.raises(UsageError, match=r"none of 0\.\.3"):
            listens.finished(worker, b"a", 0, 1, 2)
    with pytest.raises(UsageError, match="live workers"):
        p.change_workers([])
    p.change_workers([0, 2, 3])
    with pytest.raises(UsageError, match=r"live workers \[0, 1, 2, 3\] follow \[0, 2, 3\]") as error:
        p.change_workers([0, 1, 2, 3])
    assert "ids from 4 on" in str(error.value.hint)


def test_workers_change_as_in_a_replay(trace: Path, tmp_path: Path) -> None:
    sg.replay(trace, "pkg", N, sources=1, arrivals="rate=1000", output=tmp_path / "run", log=True,
              leave="300:1", join="600")  # fmt: skip
    table = pq.read_table(tmp_path / "run" / "assignments")
    keys = list(open_trace(trace).all_keys())
    p = Partitioner("pkg", N, sources=1, interpreted=True)
    found = []
    for begin, live in ((0, [0, 1, 2, 3]), (300, [0, 2, 3]), (600, [0, 2, 3, 4])):
        if begin:
            p.change_workers(live, begin * 1_000_000)
        end = {0: 300, 300: 600, 600: 1200}[begin]
        found += p.choose_batch([keys[key] for key in table["key_id"].to_pylist()[begin:end]]).tolist()
    assert found == table["worker"].to_pylist()


def test_the_null_key_and_an_unlimited_state() -> None:
    p = Partitioner("kg", 4, interpreted=True)
    assert p.choose(None) == p.choose_batch([None])[0] == p.choose_batch(pa.array([None], pa.binary()))[0]
    assert select("kg").params.not_alone(5) == ""
