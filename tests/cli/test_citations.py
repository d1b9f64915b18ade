"""What to cite: in BibTeX by `groupings --cite`, and in CITATION.cff."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from streamgroup.base import modules_by_name
from streamgroup.base.modules_by_name import GROUPINGS
from streamgroup.base.version import VERSION
from streamgroup.groupings._papers import PAPERS

ROOT = Path(__file__).parents[2]


def test_the_program_and_the_paper_of_a_grouping(invoke: Any) -> None:
    printed = invoke("groupings", "w_choices", "--cite").stdout
    assert re.findall(r"^@(\w+)\{([\w-]+),$", printed, re.MULTILINE) == [
        ("misc", "streamgroup"), ("inproceedings", "nasir2016two"),
    ]  # fmt: skip
    assert f"Version {VERSION}" in printed
    assert printed.count("{") == printed.count("}")
    assert "nasir2016two" not in invoke("groupings", "--cite").stdout
    assert invoke("groupings", "kg", "--cite").stdout == invoke("groupings", "--cite").stdout
    (_, paper) = json.loads(invoke("groupings", "posg", "--cite", "--json").stdout)
    assert (paper["name"], paper["year"]) == ("rivetti2015posg", 2015)
    assert paper["bibtex"].startswith("@misc{rivetti2015posg,")
    assert invoke("groupings", "pkgg", "--cite").exit_code == 2


@pytest.mark.parametrize("number", PAPERS)
def test_papers_are_those_of_the_page(number: str) -> None:
    page = (ROOT / "docs" / "references.md").read_text()
    (row,) = [line for line in page.splitlines() if line.startswith(f"| {number} |")]
    paper = PAPERS[number]
    for part in (paper.title, ", ".join(paper.authors), paper.venue, str(paper.year or "")):
        assert part in row


def test_every_paper_is_that_of_a_grouping_and_exists() -> None:
    modules = [modules_by_name.load(GROUPINGS, name, "grouping") for name in modules_by_name.names(GROUPINGS)]
    assert {number for module in modules for number in getattr(module, "CITE", ())} == set(PAPERS)


def test_the_citation_file_has_the_version() -> None:
    text = (ROOT / "CITATION.cff").read_text()
    assert f"\nversion: {VERSION}\n" in text
    assert "cff-version: 1.2.0" in text
