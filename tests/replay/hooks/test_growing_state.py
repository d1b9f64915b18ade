"""A state that grows while it is replayed: the same bytes as one that was large enough from the start."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from streamgroup.base.errors import RunError, UsageError
from streamgroup.metrics.run_tables import tables
from streamgroup.replay.replay_trace import replay
from streamgroup.replay.scenario import import_user_code
from streamgroup.replay.scenario.grouping_selection import select
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.replay.simulation import chunk_driven, event_driven
from streamgroup.traces import layout
from streamgroup.traces.trace import Trace, open_trace
from tests.traces_by_hand import write_trace

GROWING = str(Path(__file__).parents[1] / "groupings_outside_package" / "growing.py")
TUPLES = 1300
# What each kind of run needs: the fast loop, the ordered one, changes of workers in both.
RUNS: dict[str, dict[str, Any]] = {
    "fast": {"warmup": "100"},
    "fast and changes": {"leave": ("33ms", "700:1"), "join": ("50%",), "warmup": "300"},
    "ordered": {"queue_capacity": 2, "when_full": "block"},
    "closed": {"arrivals": "saturate", "max_pending": 5},
    "redeliver": {"crash": ("35ms:0", "1000"), "redeliver": True, "join": ("300",)},
}


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    rng = np.random.default_rng(5)
    times = np.cumsum(rng.choice([0, 0, 20, 100, 150], TUPLES)).tolist()
    keys = (rng.zipf(1.3, TUPLES) % 40).tolist()
    rows = [(at, b"k%d" % key, None) for at, key in zip(times, keys, strict=True)]
    return open_trace(write_trace(tmp_path_factory.mktemp("growing") / "x.trace", rows, parts=2))


def left_behind(trace: Trace, directory: Path, grouping: str, *, interpreted: bool, **options: Any) -> dict[str, Any]:
    given = ReplayOptions(**{"workers": 5, "sources": 3, "service": "180us", **options}, grouping=grouping)
    outcome = replay(trace, given, log_directory=directory, interpreted=interpreted)
    return {**tables(outcome), "log": [part.read_bytes() for part in sorted(directory.iterdir())]}


@pytest.mark.parametrize("hears", ["false", "true"])
@pytest.mark.parametrize("name", RUNS)
def test_when_it_grows_changes_nothing(
    trace: Trace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, hears: str
) -> None:
    options = RUNS[name]
    monkeypatch.setattr(import_user_code, "_with_companions", lambda path, digest: digest)
    asked = select(GROWING).module.ASKED
    large = f"{GROWING}:hears={hears},at_first=4096"
    one = left_behind(trace, tmp_path / "one", large, interpreted=True, **options)
    assert not asked
    # Rows of a chunk; tuples chosen before they are served; events that are kept; room at the start.
    for case in ((1 << 20, 1 << 18, 1 << 17, 0), (7, 3, 1 << 17, 1), (1000, 256, 64, 100)):
        with monkeypatch.context() as patch:
            patch.setattr(layout, "BLOCK_ROWS", case[0])
            patch.setattr(chunk_driven, "BLOCK", case[1])
            patch.setattr(event_driven, "_EVENTS", case[2])
            small = f"{GROWING}:hears={hears},at_first={case[3]}"
            assert left_behind(trace, tmp_path / f"{case}", small, interpreted=True, **options) == one
            assert asked
            # Doubling: it is asked a few times, not for every tuple.
            assert len(asked) < 16


@pytest.mark.parametrize("name", ["fast", "redeliver"])
def test_compiled_states_grow_too(trace: Trace, tmp_path: Path, name: str) -> None:
    found = [
        left_behind(trace, tmp_path / f"{interpreted}-{at_first}", f"{GROWING}:at_first={at_first}",
                    interpreted=interpreted, **RUNS[name])
        for interpreted, at_first in ((True, 4096), (False, 1), (False, 4096))
    ]  # fmt: skip
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("options", [{}, {"queue_capacity": 3, "when_full": "block"}])
def test_a_state_grows_when_there_is_no_room_for_a_tuple(trace: Trace, tmp_path: Path, options: dict[str, Any]) -> None:
    asked = select(GROWING).module.ASKED
    left_behind(trace, tmp_path / "log", f"{GROWING}:at_first=700", interpreted=True, **options)
    assert asked == [0]


@pytest.mark.parametrize("queue_capacity", [None, 3])
def test_a_state_that_does_not_grow_stops_the_run(trace: Trace, queue_capacity: int | None) -> None:
    options = ReplayOptions(grouping=f"{GROWING}:grows=false", workers=5, queue_capacity=queue_capacity)
    with pytest.raises(RunError, match=r"grown\(\) left room for 0 tuples, before it was 0"):
        replay(trace, options, interpreted=True)


def test_room_without_a_hook_that_makes_more(trace: Trace, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(Path(GROWING).read_text().replace("def grown(", "def _grown("))
    with pytest.raises(UsageError, match=r"Growing has a field room and no method grown\(self\)"):
        replay(trace, ReplayOptions(grouping=str(file), workers=5), interpreted=True)
