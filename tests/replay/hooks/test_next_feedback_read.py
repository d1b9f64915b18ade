"""A grouping that says when it looks at what it heard is told enough by then: it does the same as when it does not."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from streamgroup.base.errors import UsageError
from streamgroup.replay.replay_trace import replay
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.traces.trace import Trace, open_trace
from tests.traces_by_hand import write_trace

READS_AT_INSTANTS = Path(__file__).parents[1] / "groupings_outside_package" / "reads_at_instants.py"


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    rng = np.random.default_rng(5)
    # Bursts, so that many wait, and pauses of several instants of the grouping.
    gaps = rng.choice([0, 0, 0, 50, 400, 700], 9000)
    gaps[rng.integers(0, 9000, 40)] = 60_000
    keys = rng.zipf(1.3, 9000) % 40
    tuples = [(int(time), b"k%d" % key, None) for time, key in zip(np.cumsum(gaps), keys, strict=True)]
    return open_trace(write_trace(tmp_path_factory.mktemp("next_read") / "t", tuples))


def log_of(trace: Trace, folder: Path, heedful: str, *, interpreted: bool, **options: Any) -> list[dict[str, Any]]:
    asked = ReplayOptions(grouping=f"{READS_AT_INSTANTS}:heedful={heedful}", **options)
    replay(trace, asked, log_directory=folder, interpreted=interpreted)
    return [row for part in sorted(folder.rglob("*.parquet")) for row in pq.read_table(part).to_pylist()]


@pytest.mark.parametrize("interpreted", [True, False])
@pytest.mark.parametrize(
    "options",
    [
        {"workers": 1, "service": "300us"},
        {"workers": 6, "service": "1ms", "network_delay": "2ms"},
        # Deeper queues than there is room for at the start.
        {"workers": 3, "service": "40ms", "sources": 2, "warmup": "1000"},
        {"workers": 5, "service": "1ms", "join": ("20%", "40%"), "leave": ("30%:1",), "crash": ("60%:random",)},
        {"workers": 4, "service": "900us", "slowdown": "1,2,0.5,3", "service_distribution": "exponential"},
    ],
    ids=["one", "delay", "deep", "changes", "uneven"],
)
def test_it_chooses_the_same_when_it_is_told_late(
    trace: Trace, tmp_path: Path, interpreted: bool, options: dict[str, Any]
) -> None:
    late = log_of(trace, tmp_path / "late", "true", interpreted=interpreted, **options)
    soon = log_of(trace, tmp_path / "soon", "false", interpreted=interpreted, **options)
    assert len(late) == trace.tuples
    assert late == soon
    assert options["workers"] == 1 or len({row["worker"] for row in late}) > 2


NEVER_READS_AT_INSTANTS = """
from streamgroup.groupings.fish import Params, start as begin


def start(params, context):
    return begin(params, context)._replace(next_read=None)
"""


@pytest.mark.parametrize(
    "options",
    [
        {"workers": 6, "service": "1ms", "control_delay": "3ms", "warmup": "700"},
        {"workers": 5, "service": "1ms", "join": ("20%", "40%"), "leave": ("30%:1",), "crash": ("60%:random",)},
        {"workers": 4, "service": "900us", "slowdown": "1,2,0.5,3", "service_distribution": "exponential"},
        {"workers": 40, "service": "9ms", "network_delay": "1ms", "warmup": "4000"},
    ],
    ids=["delay", "changes", "uneven", "many"],
)
def test_fish_does_the_same_when_it_is_told_late(trace: Trace, tmp_path: Path, options: dict[str, Any]) -> None:
    """Also in its first reports, which are made at any time, and in what it has sent since the warm-up."""
    file = tmp_path / "never.py"
    file.write_text(NEVER_READS_AT_INSTANTS)
    told: list[tuple[Any, int, int]] = []
    for name in ("fish", str(file)):
        log = tmp_path / f"log-{len(told)}"
        asked = ReplayOptions(f"{name}:interval=50ms", **options)
        outcome = replay(trace, asked, log_directory=log, interpreted=True)
        rows = [row for part in sorted(log.rglob("*.parquet")) for row in pq.read_table(part).to_pylist()]
        told.append((rows, outcome.control_messages, outcome.control_bytes))
    assert told[0] == told[1]
    assert told[0][1] > 100


def test_heeds_must_be_one_number(trace: Trace, tmp_path: Path) -> None:
    file = tmp_path / "wrong.py"
    file.write_text(
        READS_AT_INSTANTS.read_text().replace("next_read=following if", "next_read=np.zeros(2, np.int64) if")
    )
    with pytest.raises(UsageError, match=r"next_read of its state must be int64\[1\]"):
        replay(trace, ReplayOptions(grouping=str(file), workers=2))
