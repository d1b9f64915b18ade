"""Faults in a grouping of a user's own are reported as such, with the line, and change no result silently."""

import re
from pathlib import Path

import pytest

from streamgroup.base.errors import StreamgroupError
from streamgroup.replay.replay_trace import replay
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.traces.trace import open_trace
from tests.traces_by_hand import write_trace

MINE = """
from typing import NamedTuple
import numpy as np
from streamgroup.groupings.protocol import GroupingParams

class Params(GroupingParams):
    def choices_per_key(self, workers):
        {per_key}

class State(NamedTuple):
    sent: np.ndarray
    def choose(self, source: int, key: int, now: int) -> int:
        self.sent[0] += 1
        {choose}
    def workers_changed(self, change, context):
        return self._replace(sent={sent})

def start(params, context):
    return State(np.zeros(1, np.int64))
"""


def run(
    folder: Path, *, choose: str = "return 0", per_key: str = "return 1", sent: str = "self.sent",
    interpreted: bool | None = True, join: tuple[str, ...] = (),
) -> str:  # fmt: skip
    """Replay ten tuples to two workers; return what is wrong with it."""
    path = folder / "mine.py"
    # Files of the same bytes are one module, under the name of the first.
    path.write_text(MINE.format(choose=choose, per_key=per_key, sent=sent) + f"# {folder}")
    if not (folder / "x.trace").exists():
        write_trace(folder / "x.trace", [(place, b"a", None) for place in range(10)])
    trace = open_trace(folder / "x.trace")
    with pytest.raises(StreamgroupError) as refused:
        replay(trace, ReplayOptions(str(path), 2, join=join), interpreted=interpreted)
    return str(refused.value)


@pytest.mark.parametrize(
    ("choose", "kind"),
    [("return 1.5 if self.sent[0] == 7 else 1", "float"), ("return self.sent[0] > 5", "bool"), ("pass", "NoneType")],
)
def test_a_worker_is_an_int(tmp_path: Path, choose: str, kind: str) -> None:
    # numpy has a bool of its own.
    assert re.search(rf"choose\(\) must return an int, not {kind}_?\b", run(tmp_path, choose=choose))


@pytest.mark.parametrize(
    ("choose", "kind"),
    [("return 1.5 if self.sent[0] == 7 else 1", "float64"), ("return self.sent[0] > 5", "bool"), ("pass", "none")],
)
def test_a_worker_is_an_int_in_compiled_code(tmp_path: Path, choose: str, kind: str) -> None:
    told = run(tmp_path, choose=choose, interpreted=None)
    assert told.startswith(f"{tmp_path / 'mine.py'}: choose() must return an int, not {kind}")


def test_an_error_says_in_which_line_it_was_raised(tmp_path: Path) -> None:
    assert run(tmp_path, choose="raise ValueError('no')").endswith("a hook failed: ValueError: no (line 14)")
    assert run(tmp_path, choose="assert False").endswith("a hook failed: AssertionError (line 14)")


@pytest.mark.parametrize(
    ("per_key", "told"),
    [
        ("return -1", "choices_per_key() gave -1"),
        ("return True", "choices_per_key() gave True"),
        ("return 'two'", "choices_per_key() gave 'two'"),
        ("raise ValueError('no')", "choices_per_key() failed: ValueError: no (line 8)"),
    ],
)
def test_choices_per_key_are_checked(tmp_path: Path, per_key: str, told: str) -> None:
    assert told in run(tmp_path, per_key=per_key)


def test_arrays_keep_their_type_when_workers_change(tmp_path: Path) -> None:
    for sent, found in [("self.sent.astype(float)", "float64[:]"), ("np.zeros((1, 1), np.int64)", "int64[:, :]")]:
        told = run(tmp_path, sent=sent, join=("50%",))
        assert told.endswith(f"workers_changed() gave sent as {found}, before it was int64[:]")
