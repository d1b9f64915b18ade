"""The browser of the tests: it sees what a page does wrong, and nothing where all is well."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.report.headless_browser import Page, browser, find_chromium


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    chromium = find_chromium()
    if chromium is None:
        pytest.skip("there is no Chromium to look at pages with")
    with browser(chromium) as opened:
        yield opened


def _write(directory: Path, body: str) -> Path:
    file = directory / "page.html"
    file.write_text(f"<!doctype html><meta charset=utf-8><title>t</title><body>{body}</body>")
    return file


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ("<script>console.error('bad', 3)</script>", "console.error: bad 3"),
        ("<script>console.warn('hm')</script>", "console.warning: hm"),
        ("<script>throw new Error('now')</script>", "uncaught: Error: now"),
        ("<script>setTimeout(() => { throw new Error('late') })</script>", "uncaught: Error: late"),
        ("<script>Promise.reject(new Error('kept'))</script>", "uncaught: Error: kept"),
        ("<img src='http://127.0.0.1:9/y.png'>", "request: http://127.0.0.1:9/y.png"),
        ("<script>fetch('other.json').catch(() => 0)</script>", "request: file://"),
        ("<link rel=stylesheet href='https://example.invalid/a.css'>", "request: https://example.invalid/a.css"),
    ],
)
def test_what_a_page_does_wrong_is_seen(page: Page, tmp_path: Path, body: str, fault: str) -> None:
    page.open(_write(tmp_path, body))
    assert any(found.startswith(fault) for found in page.faults()), page.faults()
    page.open(_write(tmp_path, "<p>fine</p><img src='data:image/gif;base64,R0lGODlhAQABAAAAACw='>"))
    assert page.faults() == []


def test_a_page_is_seen_in_any_width_and_in_the_dark(page: Page, tmp_path: Path) -> None:
    file = _write(tmp_path, "<style>@media (prefers-color-scheme: dark) { body { color: rgb(1, 2, 3) } }</style>")
    seen = []
    for dark in (False, True):
        for width in (400, 1280):
            page.open(file, width, dark=dark)
            seen.append((page.ask("innerWidth"), page.ask("getComputedStyle(document.body).color") == "rgb(1, 2, 3)"))
    assert seen == [(400, False), (1280, False), (400, True), (1280, True)]
    picture = tmp_path / "seen.png"
    page.picture(picture)
    # The width of a PNG stands behind the name of its first block.
    assert int.from_bytes(picture.read_bytes()[16:20]) == 1280


def test_what_a_page_offers_is_downloaded(page: Page, tmp_path: Path) -> None:
    give = "const a = document.createElement('a'); a.download = name; a.href = URL.createObjectURL(new Blob([text]))"
    offer = "<p style='height: 3000px'></p><button onclick=\"give('{}.csv', {})\">{}</button>"
    texts = ["'a,b\\n1,2\\n'", "'x'.repeat(3000000)", *(f"'{at}'" for at in range(12))]
    buttons = [offer.format(f"n{at}", text, at) for at, text in enumerate(texts)]
    page.open(_write(tmp_path, f"<script>function give(name, text) {{ {give}; a.click() }}</script>{''.join(buttons)}"))
    # More than ten at once would be too many for the browser.
    found = [page.download(f"document.querySelectorAll('button')[{at}]") for at in range(len(texts))]
    assert found[:2] == [("n0.csv", b"a,b\n1,2\n"), ("n1.csv", b"x" * 3_000_000)]
    assert found[2:] == [(f"n{at + 2}.csv", str(at).encode()) for at in range(12)]


def test_what_does_not_come_is_told(page: Page, tmp_path: Path) -> None:
    page.open(_write(tmp_path, "<script>throw new Error('why')</script>"))
    with pytest.raises(TimeoutError, match=r"not in 0\.1 s: window\.drawn; uncaught: Error: why"):
        page.until("window.drawn", 0.1)
    with pytest.raises(RuntimeError, match="ReferenceError: nothing is not defined"):
        page.ask("nothing.at.all")
