"""The recipes for trades, access logs and cache traces: their page, and the ingest with whatever options follow."""

import re
import shutil
from pathlib import Path

import pytest

from tests.docs.console import ROOT, run

FILES = {
    "trades": ("abc/20131007_trade.csv", "34200000,139400,500,P,20002020,0\n"),
    "access-log": ("log", 'h - - [17/May/2015:10:05:03 +0000] "GET /a HTTP/1.1" 200 12\n'),
    "cache-trace": ("cluster", "0,k,1,213,4,get,0\n"),
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
    page = run(script, tmp_path)
    assert (page.returncode, page.stderr) == (2, "")
    for text in ("https://", f"streamgroup ingest {name} ", f"-o traces/{name}.big", "To be expected"):
        assert text in page.stdout
    known = set(re.findall(r"--?[a-z][a-z-]*", run(f"streamgroup ingest {name} --help", tmp_path).stdout))
    assert set(re.findall(r"(?<=\s)--[a-z][a-z-]*", page.stdout)) <= known
    place, content = FILES[name]
    (tmp_path / place).parent.mkdir(exist_ok=True)
    (tmp_path / place).write_text(content)
    shown = run(f"{script} {place} --dry-run --json", tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert '"timestamp"' in shown.stdout
    assert "of 1 rows looked at, 0 rejected" in shown.stderr
    wrong = run(f"{script} {place} --dry-run --key nothing", tmp_path)
    assert wrong.returncode == 2
    assert "no column 'nothing'" in wrong.stderr
