"""Where keys go, as groupings tell it beforehand, against where a replay sends them."""

from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from streamgroup.base.compiling import plain_python
from streamgroup.engines.keys.typed_key_arrays import make_keys, pack
from streamgroup.groupings.protocol import GroupingParams
from streamgroup.replay.replay_trace import replay
from streamgroup.replay.scenario.grouping_selection import family, select
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.traces.trace import Trace, open_trace
from tests.groupings.contexts_and_worker_changes import KEYS, context
from tests.traces_by_hand import write_trace

VARIANTS = (
    "kg:ring=true,vnodes=7",
    "pkg:d=1",
    "pkg:d=3",
    "greedy_d:d=5",
    "greedy_d:scope=head,d=4",
    "fish:ring=false",
    "fish:chk=false,hwa=false",
    "dynamic_kg:initial=3",
    "salted:salts=1",
    "dstream:detector=space_saving",
    "rivetti_dkg:learning_length=1000",
    "consistent_grouping:virtual=2",
    "bounded_load:c=0.01,vnodes=2",
    "storm_pkg:version=1,mode=first",
    "kafka:partitions=11,assignor=round_robin",
    "pulsar:mode=auto_split",
    "pulsar:mode=consistent",
    "flink_keyby:max_parallelism=20",
)
# Tuples after which the keys of a grouping that learns go elsewhere, as its remark says.
LEARNING = {"rivetti_dkg:learning_length=1000": 1000}


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    rng = np.random.default_rng(3)
    keys = rng.zipf(1.2, 1500) % 400
    tuples = [(1000 * i, b"key %d" % key, None) for i, key in enumerate(keys)]
    return open_trace(write_trace(tmp_path_factory.mktemp("destinations") / "t", tuples))


def watched(trace: Trace, text: str, workers: int, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, list[Any]]:
    """Replay, interpreted; give the context of the start, and of each tuple: key, worker, whether hot."""
    module, seen, contexts = select(text).module, [], []
    start, rewritten = module.start, plain_python._plain_class

    def start_watched(params: GroupingParams, context: Any) -> Any:
        contexts.append(context)
        return start(params, context)

    @cache
    def watched_class(of: type, kind: Any) -> type:
        """Note what the rewritten class chooses: a class written here would have its kernels compiled."""
        made: Any = rewritten(of, kind)

        def choose(self: Any, source: int, key: int, now: int) -> int:
            worker: int = made.choose(self, source, key, now)
            hot = getattr(self, "choices", None)
            seen.append((int(key), int(worker), hot is not None and hot[0] != 0))
            return worker

        return type(of.__name__, (made,), {"__slots__": (), "choose": choose}) if hasattr(of, "choose") else made

    monkeypatch.setattr(module, "start", start_watched)
    monkeypatch.setattr(plain_python, "_plain_class", watched_class)
    replay(trace, ReplayOptions(grouping=text, workers=workers, sources=3, hash_seed=5), interpreted=True)
    assert len(seen) == trace.tuples
    return contexts[0], seen


@pytest.mark.parametrize("workers", [1, 2, 9])
@pytest.mark.parametrize("text", [*family(), *VARIANTS])
def test_cold_keys_go_where_their_grouping_says(
    trace: Trace, text: str, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    context, seen = watched(trace, text, workers, monkeypatch)
    told = select(text).params.destinations(context)
    assert len(told.workers) == trace.keys
    assert np.issubdtype(told.workers.dtype, np.integer)
    cold = [(key, worker) for key, worker, hot in seen[: LEARNING.get(text)] if not hot]
    assert len(cold) > 200 or workers < 3
    for key, worker in cold:
        assert worker in told.workers[key], key
    if not told.remark:
        assert cold == [(key, worker) for key, worker, _ in seen], "what may go elsewhere has a remark"


@pytest.mark.parametrize("text", ["pkg", "pkg:d=3", "greedy_d:d=5", "kg", "kg:ring=true"])
def test_no_worker_is_told_that_never_comes(trace: Trace, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    context, seen = watched(trace, text, 9, monkeypatch)
    told = select(text).params.destinations(context)
    found = defaultdict(set)
    for key, worker, _ in seen:
        found[key].add(worker)
    # Key 0 is the most frequent: all of its candidates take some of it.
    assert found[0] == set(told.workers[0].tolist())


@pytest.mark.parametrize("text", [*family(), *VARIANTS])
def test_a_key_goes_where_it_goes_whatever_the_other_keys(text: str) -> None:
    params, whole = select(text).params, context(list(range(7)))
    some = np.array([3, 17, 4])
    part = whole._replace(
        keys=len(some),
        hash_lo=whole.hash_lo[some],
        hash_hi=whole.hash_hi[some],
        candidates=lambda d: whole.candidates(d)[some],
        typed_keys=lambda kind: make_keys(kind, *pack([whole.typed_keys(kind).raw(key) for key in some])),
    )
    assert params.destinations(whole).workers.shape[0] == KEYS
    assert params.destinations(part).workers.tolist() == params.destinations(whole).workers[some].tolist()


def test_live_workers_are_told_by_id() -> None:
    live = [0, 2, 5]
    for text in (*family(), *VARIANTS):
        assert set(select(text).params.destinations(context(live)).workers.ravel().tolist()) <= set(live), text


def test_probes_are_told_in_their_order(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first tuple of a source finds all bins empty: it goes to the first of its key's workers."""
    context, seen = watched(trace, "consistent_grouping", 9, monkeypatch)
    told = select("consistent_grouping").params.destinations(context).workers
    assert [worker for _, worker, _ in seen[:3]] == [told[key][0] for key, _, _ in seen[:3]]
    assert np.sort(told, axis=1).tolist() == [list(range(9))] * trace.keys


def test_a_file_of_ones_own_may_tell_or_not(tmp_path: Path) -> None:
    text = """
from streamgroup.groupings.pkg import start
from streamgroup.groupings.protocol import GroupingParams
class Params(GroupingParams):
    d: int = 2
"""
    (tmp_path / "mine.py").write_text(text)
    silent = select(str(tmp_path / "mine.py")).params.destinations(context([0, 1, 2]))
    assert silent.workers[4].tolist() == [0, 1, 2]
    assert "does not say" in silent.remark
    (tmp_path / "told.py").write_text(
        text.replace("import GroupingParams", "import Destinations, GroupingParams")
        + "    def destinations(self, context):\n        return Destinations(context.candidates(self.d), 'mine')\n"
    )
    whole = context([0, 1, 2])
    told = select(str(tmp_path / "told.py")).params.destinations(whole)
    assert told.remark == "mine"
    assert told.workers.tolist() == whole.candidates(2).tolist()
