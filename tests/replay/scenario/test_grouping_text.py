"""The text of `-g`."""

import hashlib
import os
import sys
from pathlib import Path

import pytest

from streamgroup.base.errors import UsageError
from streamgroup.groupings import kg as kg_module
from streamgroup.replay.scenario.grouping_selection import select
from streamgroup.replay.scenario.grouping_text import split_label, split_text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("kg", ("kg", [])),
        ("fish:alpha=0,0.2,epoch=1000,2000", ("fish", [("alpha", ["0", "0.2"]), ("epoch", ["1000", "2000"])])),
        ("./mine.py:x=1", ("./mine.py", [("x", ["1"])])),
        ("a:b/mine.py", ("a:b/mine.py", [])),
        ("pkg:", ("pkg", [])),
    ],
)
def test_the_text_is_split_as_documented(text: str, expected: object) -> None:
    assert split_text(text) == expected


@pytest.mark.parametrize(
    ("text", "canonical"),
    [("pkg", "pkg"), ("pkg:d=2", "pkg"), ("pkg:d=3", "pkg:d=3"), ("greedy_d:d=1", "greedy_d:d=1")],
)
def test_the_canonical_text_gives_what_is_not_the_default(text: str, canonical: str) -> None:
    assert select(text).text == canonical


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("pgk", "no grouping 'pgk'"),
        ("", "names no grouping"),
        ("pkg:x=1", "no parameter 'x'"),
        ("pkg:d=1,d=2", "twice"),
        ("pkg:d=2,3", "several values"),
        ("pkg:d=1..4..1", "several values"),
        ("pkg:d", "is no parameter"),
        ("pkg:d=0", "d: 0 is below 1"),
        ("pkg:d=two", "'two' is not a whole number"),
        ("protocol", "no grouping 'protocol'"),
        ("./nothing.py", "No such file"),
    ],
)
def test_a_mistake_is_a_usage_error_that_says_what(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words) as error:
        select(text)
    assert error.value.exit_code == 2


def test_a_misspelt_name_gets_a_suggestion() -> None:
    with pytest.raises(UsageError) as error:
        select("gredy_d")
    assert error.value.hint == "did you mean 'greedy_d'?"


def test_the_digest_of_a_file_is_made_of_what_it_imports_and_of_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kg = Path(kg_module.__file__).read_text()
    package = tmp_path / "helping_hands"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "near.py").write_text("from . import far\nimport json\n")
    (package / "far.py").write_text("x = 1\n")
    plain, helped, other = tmp_path / "plain.py", tmp_path / "helped.py", tmp_path / "other.py"
    plain.write_text(kg)
    helped.write_text(kg + "from helping_hands.near import json\n")
    other.write_text(kg + "# Another.\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    before = select(str(plain)).outside_digest
    assert before == hashlib.sha256(plain.read_bytes()).hexdigest()[:16]
    first = select(str(helped)).outside_digest
    assert first != hashlib.sha256(helped.read_bytes()).hexdigest()[:16]
    # What is loaded by now is no part of what the others are made of.
    select(str(other))
    assert (select(str(plain)).outside_digest, select(str(helped)).outside_digest) == (before, first)
    (package / "far.py").write_text("x = 2\n")
    assert select(str(helped)).outside_digest != first


def test_an_edit_of_equal_size_within_the_same_second_is_what_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.syspath_prepend(str(tmp_path))
    file, near = tmp_path / "mine.py", tmp_path / "near_of_mine.py"
    for value in (2, 4):
        file.write_text(f"{Path(kg_module.__file__).read_text()}\nimport near_of_mine\nchoices = {value}\n")
        near.write_text(f"choices = {value}\n")
        os.utime(file, (1000, 1000))
        os.utime(near, (1000, 1000))
        monkeypatch.delitem(sys.modules, "near_of_mine", raising=False)
        module = select(str(file)).module
        assert (module.choices, module.near_of_mine.choices) == (value, value)
    assert not sys.dont_write_bytecode


def test_a_label_stands_in_place_of_the_name(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(Path(kg_module.__file__).read_text())
    for text, canonical in [
        ("base=kg", "base"),
        ("few=greedy_d:d=3", "few:d=3"),
        (f"salt={file}", "salt"),
        ("v1.2-a=pkg", "v1.2-a"),
    ]:
        assert select(text).text == canonical
    assert select("few=greedy_d:d=3").name == "greedy_d"
    assert split_label("./a=b.py") == ("", "./a=b.py")
    with pytest.raises(UsageError, match="kg is the name of a grouping"):
        select("kg=pkg")
    with pytest.raises(UsageError, match="no grouping 'kgg'"):
        select("mine=kgg")
