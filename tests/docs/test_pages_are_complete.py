"""What the documents leave out, or name wrongly, fails here."""

import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from streamgroup.base import modules_by_name
from streamgroup.ingest.options import IngestOptions
from streamgroup.metrics.metric_names import METRICS
from streamgroup.replay.scenario.grouping_selection import family
from tests.docs.console_blocks import DOCS, ROOT, run_here

PAGES = sorted(
    path for path in (*DOCS.rglob("*.md"), *ROOT.glob("*.md"), ROOT / "traces" / "README.md") if path != DOCS / "cli.md"
)
NAMES = [str(path.relative_to(ROOT)) for path in PAGES]
_FENCED = re.compile(r"^```\w*\n(.*?)^```$", re.DOTALL | re.MULTILINE)
# A flag stands alone: what follows it, joined or not, is its value.
_FLAG = re.compile(r"(?<![\w-])(--[a-z][a-z-]+|-[a-z])\b")


@cache
def _help(*command: str) -> str:
    told = run_here(" ".join(["streamgroup", *command, "--help"]), ROOT)
    assert told.returncode == 0, f"streamgroup {' '.join(command)} --help: {told.stderr}"
    return told.stdout


def _commands(page: Path) -> Iterator[str]:
    for block in _FENCED.findall(page.read_text()):
        for line in block.replace("\\\n", " ").splitlines():
            found = re.match(r"(?:\$ )?(?:[A-Z_]+=\S+ )*streamgroup (.*)", line)
            if found:
                yield re.split(r" [;|>&] ?", found.group(1))[0]


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_commands_are_as_the_program_has_them(page: Path) -> None:
    for command in _commands(page):
        words = shlex.split(command)
        path = [words[0]] if not words[0].startswith("-") else []
        if path and path[0] in ("ingest", "synth"):
            path.append(words[1])
        known = set(_FLAG.findall(_help(*path)))
        used = {found.group(1) for word in words if (found := re.match(r"(--[a-z][a-z-]+|-[a-z])(?:=|$)", word))}
        assert used <= known, f"{page}: streamgroup {command}: {sorted(used - known)}"


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_links_lead_somewhere(page: Path) -> None:
    text = page.read_text()
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if not re.match(r"[a-z]+://|#", target):
            assert (page.parent / target.split("#")[0]).exists(), f"{page}: {target}"


@pytest.mark.parametrize("metric", METRICS)
def test_metric_is_explained(metric: str) -> None:
    assert re.search(rf"^\|.*`{metric}`.*\|", (DOCS / "metrics.md").read_text(), re.MULTILINE), metric


@pytest.mark.parametrize("grouping", family())
def test_grouping_has_a_page(grouping: str) -> None:
    page = DOCS / "groupings" / f"{grouping}.md"
    assert page.read_text().startswith("# ")
    assert f"groupings/{grouping}.md" in (DOCS / "README.md").read_text()


@pytest.mark.parametrize("reader", modules_by_name.names(modules_by_name.READERS))
def test_reader_is_explained(reader: str) -> None:
    page = (DOCS / "readers.md").read_text()
    assert re.search(rf"^### `{reader.replace('_', '-')}`$", page, re.MULTILINE), reader
    assert f"`{reader.replace('_', '-')}`" in (ROOT / "README.md").read_text()


@pytest.mark.parametrize("generator", modules_by_name.names(modules_by_name.GENERATORS))
def test_generator_is_explained(generator: str) -> None:
    page = (DOCS / "generators.md").read_text()
    assert re.search(rf"^### `{generator.replace('_', '-')}`$", page, re.MULTILINE), generator
    assert f"`{generator.replace('_', '-')}`" in (ROOT / "README.md").read_text()


def test_ingest_options_are_explained() -> None:
    text = (DOCS / "readers.md").read_text()
    internal = {"reader", "inputs", "output", "reader_options", "checksum", "header"}
    missing = [name for name in IngestOptions.model_fields if f"`--{name.replace('_', '-')}" not in text]
    assert set(missing) <= internal


def test_every_page_is_in_the_index() -> None:
    index = (DOCS / "README.md").read_text()
    pages = [path.relative_to(DOCS) for path in DOCS.rglob("*.md") if path != DOCS / "README.md"]
    assert not [str(page) for page in pages if f"({page})" not in index]
