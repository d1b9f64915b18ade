"""The commands of the other pages run, on the samples; the demo prints the table of the README."""

import re
import shutil
from itertools import islice
from pathlib import Path

import pytest
import zstandard

from streamgroup.replay.scenario.grouping_selection import family
from tests.docs.console_blocks import DOCS, RAW, ROOT, blocks_of, commands_of, follow, prepare, works


@pytest.mark.many_groupings
@pytest.mark.usefixtures("_without_spark")
def test_commands_of_the_readme_and_of_the_metrics_page(tmp_path: Path) -> None:
    assert follow(ROOT / "README.md", tmp_path) == 2
    # The other commands get the beginning of the sample: what they print is compared nowhere.
    (sample,) = (ROOT / RAW).glob("twitter-cache-cluster52/*.csv.zst")
    with zstandard.open(sample, "rt") as lines:
        (tmp_path / "short.csv").write_text("".join(islice(lines, 2000)))
    works("streamgroup ingest csv short.csv --time time --key object -o requests.trace --overwrite", tmp_path)
    (begun,) = re.findall(r"^cp (streamgroup/\S+) mine\.py$", (ROOT / "README.md").read_text(), re.MULTILINE)
    shutil.copy(ROOT / begun, tmp_path / "mine.py")
    found = commands_of(ROOT / "README.md")
    assert len(found) == 9
    for command in found:
        works(command, tmp_path)
    # In a clone Git ignores what they make.
    shutil.copy(ROOT / ".gitignore", tmp_path)
    assert works("git init -q && git status --porcelain", tmp_path).split() == [
        "??", ".gitignore", "??", "short.csv", "??", "traces"
    ]  # fmt: skip
    works("streamgroup replay requests.trace -g sg -n 50 --arrivals utilization=0.8 -o runs/sg", tmp_path)
    for command in commands_of(DOCS / "metrics.md"):
        assert works(command, tmp_path)


def test_commands_of_the_samples_page_read_the_samples(tmp_path: Path) -> None:
    prepare(tmp_path)
    commands = commands_of(ROOT / "traces" / "README.md")
    assert len(commands) == len(list((ROOT / RAW).iterdir()))
    for command in commands:
        assert works(f"{command} --dry-run", tmp_path)


def test_a_trace_by_hand(tmp_path: Path) -> None:
    page = DOCS / "traces.md"
    (code,) = blocks_of(page, "python")
    (tmp_path / "hand.py").write_text(code)
    works("python hand.py", tmp_path)
    for command in commands_of(page):
        works(command, tmp_path)
    assert (tmp_path / "hand.csv").read_text() == "timestamp,key\n0,a\n10,b\n10,a\n"


@pytest.mark.many_groupings
@pytest.mark.usefixtures("_without_spark")
def test_the_demo_prints_the_table_of_the_readme(tmp_path: Path) -> None:
    prepare(tmp_path)
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / "scripts" / "demo", tmp_path / "scripts")
    # What sets the environment up has its own tests: here the one that runs the tests is there already.
    (tmp_path / "scripts" / "_setup").write_text('cd "$(dirname "${BASH_SOURCE[0]}")/.."\n')
    printed = works("scripts/demo", tmp_path).splitlines()
    cells = [line.strip("| ").split(" | ") for line in (ROOT / "README.md").read_text().splitlines()]
    rows = [row for row in cells if row[0] in family()]
    assert len(rows) == 8
    for row in rows:
        (line,) = [line for line in printed if line.split()[1:2] == row[:1]]
        assert line.split()[-len(row) + 1 :] == row[1:]
