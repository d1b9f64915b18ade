"""The page docs/cli.md is up to date and has every command and flag."""

import pkgutil
from pathlib import Path

from streamgroup.cli import commands
from streamgroup.cli.reference import reference

PAGE = Path(__file__).parents[2] / "docs" / "cli.md"


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == reference(), "python -m streamgroup.cli.reference > docs/cli.md"


def test_every_command_and_flag_is_on_the_page_with_a_help_text() -> None:
    page = reference()
    for info in pkgutil.iter_modules(commands.__path__):
        assert f"\n## streamgroup {info.name}\n" in page
    for flag in ("--spread-ties", "--hash-seed", "--control-delay", "--sample-keys", "--exponent", "--ragged"):
        assert f"`{flag}`" in page
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    assert rows
    assert all(len(row.replace("\\|", "").split("|")[2].strip()) > 5 for row in rows)
