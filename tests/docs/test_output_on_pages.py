"""Every command of the pages with sessions runs, in order, and prints what the page shows."""

from pathlib import Path

import pytest

from tests.docs.console_blocks import DOCS, follow, missing, unmarked

pytestmark = pytest.mark.many_groupings


@pytest.mark.usefixtures("_without_spark")
def test_advice(tmp_path: Path) -> None:
    assert follow(DOCS / "advice.md", tmp_path) == 4


@pytest.mark.parametrize(
    ("page", "commands"),
    [
        ("bounds.md", 6),
        ("cluster.md", 2),
        ("compare.md", 7),
        ("explain.md", 7),
        ("hot-keys.md", 5),
        ("many-files.md", 6),
        ("merging-results.md", 7),
        ("references.md", 1),
        ("sweeps.md", 8),
        ("what-happens-when.md", 16),
        ("where.md", 8),
    ],
)
def test_page(page: str, commands: int, tmp_path: Path) -> None:
    assert follow(DOCS / page, tmp_path) == commands


def test_a_line_that_is_not_printed_is_found() -> None:
    assert missing(["a", "...", "c"], "a\nb\nc\n") is None
    assert missing(["c", "a"], "a\nb\nc\n") == "a"
    assert missing(["d"], "a\nb\nc\n") == "d"


def test_a_line_that_is_left_out_unmarked_is_found() -> None:
    assert unmarked(["a", "b"], "a\n\nb \n") is None
    assert unmarked(["a", "c"], "a\nb\nc\n") == "b"
    assert unmarked(["a", "...", "c"], "a\nb\nc\n") is None
    assert unmarked([], "a\n") is None
