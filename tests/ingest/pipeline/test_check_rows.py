"""Rows that are rejected, filtered or sampled, and the options of that."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from streamgroup.base.errors import UsageError
from streamgroup.ingest.options import make_options, parse_max_rejects, parse_share
from streamgroup.kernels.hash_placement import sampled
from streamgroup.traces.hash_and_show_keys import hash_keys

Parse = Callable[..., Any]
ROWS = b"time,key\n1,a\n2,NA\n3,\n4,-\n5,b\n"


def keys(rows: Any) -> list[bytes | None]:
    return [key for _, key in rows.tuples]


def test_null_keys(parse: Parse) -> None:
    assert keys(parse(ROWS, "csv")) == [b"a", b"NA", b"", b"-", b"b"]
    dropped = parse(ROWS, "csv", null_values=("NA", "-"))
    assert (keys(dropped), dropped.filtered) == ([b"a", b"", b"b"], {"header": 1, "null key": 2})
    assert keys(parse(ROWS, "csv", null_values=("NA", "-"), null_keys="keep")) == [b"a", None, b"", None, b"b"]
    failed = parse(ROWS, "csv", null_values=("NA", "-"), null_keys="fail")
    assert failed.rejects == [(3, "null key"), (5, "null key")]


@pytest.mark.parametrize(
    ("given", "held"),
    [
        (("NA,-",), ("NA", "-")),
        (("NA,-", "none"), ("NA", "-", "none")),
        (("NA,",), ("NA", "")),
        (("",), ("",)),
        ((" NA",), (" NA",)),
    ],
)
def test_null_values_with_commas_between(parse: Parse, given: tuple[str, ...], held: tuple[str, ...]) -> None:
    assert make_options(reader="csv", inputs=("x",), output="y", null_values=given).null_values == held
    rows = parse(ROWS, "csv", null_values=given)
    assert keys(rows) == [key for key in (b"a", b"NA", b"", b"-", b"b") if key.decode() not in held]


def test_a_row_that_is_unusable_is_rejected_before_it_is_filtered(parse: Parse) -> None:
    rows = parse(b"time,key\nx,NA\n", "csv", null_values=("NA",))
    assert (rows.rejects, rows.filtered) == ([(2, "time cannot be read")], {"header": 1})


@pytest.mark.parametrize(
    ("since", "until", "left"),
    [
        ("2", None, [b"NA", b"", b"-", b"b"]),
        (None, "2", [b"a"]),
        ("2", "4", [b"NA", b""]),
        ("1970-01-01T00:00:05Z", None, [b"b"]),
        ("1970-01-01 09:00:05", None, [b"b"]),
        ("7", None, []),
    ],
)
def test_since_and_until(parse: Parse, since: str | None, until: str | None, left: list[bytes]) -> None:
    rows = parse(ROWS, "csv", since=since, until=until, timezone="Asia/Tokyo")
    assert keys(rows) == left


def test_a_bound_that_is_no_time(parse: Parse) -> None:
    with pytest.raises(UsageError, match="--since: 'soon'"):
        parse(ROWS, "csv", since="soon")


def test_sampling_takes_all_of_a_key_or_nothing(parse: Parse) -> None:
    names = [f"k{number % 200}" for number in range(1000)]
    content = "time,key\n" + "".join(f"{number},{name}\n" for number, name in enumerate(names))
    rows = parse(content.encode(), "csv", sample_keys="25%")
    _, high = hash_keys([name.encode() for name in names])
    kept = [name.encode() for name, keep in zip(names, sampled(high, 0.25), strict=True) if keep]
    assert keys(rows) == kept
    assert 20 < len(set(kept)) < 80
    assert rows.filtered["key not in --sample-keys"] == 1000 - len(kept)


@pytest.mark.parametrize("text", ["", "x", "-1", "101%", "1.5", "1%%"])
def test_max_rejects_that_are_none(text: str) -> None:
    with pytest.raises(ValueError, match="neither"):
        parse_max_rejects(text)
    with pytest.raises(UsageError, match="--max-rejects"):
        make_options(reader="csv", inputs=("x",), output="y", max_rejects=text)


@pytest.mark.parametrize("text", ["0", "1.1", "101%", "x", ""])
def test_shares_that_are_none(text: str) -> None:
    with pytest.raises(ValueError, match="share"):
        parse_share(text)


def test_shares() -> None:
    assert (parse_share("0.1"), parse_share("10%"), parse_share("1")) == (0.1, 0.1, 1.0)


@pytest.mark.parametrize(
    ("name", "value"),
    [("delimiter", "a\nb"), ("delimiter", ""), ("delimiter", '"'),
     ("driver_memory", "lots"), ("spark_conf", ("x=1",)), ("limit", -1),
     ("null_keys", "maybe"), ("nonsense", 1)],
)  # fmt: skip
def test_wrong_options_name_themselves(name: str, value: object) -> None:
    with pytest.raises(UsageError, match="--" + name.replace("_", "-")):
        make_options(reader="csv", inputs=("x",), output="y", **{name: value})


def test_stopwords_that_are_not_there(parse: Parse, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--stopwords"):
        parse(ROWS, "csv", stopwords=tmp_path / "none")
