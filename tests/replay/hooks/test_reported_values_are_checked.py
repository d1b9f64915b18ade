"""What a grouping reports is checked before compiled code reads it: it would read on past the end of an array."""

from pathlib import Path

import pytest

from streamgroup.base.errors import RunError, UsageError
from streamgroup.replay.replay_trace import replay
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.traces.trace import Trace, open_trace
from tests.traces_by_hand import write_trace

FILE = """
from typing import Any, NamedTuple
import numpy as np
from streamgroup.groupings.protocol import GroupingParams

class Params(GroupingParams):
    pass

class First(NamedTuple):
    {name}: Any

    def choose(self, source, key, now):
        return 0

    def grown(self):
        return self

def start(params, context):
    return First({value})
"""


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    rows = [(at, b"key", None) for at in range(5)]
    return open_trace(write_trace(tmp_path_factory.mktemp("told") / "x.trace", rows))


@pytest.mark.parametrize("name", ["choices", "control_messages", "control_bytes", "detector_entries", "room"])
@pytest.mark.parametrize("value", ["3", "np.zeros(0, np.int64)", "np.zeros(1)", "np.zeros((1, 1), np.int64)", "'many'"])
def test_a_field_of_another_shape_is_refused(trace: Trace, tmp_path: Path, name: str, value: str) -> None:
    file = tmp_path / "mine.py"
    file.write_text(FILE.format(name=name, value=value))
    with pytest.raises(UsageError, match=rf"the field {name} of its state must be int64\[1\]"):
        replay(trace, ReplayOptions(grouping=str(file), workers=2), interpreted=True)


@pytest.mark.parametrize("value", ["-1", "np.zeros(1, np.int64)", "np.zeros(3)", "np.int64(7)", "'many'"])
def test_the_state_of_sources_is_one_number_for_each(trace: Trace, tmp_path: Path, value: str) -> None:
    file = tmp_path / "mine.py"
    file.write_text(FILE.format(name="state_entries", value=value))
    with pytest.raises(UsageError, match=r"state_entries of its state must be int64\[sources\], or an int"):
        replay(trace, ReplayOptions(grouping=str(file), workers=2, sources=3), interpreted=True)


@pytest.mark.parametrize(("name", "value"), [("state_entries", "4"), ("state_entries", "np.ones(3, np.int64)")])
def test_what_is_right_is_taken(trace: Trace, tmp_path: Path, name: str, value: str) -> None:
    file = tmp_path / "mine.py"
    file.write_text(FILE.format(name=name, value=value))
    replay(trace, ReplayOptions(grouping=str(file), workers=2, sources=3), interpreted=True)


def test_a_hook_that_returns_no_state_is_named(trace: Trace, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    text = FILE.format(name="room", value="np.zeros(1, np.int64)")
    file.write_text(text.replace("return self\n", "return None\n"))
    with pytest.raises(RunError, match=r"grown\(\) gave a NoneType, not a First"):
        replay(trace, ReplayOptions(grouping=str(file), workers=2), interpreted=True)
