"""The reader of cache and block I/O traces."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from streamgroup.base.errors import DataError, UsageError
from tests.ingest.naive_ingest import NOT_LINES

Parse = Callable[..., Any]
QUIET = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])

TWITTER = (
    b"0,a:b:1,5,213,4,get,0\n0,a,b,3,10,4,gets,0\n1,18446744073709551615,20,0,7,set,86400\n1,a:b:1,5,213,4,get,0\n"
)
LIBCACHESIM = (
    b"# time, object, size, next_access_vtime\n0, 13053225291711363978, 737, 13\n0, 7, 248, 9223372036854775807\n"
)
CLOUDPHYSICS = (
    b"version,time,op,size,lbn\n1,5633898,2a,512,42932745\n1,5633898,28,4096,42932746\n1,5633898,28,4096,42932746"
)


def keys(rows: Any) -> list[bytes | None]:
    return [key for _, key in rows.tuples]


def test_a_twitter_trace(parse: Parse) -> None:
    rows = parse(TWITTER, "cache-trace", cost="size", value="value_size", weight="ttl")
    big = b"18446744073709551615"
    # A key may hold commas: the fields behind it are found from the end of the line.
    assert rows.tuples == [(0, b"a:b:1"), (0, b"a,b"), (1_000_000, big), (1_000_000, b"a:b:1")]
    assert rows.cost == [218.0, 13.0, 20.0, 218.0]
    assert (rows.value, rows.weight) == ([213.0, 10.0, 0.0, 213.0], [0.0, 0.0, 86400.0, 0.0])
    assert rows.inferred == ("a Twitter cache trace", "times are s")
    assert keys(parse(TWITTER, "cache-trace", key="client")) == [b"4", b"4", b"7", b"4"]
    assert keys(parse(TWITTER, "cache-trace", key="operation")) == [b"get", b"gets", b"set", b"get"]


def test_operations(parse: Parse) -> None:
    rows = parse(TWITTER, "cache-trace", reader_options={"operation": "get, gets"})
    assert keys(rows) == [b"a:b:1", b"a,b", b"a:b:1"]
    assert rows.filtered == {"operation not in --operation": 1}
    reads = parse(CLOUDPHYSICS, "cache-trace", reader_options={"operation": "28"})
    assert (keys(reads), reads.filtered) == ([b"42932746"] * 2, {"header": 1, "operation not in --operation": 1})
    with pytest.raises(UsageError, match="no operations"):
        parse(LIBCACHESIM, "cache-trace", reader_options={"operation": "get"})


def test_a_trace_of_libcachesim(parse: Parse) -> None:
    rows = parse(LIBCACHESIM, "cache-trace", cost="size", value="next_access_vtime")
    assert rows.tuples == [(0, b"13053225291711363978"), (0, b"7")]
    assert (rows.cost, rows.value) == ([737.0, 248.0], [13.0, float(2**63)])
    assert rows.inferred[:2] == ("a trace with a header, as of libCacheSim", "a blank follows each delimiter")


def test_a_cloudphysics_trace_keeps_lines_that_are_alike(parse: Parse) -> None:
    rows = parse(CLOUDPHYSICS, "cache-trace", cost="size")
    assert rows.tuples == [(5633898_000000, key) for key in (b"42932745", b"42932746", b"42932746")]
    assert rows.cost == [512.0, 4096.0, 4096.0]
    assert "a CloudPhysics trace" in rows.inferred


def test_the_sample_is_as_the_csv_reader_reads_it(raw: Path) -> None:
    from tests.ingest.conftest import read

    path = raw / "twitter-cache-cluster52" / "cluster52-first105000.csv.zst"
    rows = read(path, "cache-trace", cost="size")
    other = read(path, "csv", key="object", cost="size")
    assert rows.tuples == other.tuples
    assert rows.cost == other.cost
    counts = Counter(keys(rows))
    assert (rows.rows, len(rows.tuples), len(counts)) == (105_001, 105_000, 23_542)
    assert round(counts.most_common(1)[0][1] / 105_000, 4) == 0.0587


def test_rows_that_cannot_be_used(parse: Parse) -> None:
    rows = parse(
        TWITTER + b"2,a,1,2,3,get\n \t\nx,a,1,2,3,get,0\n3,a,x,2,3,get,0\n-1,a,1,2,3,get,0\n",
        "cache-trace",
        cost="size",
    )
    assert len(rows.tuples) == 4
    assert sorted(rows.rejects) == [
        (5, "wrong number of fields"),
        (7, "time cannot be read"),
        (8, "cost is negative or not a number"),
        (9, "time is -1 (none)"),
    ]
    assert rows.filtered == {"blank": 1}
    assert parse(LIBCACHESIM + b"1, 2, 3\n1, 2, 3, 4, 5\n", "cache-trace").rejects == [
        (4, "wrong number of fields"),
        (5, "wrong number of fields"),
    ]


def test_files_that_are_no_cache_trace(parse: Parse) -> None:
    with pytest.raises(DataError, match="no rows"):
        parse(b"\n", "cache-trace")
    for content in (b"1,2,3\n", b"-0.5,a,b,c\n", b"1,k,1,1,1,jump,0\n", b"0,a,b,3,10,4,gets,never\n"):
        with pytest.raises(UsageError, match="no header"):
            parse(content, "cache-trace")
    with pytest.raises(UsageError, match="no header"):
        parse(LIBCACHESIM, "cache-trace", header=False)
    with pytest.raises(UsageError, match=r"which column is the key.*1 a, 2 time"):
        parse(b"a,time\n1,2\n", "cache-trace")
    with pytest.raises(UsageError, match="no column 'size'"):
        parse(TWITTER, "cache-trace", key="size")


def test_headers_of_other_writers(parse: Parse) -> None:
    assert parse(b"clock_time,obj_id,obj_size\r\n1,a,2\r\n", "cache-trace").tuples == [(1_000_000, b"a")]
    assert parse(b"time\tobj\n1\ta,b\n", "cache-trace", delimiter="\\t").tuples == [(1_000_000, b"a,b")]
    assert parse(TWITTER, "cache-trace", limit=2).rows == 2


pieces = st.sampled_from([b",", b"\n", b" ", b"#", b"\r\n", b"\xff", b"0", b"get", *TWITTER.splitlines(keepends=True)])


@QUIET
@example(b"", b"")
@given(
    st.sampled_from([b"", TWITTER, LIBCACHESIM, CLOUDPHYSICS + b"\n"]),
    st.one_of(st.binary(max_size=200), st.lists(pieces, max_size=30).map(b"".join)),
)
def test_any_bytes_add_up(parse: Parse, begin: bytes, content: bytes) -> None:
    content = begin + content
    assume(not content.startswith(NOT_LINES))
    # Carriage returns alone end lines.
    assume(b"\n" in content or b"\r" not in content)
    options = {"cost": "size"} if begin else {}
    try:
        rows = parse(content, "cache-trace", **options)
    except (DataError, UsageError):
        assert not begin
        return
    assert rows.rows == content.count(b"\n") + (not content.endswith(b"\n"))
