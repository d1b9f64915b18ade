"""What the scripts source first: it installs when something changed, and only then."""

import shutil
from pathlib import Path

from tests.docs.console_blocks import ROOT, run

_PIP = """#!/usr/bin/env bash
if [[ "$*" == *--editable* ]]; then
    cd "$(dirname "$0")/.."
    echo "$*" >>installs
    echo '{"dir_info": {"editable": true}, "url": "file:///x"}' >"$(echo lib/*/*/*.dist-info)/direct_url.json"
fi
"""


def _tree(directory: Path) -> Path:
    """Make a tree with the script and an environment, whose own Python notes what it is asked to install."""
    found = directory / ".venv" / "lib" / "python3" / "site-packages" / "streamgroup-1.dist-info"
    found.mkdir(parents=True)
    (directory / "scripts").mkdir()
    shutil.copy(ROOT / "scripts" / "_setup", directory / "scripts")
    (directory / "pyproject.toml").write_text("[project]\n")
    _command(directory / ".venv" / "bin" / "python", _PIP)
    return found


def _command(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def test_a_copy_in_the_place_of_the_link_is_replaced(tmp_path: Path) -> None:
    found = _tree(tmp_path)

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


def test_a_browser_is_installed_where_there_is_none_and_that_can_be(tmp_path: Path) -> None:
    _tree(tmp_path)
    _command(tmp_path / "bin" / "id", "#!/bin/sh\necho $WHO\n")
    _command(tmp_path / "bin" / "apt-get", '#!/bin/sh\necho "$*" >>asked\n[ -z "$OFFLINE" ]\n')

    def asked(settings: str) -> tuple[list[str], str]:
        (tmp_path / "asked").write_text("")
        done = run(f"source scripts/_setup; export {settings}; PATH=$PWD/bin; set -e; _get_chromium", tmp_path)
        assert done.returncode == 0, done.stderr
        return (tmp_path / "asked").read_text().splitlines(), done.stderr

    calls, _ = asked("WHO=0")
    assert calls[-1] == "install -y -qq --no-install-recommends chromium"
    assert asked("WHO=1000")[0] == []
    assert "no chromium: the tests that need a browser are skipped" in asked("WHO=0 OFFLINE=1")[1]
    _command(tmp_path / "bin" / "google-chrome", "#!/bin/sh\n")
    assert asked("WHO=0")[0] == []
