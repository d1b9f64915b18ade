"""What the scripts source first: it installs when something changed, and only then."""

import shutil
from pathlib import Path

from tests.docs.console import ROOT, run

_PIP = """#!/usr/bin/env bash
if [[ "$*" == *--editable* ]]; then
    cd "$(dirname "$0")/.."
    echo "$*" >>installs
    echo '{"dir_info": {"editable": true}, "url": "file:///x"}' >"$(echo lib/*/*/*.dist-info)/direct_url.json"
fi
"""


def test_a_copy_in_the_place_of_the_link_is_replaced(tmp_path: Path) -> None:
    found = tmp_path / ".venv" / "lib" / "python3" / "site-packages" / "streamgroup-1.dist-info"
    found.mkdir(parents=True)
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / "scripts" / "_setup", tmp_path / "scripts")
    (tmp_path / "pyproject.toml").write_text("[project]\n")
    # The environment's own Python, which notes what it is asked to install.
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir()
    python.write_text(_PIP)
    python.chmod(0o755)

    def installs() -> int:
        done = run("source scripts/_setup", tmp_path)
        assert done.returncode == 0, done.stderr
        return len((tmp_path / ".venv" / "installs").read_text().splitlines())

    assert [installs(), installs()] == [1, 1]
    # What `pip install .` leaves.
    (found / "direct_url.json").write_text('{"dir_info": {}, "url": "file:///somewhere"}')
    assert [installs(), installs()] == [2, 2]
    (tmp_path / "pyproject.toml").write_text("[project]\nversion = '2'\n")
    assert [installs(), installs()] == [3, 3]
