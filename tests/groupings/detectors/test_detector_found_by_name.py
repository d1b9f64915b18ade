"""A detector of hot keys is one file: whatever treats hot keys apart takes it by its name, and nothing is edited."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from numba import njit

from streamgroup.base.errors import UsageError
from streamgroup.groupings import detectors
from streamgroup.metrics.run_tables import summary
from streamgroup.replay.replay_trace import replay
from streamgroup.replay.scenario.grouping_selection import select
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.traces.trace import open_trace
from tests.groupings.contexts_and_worker_changes import context
from tests.traces_by_hand import write_trace

FILE = '''
"""Keys whose id is below `below`."""
from typing import NamedTuple
import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from streamgroup.groupings.protocol import GroupingParams

class Params(GroupingParams):
    below: int = Field(default=1, ge=0, description="ids of hot keys are below it")

class Below(NamedTuple):
    below: int
    entries: NDArray[np.int64]
    held: NDArray[np.int64]

    def detect(self, source, key, now):
        return 1 if key < self.below else 0

    def tick(self, now):
        return None

    def workers_changed(self, change, context):
        return self

def start(params, context):
    return Below(params.below, np.zeros(1, dtype=np.int64), np.zeros(context.sources, dtype=np.int64))
'''


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "found").mkdir()
    (tmp_path / "found" / "only_below.py").write_text(FILE)
    monkeypatch.setattr(detectors, "__path__", [*detectors.__path__, str(tmp_path / "found")])


@pytest.mark.parametrize("name", ["w_choices", "rr", "dstream", "greedy_d:scope=head"])
def test_a_new_detector_is_taken_by_its_name(name: str, tmp_path: Path) -> None:
    names = [b"a"] * 30 + [b"b"] * 20 + [b"c"] * 10
    trace = open_trace(write_trace(tmp_path / "x.trace", [(at, key, None) for at, key in enumerate(names)]))
    text = f"{name}{',' if ':' in name else ':'}detector=only_below,below=2"
    options = ReplayOptions(grouping=text, workers=4, sources=1, arrivals="rate=10")
    outcome = replay(trace, options, interpreted=True, log_directory=tmp_path / "log")
    row = summary(outcome)
    assert row["choices_mean"] == (2 if "head" in name else 4)
    assert outcome.hot_tuples == 50
    workers = pq.read_table(tmp_path / "log")["worker"].to_pylist()
    assert len(set(workers[50:])) <= 2


def test_it_compiles() -> None:
    @njit(_nrt=False)
    def run(state, keys):  # type: ignore[no-untyped-def]
        hot = 0
        for key in keys:
            state.choose(0, key, 0)
            hot += state.choices[0] > 0
        return hot

    selection = select("w_choices:detector=only_below,below=7")
    state = selection.module.start(selection.params, context([0, 1, 2]))
    assert run(state, np.arange(20)) == 7


def test_parameters_are_those_of_the_detector() -> None:
    with pytest.raises(UsageError, match="no parameter 'theta'"):
        select("w_choices:detector=only_below,theta=0.1")
    with pytest.raises(UsageError, match="no parameter 'below'"):
        select("w_choices:below=3")
    with pytest.raises(UsageError, match="no detector 'onlybelow'"):
        select("w_choices:detector=onlybelow")


@pytest.mark.parametrize(
    ("name", "what"), [("d_choices", "how frequent the hot keys are"), ("greedy_freq", "frequent")]
)
def test_a_grouping_says_what_its_detector_must_tell(name: str, what: str) -> None:
    selection = select(f"{name}:detector=only_below")
    with pytest.raises(UsageError, match=what):
        selection.module.start(selection.params, context([0, 1]))


@pytest.mark.parametrize("name", ["w_choices", "dstream"])
def test_a_detector_may_grow_and_send(name: str, tmp_path: Path) -> None:
    """DStream's predictor with reports that are long on their way: more of them than there was room for."""
    names = [b"key %d" % (at * at % 977) for at in range(6000)]
    trace = open_trace(write_trace(tmp_path / "x.trace", [(at, key, None) for at, key in enumerate(names)]))
    text = f"{name}:detector=synopsis,r=0,p=0.001,coin_delay=10s"
    options = ReplayOptions(grouping=text, workers=4, sources=1, arrivals="rate=1000")
    row = summary(replay(trace, options, interpreted=True))
    # A signal for each tuple, and reports of about half of them.
    assert row["control_messages"] is not None
    assert 8_500 < row["control_messages"] < 9_500
