"""Every command of the tutorial runs, in order, and prints what the tutorial shows."""

from pathlib import Path

import pytest

from tests.docs.console import DOCS, prepare, run, steps


def _missing(shown: list[str], told: str) -> str | None:
    """Give the first line shown that was not printed, or not in that order; blank lines and `...` stand for any."""
    lines = iter([line.rstrip() for line in told.split("\n")])
    return next((line for line in shown if line.strip() not in ("", "...") and line.rstrip() not in lines), None)


@pytest.mark.spark
def test_tutorial(tmp_path: Path) -> None:
    prepare(tmp_path)
    commands = 0
    for step in steps((DOCS / "tutorial.md").read_text()):
        if step.file:
            (tmp_path / step.file).write_text(step.command)
            continue
        commands += 1
        result = run(step.command, tmp_path)
        assert result.returncode == 0, f"{step.command}\n{result.stderr}"
        missing = _missing(step.shown, result.stdout)
        assert missing is None, f"{step.command}\ndoes not print: {missing}\nbut:\n{result.stdout}\n{result.stderr}"
    assert commands > 15


def test_a_line_that_is_not_printed_is_found() -> None:
    assert _missing(["a", "...", "c"], "a\nb\nc\n") is None
    assert _missing(["c", "a"], "a\nb\nc\n") == "a"
    assert _missing(["d"], "a\nb\nc\n") == "d"
