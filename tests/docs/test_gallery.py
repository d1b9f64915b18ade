"""The gallery is whole: what the script names is on the page, and what the page names is there."""

import re
import runpy
from types import SimpleNamespace

import pytest

from streamgroup.report.render_chart import chart_names
from tests.docs.console_blocks import DOCS, ROOT

PAGE = (DOCS / "gallery.md").read_text()


@pytest.fixture(scope="module")
def script() -> SimpleNamespace:
    with pytest.MonkeyPatch.context() as patch:
        # As when Python starts it: its folder has the module that it imports first.
        patch.syspath_prepend(str(ROOT / "scripts"))
        return SimpleNamespace(**runpy.run_path(str(ROOT / "scripts" / "gallery"), run_name="gallery"))


def test_pictures_of_the_page_are_those_that_are_there(script: SimpleNamespace) -> None:
    named = re.findall(r"^!\[[^]]+\]\((gallery/[a-z_-]+\.svg)\)$", PAGE, re.M)
    assert named == [f"gallery/{entry.name}-{chart}.svg" for entry in script.ENTRIES for chart, _ in entry.charts]
    assert sorted(named) == sorted(f"gallery/{path.name}" for path in (DOCS / "gallery").iterdir())
    assert {chart for entry in script.ENTRIES for chart, _ in entry.charts} <= set(chart_names())
    for name in named:
        assert (DOCS / name).read_text().startswith("<svg")


def test_the_page_has_each_trace_as_the_samples_make_it(script: SimpleNamespace) -> None:
    readme = (ROOT / "traces" / "README.md").read_text()
    for entry in script.ENTRIES:
        line = f"streamgroup ingest {entry.ingest} -o {entry.name}.trace\n"
        assert line in PAGE
        assert line in readme
        # A row a grouping on 64 workers.
        assert len(re.findall(rf"^\| {entry.name} \| [a-z_]+ \| 64 \| ", PAGE, re.M)) == len(script.GROUPINGS)
