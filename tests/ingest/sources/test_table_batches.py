"""Record batches of a table, without Spark: the same tuples as the Parquet reader makes of the same rows."""

import datetime as dt
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamgroup.base.errors import UsageError
from streamgroup.ingest.files.inputs_and_splits import plan_splits, resolve_inputs
from streamgroup.ingest.make_reader import make_reader
from streamgroup.ingest.options import make_options
from streamgroup.ingest.parsing.times import KNOWN, resolve_format
from streamgroup.ingest.pipeline.check_and_filter_rows import Contract
from streamgroup.ingest.pipeline.expand_rows import Tuples
from streamgroup.ingest.readers.protocol import Layout
from streamgroup.ingest.sources.canonical_columns import Prepared
from streamgroup.ingest.sources.table_batches import Table, batches, partition_of
from streamgroup.ingest.sources.table_options import SparkSourceOptions, make_source_options
from streamgroup.ingest.sources.table_source import TableSource


def options_of(**values: Any) -> SparkSourceOptions:
    return make_source_options(**{"paths": ("t",), "time": "ts", "key": ("user",), "output": "unused", **values})


def tuples_of(table: pa.Table, form: str | None = None, size: int = 2, **values: Any) -> list[Tuples]:
    options = options_of(**values)
    layout = Layout(tuple(table.column_names), 0, 1, time_format=resolve_format(form) if form else KNOWN)
    contract = Contract(options)
    return [contract.apply(found, layout) for found in batches(table.to_batches(max_chunksize=size), options)]


def flat(found: list[Tuples]) -> dict[str, Any]:
    """All tuples and rejects, row by row."""
    rows: dict[str, Any] = {
        "time": [int(stamp) for one in found for stamp in one.timestamp],
        "key": [key for one in found for key in one.key.to_pylist()],
        "rejects": [(reject.line, reject.reason) for one in found for reject in one.rejects],
        "filtered": sum(one.filtered.total() for one in found),
    }
    for name in ("cost", "value", "weight"):
        columns = [getattr(one, name) for one in found]
        rows[name] = [float(value) for column in columns if column is not None for value in column]
    return rows


INSTANTS = [0, -1, None, 1_700_000_000_000_001, 253_402_300_799_999_999]
TIMES = {
    "timestamps": (pa.array(INSTANTS, pa.timestamp("us", tz="UTC")), None),
    "local": (pa.array(INSTANTS, pa.timestamp("us")), None),
    "dates": (pa.array([0, -1, None, 19_000, 100], pa.date32()), None),
    "integers": (pa.array([0, -1, None, 1_700_000_000, -5], pa.int64()), "s"),
    "floats": (pa.array([0.0, -1.0, None, 1_700_000_000.25, float("nan")]), "s"),
    "decimals": (pa.array([Decimal("0.5"), None, Decimal("-1"), Decimal("1700000000.000001"), Decimal(3)]), "s"),
    "texts": (pa.array(["2024-01-02T03:04:05+01:00", "x", None, "", "2024-03-31 02:30:00"]), "iso8601"),
}
KEYS = {
    "strings": pa.array(["a", None, "", "é", "NA"]),
    "bytes": pa.array([b"\xff", None, b"", b"a", b"NA"]),
    "booleans": pa.array([True, None, False, True, True]),
    "integers": pa.array([-(2**63), None, 0, 7, 2**63 - 1]),
    "short": pa.array([-128, None, 0, 7, 127], pa.int8()),
}


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("time", TIMES)
@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
def test_same_tuples_as_the_parquet_reader(key: str, time: str, zone: str | None, tmp_path: Path) -> None:
    times, form = TIMES[time]
    columns = {
        "time": times,
        "key": KEYS[key],
        "cost": pa.array([1, 2, 3, None, 5]),
        "value": pa.array([1.5, float("nan"), 3, 4, 5]),
        "weight": pa.array([Decimal("0.1"), None, Decimal(3), Decimal(4), Decimal(5)]),
    }
    table = pa.table(columns)
    common = {"timezone": zone, "null_keys": "keep", "null_values": ("NA",)}
    ours = tuples_of(table, form, **common, cost="c", value="v", weight="w")
    pq.write_table(table, tmp_path / "t.parquet")
    reader_options = make_options(
        reader="parquet", inputs=(str(tmp_path / "t.parquet"),), output="unused", time="time", key="key",
        cost="cost", value="value", weight="weight", time_format=form or "auto", **common,
    )  # fmt: skip
    reader, contract = make_reader(reader_options), Contract(reader_options)
    (split,) = plan_splits(reader, resolve_inputs(reader_options.inputs))
    layout = reader.layout(split.path)
    theirs = [contract.apply(found, layout) for found in reader.batches(split, layout)]
    assert flat(ours) == flat(theirs)
    assert flat(ours)["time"] or time == "texts"


def test_rejects_are_rows_as_json() -> None:
    noon = dt.datetime(2024, 1, 2, 12, tzinfo=dt.UTC)
    table = pa.table(
        {
            "time": pa.array([noon, noon, noon, noon, None], pa.timestamp("us", tz="Asia/Tokyo")),
            "key": pa.array([b"\xff", b"a", None, b"b", b"c"]),
            "cost": pa.array([-1.0, float("inf"), 3.0, 4.0, 5.0]),
            "partition": pa.array([7] * 5, pa.int32()),
        }
    )
    found = tuples_of(table, cost="load * 2", time="at", key=("u.id",))
    assert partition_of(table.to_batches()[0]) == 7
    rejects = [reject for one in found for reject in one.rejects]
    assert [(reject.line, reject.reason) for reject in rejects] == [
        (1, "cost is negative or not a number"),
        (2, "cost is negative or not a number"),
        (5, "time cannot be read"),
    ]
    assert [json.loads(reject.text) for reject in rejects] == [
        {"at": "2024-01-02T12:00:00.000000Z", "u.id": "�", "load * 2": -1.0},
        {"at": "2024-01-02T12:00:00.000000Z", "u.id": "a", "load * 2": "inf"},
        {"at": None, "u.id": "c", "load * 2": 5.0},
    ]


def test_composite_keys() -> None:
    table = pa.table(
        {
            "time": pa.array([1, 2, 3, 4, 5], pa.int64()),
            "key_0": pa.array([b"de", None, b"\xff", None, b"-"]),
            "key_1": pa.array([42, 7, 1, None, 2], pa.int32()),
        }
    )
    found = flat(tuples_of(table, "us", key=("country", "id"), null_keys="keep", null_values=("-",)))
    assert found["key"] == [b'["de",42]', b"[null,7]", None, b"[null,2]"]
    assert found["time"] == [1, 2, 4, 5]
    assert found["rejects"] == [(3, "part of the key is not UTF-8")]
    dropped = tuples_of(table, "us", key=("country", "id"), size=10)
    assert flat(dropped)["key"] == [b'["de",42]', b"[null,7]", b'["-",2]']
    (reject,) = dropped[0].rejects
    assert json.loads(reject.text) == {"ts": 3, "country": "�", "id": 1}
    failed = flat(tuples_of(table, "us", key=("country", "id"), null_keys="fail"))
    assert (4, "null key") in failed["rejects"]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"paths": ()}, "nothing to load"),
        ({"table": "t"}, "paths and --table exclude"),
        ({"paths": (), "format": "jdbc", "sql": "q"}, "--format means nothing with --sql"),
        ({"paths": (), "table": "t", "sql": "q"}, "--table and --sql exclude"),
        ({"paths": (), "sql": "q", "option": ("a=b",)}, "--option means nothing with --sql"),
        ({"option": ("a",)}, "--option: 'a' is not NAME=VALUE"),
        ({"key": ()}, "--key"),
        ({"key": ("a", " ")}, "--key: an empty text"),
        ({"time": ""}, "--time: an empty text"),
        ({"key": ("a", "b"), "split_words": True}, "--split-words"),
        ({"key": ("a", "b"), "stopwords": "english"}, "--stopwords"),
        ({"nonsense": 1}, "--nonsense"),
    ],
)
def test_wrong_options(values: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as wrong:
        options_of(**values)
    assert said in wrong.value.message


def test_what_is_loaded_has_a_name() -> None:
    assert options_of(paths=("a", "b")).source == "a b"
    assert options_of(paths=(), format="kafka").source == "--format kafka"
    assert options_of(paths=(), table="db.t", option=("versionAsOf=3",)).source == "--table db.t"


def recorded(options: SparkSourceOptions) -> str:
    """All that a trace records of what is loaded, and what messages name it by."""
    source = TableSource(Prepared(None, Table(options, Layout((), 0, 0, KNOWN), ())), options)  # type: ignore[arg-type]
    return json.dumps([source.describe(), [each.path for each in source.inputs([])], source.origin(0)])


@pytest.mark.parametrize(
    ("option", "shown"),
    [
        ("url=jdbc:postgresql://h/db?user=me&password=s3cret", "url=jdbc:postgresql://h/db?***"),
        ("url=jdbc:sqlserver://h;user=me;password=s3cret;", "url=jdbc:sqlserver://h;***"),
        ("URL=jdbc:mysql://me:s3cret@h/db", "URL=jdbc:mysql://me:***@h/db"),
        ("dbtable_url=jdbc:mysql://me:a/s3cret@h/db", "dbtable_url=jdbc:mysql://me:***@h/db"),
        ("url=jdbc:oracle:thin:scott/s3cret@//h:1521/db", "url=jdbc:oracle:thin:scott/***@//h:1521/db"),
        ("url=jdbc:oracle:thin:scott/s3cret@h:1521:db", "url=jdbc:oracle:thin:scott/***@h:1521:db"),
        (
            "connection.uri=mongodb://me:s3cret@h1,h2/db?authSource=admin",
            "connection.uri=mongodb://me:***@h1,h2/db?***",
        ),
        ("url=jdbc:postgresql://h:5432/db", "url=jdbc:postgresql://h:5432/db"),
        ("fs.azure.account.key.X=s3cret", "fs.azure.account.key.X=***"),
        ("pem_private_key=s3cret", "pem_private_key=***"),
        ("apiKey=s3cret", "apiKey=***"),
        ("sfPwd=s3cret", "sfPwd=***"),
        ("pathGlobFilter=*?.csv;x", "pathGlobFilter=*?.csv;x"),
        ("monkey=tree", "monkey=tree"),
    ],
)
def test_no_secret_of_an_option_is_recorded(option: str, shown: str) -> None:
    text = recorded(options_of(option=(option,)))
    assert json.dumps(shown) in text
    assert "s3cret" not in text


@pytest.mark.parametrize(
    "values",
    [
        {"paths": ("s3a://KEY:s3cret@bucket/x", "/local/x?a=b")},
        {"paths": ("https://h/x?sig=s3cret",)},
        {"paths": (), "table": "parquet.`s3a://KEY:s3cret@bucket/x`"},
        {"paths": (), "sql": "SELECT * FROM parquet.`s3a://KEY:s3cret@bucket/x`"},
    ],
)
def test_no_secret_of_a_path_is_recorded(values: dict[str, Any]) -> None:
    text = recorded(options_of(**values))
    assert "s3cret" not in text
    assert "***" in text
    assert all(path in text for path in values["paths"] if path.startswith("/"))
