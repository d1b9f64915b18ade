"""The examples of the page on Python run, and print what it shows."""

import contextlib
import doctest
import re
from pathlib import Path

import pytest

from tests.docs.console_blocks import DOCS, prepare

pytestmark = pytest.mark.many_groupings

_PYTHON = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_EVENTS = '{"at": 1700000000, "country": "ch", "user": "a"}\n{"at": 1700000001, "country": "at", "user": "b"}\n'


def test_examples_print_what_the_page_shows(tmp_path: Path) -> None:
    prepare(tmp_path)
    (tmp_path / "events.jsonl").write_text(_EVENTS)
    page = DOCS / "python.md"
    code = "\n".join(_PYTHON.findall(page.read_text()))
    examples = doctest.DocTestParser().get_doctest(code, {}, page.name, str(page), 0)
    printed: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    with contextlib.chdir(tmp_path):
        result = runner.run(examples, out=printed.append)
    assert result.attempted > 12
    assert not result.failed, "".join(printed)
