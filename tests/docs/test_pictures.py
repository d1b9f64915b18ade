"""The pictures of the documentation are there, each beside its command, and show what the program does today."""

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.docs.console_blocks import DOCS, ROOT

NAMES = sorted(path.stem for path in (DOCS / "pictures").glob("*.svg"))
_BAR = re.compile(r'aria-label="time \(ms\): ([\d.]+); tuple: (\d+); end: ([\d.]+); what: (waits|is served)"')


def _bars(directory: Path) -> list[tuple[str, ...]]:
    return [found.groups() for found in _BAR.finditer((directory / "queue.svg").read_text())]


def _draw(name: str, output: Path) -> None:
    told = subprocess.run(
        [sys.executable, ROOT / "scripts" / "picture", name, "-o", output],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert told.returncode == 0, told.stderr


@pytest.mark.parametrize("name", NAMES)
def test_a_picture_stands_beside_its_command(name: str) -> None:
    shown = re.compile(
        rf"^scripts/picture {name}\n(?:.*\n)?```\n\n!\[[^]]+\]\(((?:\.\./|docs/)?pictures/{name}\.svg)\)$", re.M | re.S
    )
    (target,) = [
        page.parent / found.group(1)
        for page in (ROOT / "README.md", *DOCS.rglob("*.md"))
        if (found := shown.search(page.read_text()))
    ]
    assert target.resolve() == DOCS / "pictures" / f"{name}.svg"


def test_all_pictures_are_there() -> None:
    drawn = {path.stem for path in (ROOT / "scripts" / "pictures").glob("*.py")} - {"__init__", "common"}
    assert drawn == set(NAMES)
    assert len(NAMES) == 9


def test_the_queue_is_one() -> None:
    bars = _bars(DOCS / "pictures")
    assert Counter(what for *_, what in bars)["is served"] == 36
    served = {tuple_: (float(begin), float(end)) for begin, tuple_, end, what in bars if what == "is served"}
    for begin, tuple_, end, what in bars:
        if what == "waits":
            assert served[tuple_][0] == float(end) > float(begin)
    # What waited starts at the very instant at which another one ends.
    ends = {end for _, end in served.values()}
    assert all(float(end) in ends for _, _, end, what in bars if what == "waits")


@pytest.mark.slow
def test_a_picture_shows_what_is_simulated(tmp_path: Path) -> None:
    _draw("queue", tmp_path)
    assert _bars(tmp_path) == _bars(DOCS / "pictures")
