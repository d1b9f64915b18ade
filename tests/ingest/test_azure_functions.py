"""Azure Functions' table of invocations by minute."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streamgroup.base.errors import DataError, UsageError
from streamgroup.ingest.parsing import lines

Parse = Callable[..., Any]
QUIET = settings(
    deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
NAME = "invocations_per_function_md.anon.d02.csv"
HEADER = "HashOwner,HashApp,HashFunction,Trigger," + ",".join(map(str, range(1, 1441)))


def row(function: str, counts: dict[int, int]) -> str:
    return f"o,a,{function},http," + ",".join(str(counts.get(minute, 0)) for minute in range(1440))


def table(*rows: str) -> bytes:
    return "\n".join((HEADER, *rows, "")).encode()


@QUIET
@given(
    st.lists(st.dictionaries(st.integers(0, 1439), st.integers(0, 4), max_size=5), min_size=1, max_size=4),
    st.booleans(),
)
def test_a_tuple_for_each_invocation(parse: Parse, counts: list[dict[int, int]], even: bool) -> None:
    content = table(*(row(f"f{number}", own) for number, own in enumerate(counts)))
    options = {"spread": "minute" if even else "none"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "BLOCK_BYTES", 4000)
        found = parse(content, "azure-functions", name=NAME, reader_options=options)
    expected = [
        (
            86_400_000_000 + minute * 60_000_000 + ((2 * place + 1) * 60_000_000 // (2 * own[minute]) if even else 0),
            f"f{number}".encode(),
        )
        for number, own in enumerate(counts)
        for minute in sorted(own)
        for place in range(own[minute])
    ]
    assert found.tuples == expected
    assert found.filtered.get("count is 0", 0) == sum(not sum(own.values()) for own in counts)


def test_bounds_keys_and_rejects(parse: Parse) -> None:
    content = table(row("f", {0: 1, 1: 2, 1439: 1}), "o,a,f,http,1,2", row("g", {5: 1}).replace("http,0", "http,x"))
    options = {"max_rejects": "100%", "reader_options": {"day": "1", "spread": "none"}}
    found = parse(content, "azure-functions", key="HashApp,HashFunction", since="60", until="86340", **options)
    assert found.tuples == [(60_000_000, b'["a","f"]')] * 2
    assert found.rejects == [(3, "wrong number of fields"), (4, "count is not a whole number")]


def test_files_of_other_kinds(parse: Parse) -> None:
    with pytest.raises(DataError, match="line 1 is not HashOwner"):
        parse(b"app,func,end_timestamp,duration\n", "azure-functions", name=NAME)
    with pytest.raises(UsageError, match=r"no day such as \.d01"):
        parse(table(row("f", {})), "azure-functions")
    with pytest.raises(UsageError, match="no column 'x'"):
        parse(table(row("f", {})), "azure-functions", name=NAME, key="x")
