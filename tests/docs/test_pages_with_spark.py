"""The commands of the pages that use Spark run, and print what the page shows."""

from pathlib import Path

import pytest

from tests.docs.console_blocks import DOCS, RAW, ROOT, commands_of, follow, works


@pytest.mark.spark
@pytest.mark.usefixtures("_shared_session")
def test_tutorial(tmp_path: Path) -> None:
    assert follow(DOCS / "tutorial.md", tmp_path) > 15


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.usefixtures("_shared_session")
def test_keys_or_key_groups(tmp_path: Path) -> None:
    assert follow(DOCS / "flink-skew.md", tmp_path) == 9


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.usefixtures("_shared_session")
def test_commands_of_the_readers_page(tmp_path: Path) -> None:
    for name in ("nycflights13/flights-first45000.csv.gz", "jodie-wikipedia/wikipedia.tsv.gz"):
        whole = ROOT / RAW / name
        (tmp_path / whole.name.replace("-first45000", "")).symlink_to(whole)
    commands = commands_of(DOCS / "readers.md")
    assert len(commands) == 3
    # The middle one reads what `export` wrote, with a null key and an empty one.
    (tmp_path / "out.csv").write_text('timestamp,key\n5,\n6,""\n')
    for command in commands:
        assert "tuples" in works(command, tmp_path)
