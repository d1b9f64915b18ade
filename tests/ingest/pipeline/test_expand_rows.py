"""Rows whose tuples each have a time, or a weight, of their own."""

import tracemalloc
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgroup.ingest.options import make_options
from streamgroup.ingest.pipeline.check_and_filter_rows import Contract
from streamgroup.ingest.pipeline.expand_rows import pieces
from streamgroup.ingest.readers.protocol import Each, Layout, Parsed

LAYOUT = Layout(("time", "key"), 0, 1)


def parsed_of(
    keys: list[bytes | None], repeat: list[int], *, weighs: bool = False, step: int = 7, told: bool = False
) -> Parsed:
    count = len(keys)

    def each(entry: Any, place: Any) -> Each:
        return Each(100 * entry + step * place, place + 0.5 if weighs else None)

    return Parsed(
        rows=count,
        lines=count,
        consumed=0,
        line=np.arange(1, count + 1),
        time=pa.array([0] * count, pa.timestamp("us", "UTC")),
        key=pa.array(keys, pa.binary()),
        cost=None,
        value=pa.array([float(number) for number in range(count)]),
        weight=pa.array([-1.0] * count),
        text=lambda entry: b"",
        rejects=[],
        filtered={},
        repeat=np.array(repeat, np.int64),
        each=each,
        ascending=told and step >= 0,
        span=(min(0, 40 * step), 100 * count + 40 * abs(step)) if told else None,
    )


def contract(**options: Any) -> Contract:
    return Contract(make_options(reader="csv", inputs=("x",), output="y", **options))


def micros(number: int | None) -> str | None:
    return None if number is None else f"1970-01-01T00:00:00.{number:06d}Z"


@settings(max_examples=100, deadline=None, database=None)
@given(
    rows=st.lists(st.tuples(st.sampled_from([b"a", b"b", None, b"NA"]), st.integers(0, 40)), max_size=8),
    since=st.one_of(st.none(), st.integers(0, 900)),
    until=st.one_of(st.none(), st.integers(0, 900)),
    size=st.integers(1, 50),
    weighs=st.booleans(),
    step=st.sampled_from([7, 0, -7]),
    told=st.booleans(),
)
def test_against_a_list(
    rows: list[tuple[bytes | None, int]],
    since: int | None,
    until: int | None,
    size: int,
    weighs: bool,
    step: int,
    told: bool,
) -> None:
    expected, filtered, kept = [], Counter[str](), 0
    for entry, (key, repeat) in enumerate(rows):
        times = [(place, 100 * entry + step * place) for place in range(repeat)]
        late = [(place, time) for place, time in times if since is None or time >= since]
        inside = [(place, time) for place, time in late if until is None or time < until]
        if key is None or key == b"NA":
            filtered["null key"] += 1
        elif not repeat:
            filtered["count is 0"] += 1
        elif not inside:
            filtered["after --until" if late else "before --since"] += 1
        else:
            weight = [place + 0.5 if weighs else -1.0 for place, _ in inside]
            expected += [(time, key, float(entry), own, kept) for (_, time), own in zip(inside, weight, strict=True)]
            kept += 1
    parsed = parsed_of([key for key, _ in rows], [repeat for _, repeat in rows], weighs=weighs, step=step, told=told)
    found = contract(since=micros(since), until=micros(until), null_values=("NA",)).apply(parsed, LAYOUT)
    tuples: list[Any] = []
    begun = 0
    for piece in pieces(found, size):
        assert 0 < len(piece.timestamp) <= size
        assert piece.value is not None
        assert piece.weight is not None
        number = piece.row + begun - piece.continued
        columns = (piece.timestamp, piece.value, piece.weight, number)
        stamps, values, weights, numbers = (column.tolist() for column in columns)
        tuples += zip(stamps, piece.key.to_pylist(), values, weights, numbers, strict=True)
        begun += piece.rows
    assert tuples == expected
    assert (found.filtered, found.rows, begun) == (filtered, kept, kept)


def test_of_a_billion_ascending_tuples_those_outside_are_not_looked_at() -> None:
    asked = []
    parsed = parsed_of([b"a", b"b", b"c"], [1_000_000_000, 10, 0], told=True)._replace(span=None)
    assert parsed.each is not None
    each = parsed.each

    def watched(entry: Any, place: Any) -> Each:
        asked.append(len(entry))
        return each(entry, place)

    found = contract(since="1970-01-01T00:00:01Z", until="1970-01-01T00:00:02Z").apply(
        parsed._replace(each=watched), LAYOUT
    )
    assert (found.rows, found.filtered) == (1, {"count is 0": 1, "before --since": 1})
    stamps = np.concatenate([piece.timestamp for piece in pieces(found, 1 << 12)])
    assert stamps.tolist() == list(range(1_000_006, 2_000_000, 7))
    assert sum(asked) < len(stamps) + 100


def test_a_span_outside_or_inside_needs_no_look_at_each_tuple() -> None:
    def never(entry: Any, place: Any) -> Each:
        raise AssertionError((entry, place))

    parsed = parsed_of([b"a"], [1 << 40])._replace(each=never, span=(0, 9))
    for since, until, filtered in ((9, None, {"before --since": 1}), (None, 0, {"after --until": 1}), (0, 9, {})):
        found = contract(since=micros(since), until=micros(until)).apply(parsed, LAYOUT)
        assert found.filtered == filtered


def test_ten_million_tuples_of_a_row_do_not_fill_memory() -> None:
    parsed = parsed_of([b"k" * 1000, b"b"], [10_000_000, 1])
    found = contract(since=micros(0), until="1970-01-01T00:01:00Z").apply(parsed, LAYOUT)
    tracemalloc.start()
    total = 0
    for piece in pieces(found, 1 << 18):
        total += len(piece.timestamp)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert total == 60_000_000 // 7 + 1 + 1
    assert peak < 64 << 20
