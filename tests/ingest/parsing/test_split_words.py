"""Texts split into words, against a slow twin; stopwords."""

import re
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgroup.ingest.options import make_options
from streamgroup.ingest.parsing.english_stopwords import STOPWORDS
from streamgroup.ingest.parsing.split_words import words


def of(*texts: str | bytes | None) -> list[list[str] | None]:
    binary = [text.encode() if isinstance(text, str) else text for text in texts]
    lists = words(pa.array(binary, pa.binary()))
    assert lists.type == pa.list_(pa.binary())
    lists.validate(full=True)
    return [None if each is None else [word.decode() for word in each] for each in lists.to_pylist()]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Don't stop, now!", ["don't", "stop", "now"]),
        ("'quoted' ''twice'' o''clock rock 'n' roll'", ["quoted", "twice", "o", "clock", "rock", "n", "roll"]),
        ("It\u2019s \u2018fine\u2019", ["it's", "fine"]),
        ("#Storm @user_name 24/7 3.5", ["storm", "user", "name", "24", "7", "3", "5"]),
        ("see HTTP://x.org/a?b=c#d, www.y.net end", ["see", "end"]),
        ("(https://a.b/c)", []),
        ("httpd awww.", ["httpd", "awww"]),
        ("Ärger ÉTÉ straße Ёлка", ["ärger", "été", "straße", "ёлка"]),
        ("http://t.co/x日本語 テスト", ["日本語", "テスト"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("cafe\u0301", ["cafe\u0301"]),
        ("", []),
        (" \t\n'", []),
        ("a\x00b", ["a", "b"]),
        (b"ab\xffcd \xc3", ["ab", "cd"]),
        (None, None),
    ],
)
def test_what_is_a_word(text: str | bytes | None, found: list[str] | None) -> None:
    assert of(text) == [found]
    assert of("x", text, None, "y z") == [["x"], found, None, ["y", "z"]]


def twin(text: str) -> list[str]:
    """A character at a time, of text without URLs."""
    kept = "".join(
        c if unicodedata.category(c)[0] in "LM" or unicodedata.category(c) == "Nd" or c == "'" else " "
        for c in text.replace("\u2019", "'")
    )
    return [word for piece in re.split(" +|''+", kept) if (word := piece.strip("'"))]


@settings(max_examples=300, deadline=None)
@given(st.lists(st.text("ab'\u2019 ,9é\u0301日\n\x00_-", max_size=12), max_size=6))
def test_as_the_twin_says(texts: list[str]) -> None:
    assert of(*texts) == [twin(text) for text in texts]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.binary(max_size=30), max_size=5))
def test_any_bytes(texts: list[bytes]) -> None:
    for text, found in zip(texts, of(*texts), strict=True):
        assert found is not None
        assert sum(len(word) for word in found) <= 3 * len(text)


def test_a_slice_of_a_column() -> None:
    column = pa.array([b"zero", b"one two", None, b"three"], pa.binary()).slice(1, 2)
    assert words(column).to_pylist() == [[b"one", b"two"], None]


def test_function_words() -> None:
    assert 120 <= len(STOPWORDS) <= 180
    assert all(words(pa.array([word])).to_pylist() == [[word]] for word in STOPWORDS)
    skipped = make_options(reader="csv", inputs=("x",), output="y", stopwords="english").read_stopwords()
    assert {word.lower() for word in skipped} == STOPWORDS


def test_english_stopwords_and_a_file_of_that_name(
    parse: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = b"1\tThe wind and rain\n2\tIT is\n"
    rows = parse(content, "slb", split_words=True, stopwords="english")
    assert [key for _, key in rows.tuples] == [b"wind", b"rain"]
    assert rows.filtered == {"stopwords only": 1}
    (tmp_path / "english").write_bytes(b"wind\n")
    monkeypatch.chdir(tmp_path)
    own = parse(content, "slb", split_words=True, stopwords="./english")
    assert [key for _, key in own.tuples] == [b"The", b"and", b"rain", b"IT", b"is"]
