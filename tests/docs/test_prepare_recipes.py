"""The recipes for public data sets: their page, and the ingest with whatever options follow."""

import re
import shutil
from pathlib import Path

import pytest

from tests.docs.console import ROOT, run, run_here

# A file, its one row, what its key is, and how the address of the data set begins.
FILES = {
    "wikibench": (
        "wiki.1199145600", "929840853 1199145600.326 http://en.wikipedia.org/wiki/A -\n", "wiki/A", "http://",
    ),
    "wikipedia-pageviews": ("pageviews-20240803-060000", "en.m A 2 0\n", "en.m A", "https://"),
    "wikipedia-pageviews-by-language": ("projectviews-20210101-000000", "en.m - 2 0\n", "en.m", "https://"),
    "wikipedia-clickstream": (
        "clickstream-enwiki-2018-01.tsv", "other-empty\tA_B\texternal\t2\n", "A_B", "https://",
    ),
    "trades": ("abc/20131007_trade.csv", "34200000,139400,500,P,20002020,0\n", "abc", "https://"),
    "access-log": ("log", 'h - - [17/May/2015:10:05:03 +0000] "GET /a HTTP/1.1" 200 12\n', "/a", "https://"),
    "cache-trace": ("cluster", "0,k,1,213,4,get,0\n", '"k"', "https://"),
}  # fmt: skip


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
    place, content, key, home = FILES[name]
    for text in (home, f"streamgroup ingest {name} ", f"-o traces/{name}.big", "To be expected"):
        assert text in page.stdout
    known = set(re.findall(r"--?[a-z][a-z-]*", run_here(f"streamgroup ingest {name} --help", tmp_path).stdout))
    assert set(re.findall(r"(?<=\s)--[a-z][a-z-]*", page.stdout)) <= known
    (tmp_path / place).parent.mkdir(exist_ok=True)
    (tmp_path / place).write_text(content)
    shown = run(f"{script} {place} --dry-run --json", tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert '"timestamp"' in shown.stdout
    assert key in shown.stdout
    assert "of 1 rows looked at, 0 rejected" in shown.stderr
    wrong = run(f"{script} {place} --dry-run --key nothing", tmp_path)
    assert wrong.returncode == 2
    assert "no column 'nothing'" in wrong.stderr
