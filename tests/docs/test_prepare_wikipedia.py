"""The recipes for the data sets of Wikipedia: their page, and the ingest with whatever options follow."""

import re
import shutil
from pathlib import Path

import pytest

from tests.docs.console import ROOT, run

FILES = {
    "wikibench": ("wiki.1199145600", "929840853 1199145600.326 http://en.wikipedia.org/wiki/A -\n", "wiki/A"),
    "wikipedia-pageviews": ("pageviews-20240803-060000", "en.m A 2 0\n", "en.m A"),
    "wikipedia-pageviews-by-language": ("projectviews-20210101-000000", "en.m - 2 0\n", "en.m"),
    "wikipedia-clickstream": ("clickstream-enwiki-2018-01.tsv", "other-empty\tA_B\texternal\t2\n", "A_B"),
}


@pytest.mark.parametrize("name", FILES)
def test_recipe(name: str, tmp_path: Path) -> None:
    scripts = tmp_path / "tree" / "scripts"
    scripts.mkdir(parents=True)
    script = f"tree/scripts/prepare-{name}"
    for file in ("_prepare", f"prepare-{name}"):
        shutil.copy(ROOT / "scripts" / file, scripts)
    # What sets the environment up has its own tests: here the one that runs the tests is there already.
    (scripts / "_setup").write_text('root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)\ncd "$root"\n')
    missing = run(script, tmp_path)
    page = run(f"{script} --help", tmp_path)
    assert (missing.returncode, page.returncode, page.stderr) == (2, 0, "")
    assert missing.stdout == page.stdout
    for text in ("http", f"streamgroup ingest {name} ", f"-o traces/{name}.big", "To be expected"):
        assert text in page.stdout
    known = set(re.findall(r"--?[a-z][a-z-]*", run(f"streamgroup ingest {name} --help", tmp_path).stdout))
    assert set(re.findall(r"(?<=\s)--[a-z][a-z-]*", page.stdout)) <= known
    place, content, key = FILES[name]
    (tmp_path / place).write_text(content)
    shown = run(f"{script} {place} --dry-run --json", tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert key in shown.stdout
    wrong = run(f"{script} {place} --dry-run --key nothing", tmp_path)
    assert wrong.returncode == 2
    assert "no column 'nothing'" in wrong.stderr
