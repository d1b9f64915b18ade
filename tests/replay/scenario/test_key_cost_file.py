"""Costs from a file: by the bytes of keys, exactly, and every mistake named with its place."""

import os
import time
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamgroup.base.errors import DataError, StreamgroupError, UsageError
from streamgroup.replay.scenario.key_cost_file import KeyCost, read_key_cost
from streamgroup.traces.trace import Trace, open_trace
from streamgroup.traces.tuple_blocks import Columns, KeyColumns
from streamgroup.traces.write_trace_files import write_keys
from tests.traces_by_hand import write_trace, write_tuples


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    """Give a trace whose ids are: the null key 0, a 1, the empty key 2, `b,"c` 3."""
    keys = [None, None, None, None, b"a", b"a", b"a", b"", b"", b'b,"c']
    return open_trace(write_trace(tmp_path / "t", [(i, key, None) for i, key in enumerate(keys)]))


@pytest.fixture
def texts(tmp_path: Path) -> Trace:
    """Give a trace without the null key, which CSV cannot hold: a 0, the empty key 1, `b,"c` 2."""
    keys = [b"a", b"a", b"a", b"", b"", b'b,"c']
    return open_trace(write_trace(tmp_path / "t", [(i, key, None) for i, key in enumerate(keys)]))


def parquet(path: Path, **columns: object) -> Path:
    with (path / "costs.parquet").open("wb") as file:
        pq.write_table(pa.table(columns), file)
    return path / "costs.parquet"


def csv(path: Path, content: str | bytes) -> Path:
    file = path / "costs.csv"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return file


GOOD = 'key,cost\n"b,""c",0.0005\n\n,0.0015\nz,9\na,2e3\n'


def test_parquet_by_key(trace: Trace, tmp_path: Path) -> None:
    keys = ["z", 'b,"c', None, "", "a"]
    costs = [1.0, 2.0, 3.5, 4.0, 0.0005]
    for kind in (pa.string(), pa.large_binary(), pa.dictionary(pa.int32(), pa.string())):
        made = read_key_cost(parquet(tmp_path, key=pa.array(keys).cast(kind), cost=costs), trace, 3)
        assert made.by_worker is None
        assert made.base_ns is not None
        assert made.base_ns.tolist() == [3500, 0, 4000, 2000]
        assert not made.base_ns.flags.writeable
        assert made.mean_ns(trace.dictionary().count, 3) == Fraction(4 * 3500 + 0 + 2 * 4000 + 2000, 10)


def test_csv_by_key_an_empty_cell_is_the_empty_key(texts: Trace, tmp_path: Path) -> None:
    for content in (GOOD, "\ufeff" + GOOD, GOOD.replace("\n", "\r\n"), 'cost,more,key\n1,,\n2000,,a\n0,,"b,""c"\n'):
        made = read_key_cost(csv(tmp_path, content), texts, 1)
        assert made.base_ns is not None
        expected = [2_000_000, 1000, 0] if content.startswith("cost") else [2_000_000, 2, 0]
        assert made.base_ns.tolist() == expected


def test_a_path_that_is_not_utf8(texts: Trace, tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"a\xff")
    folder.mkdir()
    first = read_key_cost(csv(folder, GOOD), texts, 1)
    second = read_key_cost(parquet(folder, key=["a", "", 'b,"c'], cost=[2000.0, 0.002, 0.0]), texts, 1)
    assert first.base_ns is not None
    assert second.base_ns is not None
    assert first.base_ns.tolist() == second.base_ns.tolist()


def test_csv_has_no_null_key(trace: Trace, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no cost for the null key of the trace"):
        read_key_cost(csv(tmp_path, GOOD), trace, 1)


def test_keys_that_are_numbers_or_bytes(tmp_path: Path) -> None:
    numbers = open_trace(write_trace(tmp_path / "numbers", [(0, b"7", None), (1, b"7", None), (2, b"-12", None)]))
    made = read_key_cost(parquet(tmp_path, key=[-12, 7], cost=[Decimal("1.5"), Decimal("2.5")]), numbers, 1)
    assert made.base_ns is not None
    assert made.base_ns.tolist() == [2500, 1500]
    raw = open_trace(write_trace(tmp_path / "raw", [(0, b"\xc3\xa9", None)]))
    made = read_key_cost(csv(tmp_path, b"key,cost\n\xff\xfe,1\n\xc3\xa9,2\n"), raw, 1)
    assert made.base_ns is not None
    assert made.base_ns.tolist() == [2000]


def test_by_worker(texts: Trace, tmp_path: Path) -> None:
    keys, workers = ["a", "", 'b,"c', "z"], [1, 0, 7]
    rows = [(key, worker, 10 * keys.index(key) + worker) for worker in workers for key in keys]
    columns = list(zip(*rows, strict=True))
    made = read_key_cost(parquet(tmp_path, key=columns[0], worker=columns[1], cost=columns[2]), texts, 2)
    assert made.base_ns is None
    assert made.by_worker is not None
    assert made.by_worker.tolist() == [[0, 1000], [10_000, 11_000], [20_000, 21_000]]
    assert made.by_worker.dtype == np.float64
    count = texts.dictionary().count
    assert made.mean_ns(count, 2) == [Fraction(20_000 + 20_000, 6), Fraction(3000 + 22_000 + 21_000, 6)]
    assert made.mean_ns(count, 1) == [Fraction(40_000, 6)]
    with pytest.raises(DataError, match="no cost for key 'a' of the trace on worker 2, and 2 more keys"):
        read_key_cost(tmp_path / "costs.parquet", texts, 3)


def test_means_are_exact_where_float_and_int64_are_not() -> None:
    base = np.array([2**53, 2**53 - 1, 1], dtype=np.int64)
    count = np.array([2**34, 2**33 + 1, 3], dtype=np.int64)
    total = 2**53 * 2**34 + (2**53 - 1) * (2**33 + 1) + 3
    assert KeyCost(base, None).mean_ns(count, 1) == Fraction(total, 2**34 + 2**33 + 4)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "the first line is empty"),
        ("\nkey,cost\n", "the first line is empty"),
        ("key,costs\na,1\n", "there is no column 'cost' among key, costs"),
        ("word,cost\na,1\n", "there is no column 'key' among word, cost"),
        ('key,cost\na,1\n"b,""c",1\n', "no cost for key '' of the trace"),
        ("key,cost\n", "no cost for key 'a' of the trace, and 2 more keys"),
        (GOOD + "z,1\n", "line 7: a second cost for key 'z'"),
        (GOOD + "\n\na,-1\n", "line 9: the cost -1.0 is negative or no number"),
        (GOOD + "y,nan\n", "line 7: the cost nan is negative or no number"),
        (GOOD + "y,inf\n", "line 7: the cost inf is negative or no number"),
        (GOOD + "y,fast\n", "line 7: the cost 'fast' is no number"),
        (GOOD + "y,\n", "line 7: the cost '' is no number"),
        (GOOD + "y,1e13\n", "over 2^53 ns"),
        (GOOD + "y,1,2\n", "Expected 2 columns, got 3"),
        ("key,worker,cost\na,0,1\na,x,1\n", "line 3: the worker 'x' is no number"),
        ("key,worker,cost\na,0,1\na,-1,1\n", "line 3: there is no worker -1"),
        ("key,worker,cost\na,0,1\na,65536,1\n", "line 3: there is no worker 65536"),
        ("key,worker,cost\na,0,1\na,0.5,1\n", "line 3: the worker '0.5' is no number"),
        ("key,worker,cost\na,5,1\na,0,1\na,5,2\n", "line 4: a second cost for key 'a' on worker 5"),
        (
            'key,worker,cost\na,0,1\n"b,""c",0,1\n,0,1\n,1,1\na,1,1\n',
            "no cost for key 'b,\"c' of the trace on worker 1",
        ),
    ],
)
def test_a_csv_file_that_is_wrong_is_named_with_its_line(
    texts: Trace, tmp_path: Path, content: str, words: str
) -> None:
    with pytest.raises(DataError) as caught:
        read_key_cost(csv(tmp_path, content), texts, 2)
    assert words in caught.value.message
    assert str(tmp_path / "costs.csv") in caught.value.message


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"key": ["a"], "cost": [1.0]}, "no cost for key '' of the trace, and 1 more keys"),
        ({"key": ["a", "a"], "cost": [1.0, 2.0]}, "row 2: a second cost for key 'a'"),
        ({"key": [None, None], "cost": [1.0, 2.0]}, "row 2: a second cost for the null key"),
        ({"key": ["a", "b"], "cost": [1.0, None]}, "row 2: there is no cost"),
        ({"key": ["a"], "cost": [True]}, "row 1: the cost is a truth value"),
        ({"key": ["a"], "cost": ["cheap"]}, "row 1: the cost 'cheap' is no number"),
        ({"key": ["a"], "cost": [1.0], "worker": [None]}, "there is no worker"),
        ({"key": ["a"], "cost": [1.0], "worker": [0.5]}, "row 1: the worker 0.5 is no number"),
        ({"key": [1.5], "cost": [1.0]}, "the column key is double"),
        ({"cost": [1.0]}, "there is no column 'key' among cost"),
    ],
)
def test_a_parquet_file_that_is_wrong_is_named_with_its_row(
    texts: Trace, tmp_path: Path, columns: dict[str, list[object]], words: str
) -> None:
    with pytest.raises(DataError) as caught:
        read_key_cost(parquet(tmp_path, **columns), texts, 2)
    assert words in caught.value.message


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("costs.csv", None, UsageError),
        ("costs.txt", b"key,cost\n", UsageError),
        ("costs", b"key,cost\n", UsageError),
        ("costs.parquet", b"key,cost\n", DataError),
    ],
)
def test_a_file_that_is_none(
    texts: Trace, tmp_path: Path, name: str, content: bytes | None, kind: type[StreamgroupError]
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(kind, match="--key-cost"):
        read_key_cost(tmp_path / name, texts, 1)
    with pytest.raises(UsageError):
        read_key_cost(tmp_path, texts, 1)


def test_a_million_keys_take_seconds(tmp_path: Path) -> None:
    keys = 1_000_000
    names = [b"key-%d" % i for i in range(keys)]
    (tmp_path / "t").mkdir()
    ids = np.arange(keys, dtype=np.uint32)
    write_tuples(tmp_path / "t" / "tuples", iter([Columns(ids.astype(np.int64), ids, None, None, None)]))
    ones = np.ones(keys, dtype=np.int64)
    write_keys(tmp_path / "t" / "keys", iter([KeyColumns(pa.array(names, pa.large_binary()), ones, ones, ones)]))
    (tmp_path / "t" / "trace.json").write_text('{"format_version": 1}')
    trace = open_trace(tmp_path / "t")
    order = np.random.default_rng(1).permutation(keys)
    costs = parquet(tmp_path, key=pa.array(names, pa.binary()).take(pa.array(order)), cost=order.astype(float))
    begun = time.perf_counter()
    made = read_key_cost(costs, trace, 1)
    assert time.perf_counter() - begun < 20
    assert made.base_ns is not None
    assert (made.base_ns == np.arange(keys) * 1000).all()
