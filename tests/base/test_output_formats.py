"""Rows as text: what programs read keeps every digit, what people read is never cut."""

import csv
import io
import json
from typing import Any

import pytest

from streamgroup.base.output_formats import FORMATS, render

ROWS: list[dict[str, Any]] = [
    {"grouping": "pkg", "workers": 16, "imbalance": 0.012345678901234567, "note": None, "log": True},
    {"grouping": "greedy_d:d=3,x", "workers": 1234567, "imbalance": 123456789.5, "queue": 3},
]
ODD = 'a,"b"\nc|d\\\t\x00\x1b[31m\u2028'


def test_json_is_one_list_with_every_digit_and_null() -> None:
    found = json.loads(render(ROWS, "json"))
    assert found[0] == {**ROWS[0], "queue": None}
    assert found[1] == {**ROWS[1], "note": None, "log": None}
    assert list(found[1]) == ["grouping", "workers", "imbalance", "note", "log", "queue"]


def test_json_lines_are_one_object_each() -> None:
    lines = render(ROWS, "jsonl").splitlines()
    assert [json.loads(line)["imbalance"] for line in lines] == [0.012345678901234567, 123456789.5]


def test_csv_reads_back_as_it_was() -> None:
    odd = [{"key": ODD, "share": 0.1 + 0.2, "none": None, "list": [3, 5], "ok": False, "deep": [{"a": 1}]}]
    found = list(csv.DictReader(io.StringIO(render(odd, "csv"), newline="")))
    assert found == [
        {
            "key": ODD,
            "share": "0.30000000000000004",
            "none": "",
            "list": "3 5",
            "ok": "false",
            "deep": '[{"a": 1}]',
        }
    ]


def test_a_table_is_aligned_with_numbers_to_the_right() -> None:
    assert render(ROWS, "table").splitlines() == [
        "grouping        workers  imbalance  note  log   queue",
        "--------------  -------  ---------  ----  ----  -----",
        "pkg                  16   0.012346  -     true      -",
        "greedy_d:d=3,x  1234567  123456790  -     -         3",
    ]


def test_a_table_is_never_cut_off_a_terminal() -> None:
    row = {f"metric_{i}": i / 7 for i in range(60)}
    lines = render([row], "table").splitlines()
    assert lines[0].split() == list(row)
    assert lines[2].split() == [f"{value:.5g}" for value in row.values()]


def test_a_table_that_does_not_fit_becomes_blocks() -> None:
    row = {f"metric_{i}": i / 7 for i in range(60)}
    text = render([row, row], "table", width=80)
    blocks = text.split("\n\n")
    assert len(blocks) == 2
    assert [line.split() for line in blocks[0].splitlines()] == [[k, f"{v:.5g}"] for k, v in row.items()]
    fitting = render(ROWS, "table")
    assert render(ROWS, "table", width=max(map(len, fitting.splitlines()))) == fitting


def test_markdown_escapes_what_would_end_a_cell() -> None:
    lines = render([{"key": "a|b\nc", "n": 1}], "markdown").splitlines()
    assert lines == ["| key | n |", "| --- | ---: |", "| a\\|b\\\\nc | 1 |"]


def test_latex_is_a_tabular_that_escapes_what_means_something_else() -> None:
    rows = [{"key_id": "50% & #1 {a}_b~^<>\\", "n": 1.23456789}, {"key_id": "1 +-0.5", "n": None}]
    assert render(rows, "latex") == "\n".join([
        r"\begin{tabular}{lr}", r"\toprule", r"key\_id & n \\", r"\midrule",
        r"50\% \& \#1 \{a\}\_b\textasciitilde{}\textasciicircum{}\textless{}\textgreater{}\textbackslash{} & 1.2346 \\",
        r"1 $\pm$0.5 & - \\", r"\bottomrule", r"\end{tabular}", "",
    ])  # fmt: skip


@pytest.mark.parametrize("form", ["table", "markdown"])
def test_keys_cannot_break_lines_or_steer_a_terminal(form: Any) -> None:
    text = render([{"key": ODD}], form)
    assert len(text.splitlines()) == 3
    assert "\x1b" not in text
    assert "\x00" not in text


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "utf-8"])
@pytest.mark.parametrize("form", FORMATS)
def test_every_output_encoding_works(form: Any, encoding: str) -> None:
    rows = [{"key": "日本 é \U0001f600", "name": "bad\udc80"}]
    text = render(rows, form, encoding=encoding)
    text.encode(encoding)
    if form == "json":
        assert json.loads(text) == rows


def test_wide_letters_keep_their_columns() -> None:
    lines = render([{"key": "日本", "n": 1}, {"key": "e\u0301", "n": 22}], "table").splitlines()
    assert lines == ["key    n", "----  --", "日本   1", "e\u0301     22"]


def test_no_rows() -> None:
    assert render([], "json") == "[]\n"
    assert render([], "table", columns=["a"]) == render([], "jsonl") == render([], "csv") == ""
    assert render([], "markdown") == ""
    assert render([], "csv", columns=["a", "b"]) == "a,b\n"


def test_columns_choose_and_order() -> None:
    assert render(ROWS, "csv", columns=["workers", "grouping"]).splitlines()[0] == "workers,grouping"
    assert json.loads(render(ROWS, "json", columns=["queue"])) == [{"queue": None}, {"queue": 3}]


def test_nan_is_refused() -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        render([{"x": float("nan")}], "json")
