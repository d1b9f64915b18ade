"""The applications of their page run, and the one that can be compiled gives the same then."""

import re
from pathlib import Path

import polars as pl
import pytest

from streamgroup.metrics.run_tables import tables
from streamgroup.replay.replay_trace import replay
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.replay.stages import app_states
from tests.docs.console_blocks import DOCS, follow
from tests.replay.test_applications import trace_of, value_of

BLOCKS = re.findall(
    r"^```python\n(.*?)^```$", (DOCS / "adding-an-application.md").read_text(), re.DOTALL | re.MULTILINE
)


def test_the_applications_of_the_page(tmp_path: Path) -> None:
    spread, median = (tmp_path / "spread.py", tmp_path / "median.py")
    for path, code in zip((spread, median), BLOCKS, strict=True):
        path.write_text(code)
    trace = trace_of([(place, b"%d" % (place % 3), None) for place in range(30)], tmp_path)
    values = [[value_of(place) for place in range(key, 30, 3)] for key in range(3)]
    for small in (1 << 18, 0):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(app_states, "_SMALL", small)
            found = pl.DataFrame(tables(replay(trace, ReplayOptions("pkg", 4, app=str(spread))))["results"])
        assert found["result"].to_list() == [max(own) - min(own) for own in values]
    found = pl.DataFrame(tables(replay(trace, ReplayOptions("kg", 4, app=str(median))))["results"])
    assert found["result"].to_list() == [sorted(own)[5] for own in values]


@pytest.mark.usefixtures("_without_spark")
def test_the_commands_of_the_page(tmp_path: Path) -> None:
    assert follow(DOCS / "adding-an-application.md", tmp_path) == 5
