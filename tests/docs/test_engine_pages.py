"""What the pages of engines say of single keys is so."""

import ast
import re
from pathlib import Path
from typing import Any

import pytest

from tests.docs.console_blocks import DOCS

PAGES = sorted((DOCS / "engines").glob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_it_says_what_the_engine_does_at_a_crash(page: Path) -> None:
    (section,) = re.findall(r"^## At a crash\n(.*?)^## ", page.read_text(), re.DOTALL | re.MULTILINE)
    assert "`--crash`" in section


@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_examples(page: Path) -> None:
    names: dict[str, Any] = {}
    checked = 0
    for block in re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE):
        for line in block.splitlines():
            code, _, said = line.partition("  # ")
            if said and isinstance(ast.parse(code).body[0], ast.Expr):
                assert eval(code, names) == ast.literal_eval(said), line
                checked += 1
            else:
                exec(code, names)
    assert checked
