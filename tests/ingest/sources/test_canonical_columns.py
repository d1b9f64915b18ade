"""What Spark loads, as canonical columns: sources of every kind, types, errors; one session."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamgroup.base.errors import UsageError
from streamgroup.ingest.pipeline.check_and_filter_rows import Contract
from streamgroup.ingest.sources.canonical_columns import Prepared, canonical, load, prepare
from streamgroup.ingest.sources.table_batches import Column, Table, batches, partition_of
from streamgroup.ingest.sources.table_options import SparkSourceOptions, make_source_options
from streamgroup.spark.session import Session

pytestmark = pytest.mark.spark

NOON = 1_700_000_000_000_000
ROWS = {"at": [NOON + step for step in range(6)], "user": ["a", "b", "a", None, "c", "a"], "id": [1, 2, 3, 4, 5, 6]}


@pytest.fixture
def sql(spark: Session) -> Any:
    """The SparkSession of the session that all tests of this folder share."""
    return spark.spark


def options_of(*paths: object, **values: Any) -> SparkSourceOptions:
    return make_source_options(
        **{"paths": tuple(map(str, paths)), "time": "at", "key": ("user",), "output": "unused", **values}
    )


def read_in_task(table: Table) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The step of a test: the tuples and rejects of each partition as JSON."""

    def step(record_batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        contract = Contract(table.options)
        kept = [batch for batch in record_batches if batch.num_rows]
        for found in batches(kept, table.options):
            tuples = contract.apply(found, table.layout)
            keys = [None if key is None else key.decode(errors="backslashreplace") for key in tuples.key.to_pylist()]
            content = {
                "partition": partition_of(kept[0]),
                "tuples": [[int(stamp), key] for stamp, key in zip(tuples.timestamp, keys, strict=True)],
                "cost": None if tuples.cost is None else tuples.cost.tolist(),
                "rejects": [[reject.line, reject.reason, reject.text.decode()] for reject in tuples.rejects],
                "filtered": dict(tuples.filtered),
            }
            yield pa.record_batch({"json": pa.array([json.dumps(content)])})

    return step


def read(source: Prepared) -> dict[str, Any]:
    found = source.frame.mapInArrow(read_in_task(source.table), "json string").collect()
    rows = [json.loads(row.json) for row in found]
    return {
        "tuples": sorted(
            (tuple(pair) for row in rows for pair in row["tuples"]), key=lambda pair: (pair[0], pair[1] or "")
        ),
        "rejects": [tuple(reject) for row in rows for reject in row["rejects"]],
        "cost": sorted(cost for row in rows for cost in row["cost"] or ()),
        "partitions": {row["partition"] for row in rows},
    }


def ingest(sql: Any, options: SparkSourceOptions) -> dict[str, Any]:
    return read(prepare(load(sql, options), options))


WANTED = [(NOON, "a"), (NOON + 1, "b"), (NOON + 2, "a"), (NOON + 4, "c"), (NOON + 5, "a")]


@pytest.fixture(scope="module")
def parquet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "rows.parquet"
    pq.write_table(pa.table(ROWS), path)
    return path


def test_parquet_is_the_default(sql: Any, parquet: Path) -> None:
    assert ingest(sql, options_of(parquet))["tuples"] == WANTED


@pytest.mark.parametrize("parts", [1, 2, 5])
def test_any_partitioning_gives_the_same_tuples(sql: Any, parquet: Path, parts: int) -> None:
    options = options_of(parquet, key=("user", "id"), null_keys="keep")
    found = read(prepare(load(sql, options).repartition(parts, "id"), options))
    assert found["partitions"] <= set(range(parts))
    users, times = ROWS["user"], ROWS["at"]
    wanted = [(at, json.dumps([user, number + 1], separators=(",", ":")))
              for number, (at, user) in enumerate(zip(times, users, strict=True))]  # fmt: skip
    assert found["tuples"] == wanted


def test_stopwords_go_to_tasks_with_the_options(sql: Any, parquet: Path, tmp_path: Path) -> None:
    words = tmp_path / "words"
    words.write_text("a\n")
    options = options_of(parquet, stopwords=words).with_files()
    source = prepare(load(sql, options), options)
    words.unlink()
    assert read(source)["tuples"] == [pair for pair in WANTED if pair[1] != "a"]
    assert source.table.options.model_dump() == options.model_dump()


def test_orc_partition_folders_and_a_condition(sql: Any, parquet: Path, tmp_path: Path) -> None:
    frame = sql.read.load(str(parquet))
    frame.write.format("orc").save(str(tmp_path / "rows.orc"))
    assert ingest(sql, options_of(tmp_path / "rows.orc", format="orc"))["tuples"] == WANTED
    frame.selectExpr("*", "id % 2 AS odd", "'x y' AS place").write.partitionBy("odd", "place").save(
        str(tmp_path / "rows.parquet")
    )
    options = options_of(tmp_path / "rows.parquet", key=("place", "odd"), where="odd = 1")
    source = prepare(load(sql, options), options)
    assert source.table.keys == (Column("place", "string"), Column("odd", "int"))
    assert read(source)["tuples"] == [(NOON + step, '["x y",1]') for step in (0, 2, 4)]


def test_csv_in_the_dialect_of_spark(sql: Any, tmp_path: Path) -> None:
    frame = sql.createDataFrame(
        [(NOON, 'say "hi", \\o/', 1.5), (NOON + 1, "b\nc", 2.5)], "at long, user string, c double"
    )
    frame.coalesce(1).write.option("header", True).option("multiLine", True).csv(str(tmp_path / "rows.csv"))
    options = options_of(
        tmp_path / "rows.csv", format="csv", option=("header=true", "multiLine=true", "escape=\\", "inferSchema=true"),
        cost="c * 2",
    )  # fmt: skip
    found = ingest(sql, options)
    assert found["tuples"] == [(NOON, 'say "hi", \\o/'), (NOON + 1, "b\nc")]
    assert found["cost"] == [3.0, 5.0]


def test_tables_views_and_queries(sql: Any, parquet: Path, tmp_path: Path) -> None:
    sql.sql(f"CREATE TABLE clicks USING parquet LOCATION '{tmp_path / 'clicks'}' AS SELECT * FROM parquet.`{parquet}`")
    try:
        assert ingest(sql, options_of(table="clicks"))["tuples"] == WANTED
    finally:
        sql.sql("DROP TABLE clicks")
    query = f"SELECT at + 10 AS later, upper(user) AS name FROM parquet.`{parquet}` WHERE id > 4"
    found = ingest(sql, options_of(sql=query, time="later", key=("name",)))
    assert found["tuples"] == [(NOON + 14, "C"), (NOON + 15, "A")]


def test_a_path_that_is_not_local(sql: Any, tmp_path: Path, parquet: Path) -> None:
    folder = tmp_path / "mounted"
    folder.mkdir()
    name = "fs.viewfs.mounttable.t.link./data"
    sql.conf.set(name, folder.as_uri())
    pq.write_table(pa.table(ROWS), folder / "rows.parquet")
    try:
        assert ingest(sql, options_of("viewfs://t/data/rows.parquet"))["tuples"] == WANTED
    finally:
        sql.conf.unset(name)


def test_times_do_not_depend_on_the_zone_of_the_session(sql: Any) -> None:
    query = (
        "SELECT timestamp_micros(1700000000000001) AS at, TIMESTAMP_NTZ'2024-01-02 03:04:05' AS local,"
        " DATE'2024-01-02' AS day, 'k' AS user"
    )
    found = {}
    for zone in ("UTC", "Asia/Tokyo"):
        sql.conf.set("spark.sql.session.timeZone", zone)
        try:
            for time in ("at", "local", "day"):
                found[zone, time] = ingest(sql, options_of(sql=query, time=time, timezone="Europe/Berlin"))["tuples"]
        finally:
            sql.conf.unset("spark.sql.session.timeZone")
    assert found["UTC", "at"] == [(1_700_000_000_000_001, "k")]
    assert found["UTC", "local"] == [(1_704_161_045_000_000, "k")]
    assert found["UTC", "day"] == [(1_704_150_000_000_000, "k")]
    assert all(found["Asia/Tokyo", time] == found["UTC", time] for time in ("at", "local", "day"))


@pytest.mark.parametrize(
    ("time", "form", "wanted"),
    [
        ("id + 1700000000", "s", 1_700_000_001_000_000),
        ("CAST(id + 1700000000000 AS DOUBLE)", "ms", 1_700_000_000_001_000),
        ("CAST(id + 1700000000.5 AS DECIMAL(20, 3))", "s", 1_700_000_001_500_000),
        ("CAST(id + 1700000000000 AS STRING)", "ms", 1_700_000_000_001_000),
        ("'2023-11-14T22:13:21Z'", "iso8601", 1_700_000_001_000_000),
    ],
)
def test_the_form_of_times_is_guessed(sql: Any, time: str, form: str, wanted: int) -> None:
    options = options_of(sql="SELECT id, 'k' AS user FROM range(1, 5)", time=time)
    source = prepare(load(sql, options), options)
    assert source.table.layout.inferred == (f"times as {form}",)
    assert read(source)["tuples"][0] == (wanted, "k")


def test_times_in_two_units_are_refused(sql: Any) -> None:
    query = "SELECT IF(id % 2 = 0, 1700000000, 1700000000000) + id AS at, 'k' AS user FROM range(10)"
    with pytest.raises(UsageError, match="--time at: the times look like s and ms"):
        ingest(sql, options_of(sql=query))
    assert len(ingest(sql, options_of(sql=query, time_format="ms"))["tuples"]) == 10


def test_rows_that_cannot_be_used_are_rejected_as_json(sql: Any) -> None:
    query = (
        "SELECT * FROM VALUES (1700000000, 'a', 1.0D), (NULL, 'b', 1.0D), (1700000001, 'c', -1.0D) AS t(at, user, c)"
    )
    found = ingest(sql, options_of(sql=query, cost="c"))
    assert found["tuples"] == [(NOON, "a")]
    assert sorted(reject[1:] for reject in found["rejects"]) == [
        ("cost is negative or not a number", '{"at":1700000001,"user":"c","c":-1.0}'),
        ("time cannot be read", '{"at":null,"user":"b","c":1.0}'),
    ]


def test_a_column_of_exactly_that_name_is_meant(sql: Any) -> None:
    query = "SELECT 1700000000 AS `t.x`, named_struct('x', 5) AS t, 'k' AS `a+b`, 1 AS a, 2 AS b, 'q' AS `q``r`"
    found = ingest(sql, options_of(sql=query, time="t.x", key=("a+b", "q`r", "t.x", "t.x + 1")))
    assert found["tuples"] == [(NOON, '["k","q",1700000000,6]')]


def test_keys_of_every_type(sql: Any) -> None:
    query = "SELECT 1700000000 AS at, X'ff' AS bin, true AS yes, -3Y AS tiny, 9L AS long, 'é' AS text"
    for key, kind, wanted in (
        ("bin", "bytes", "\\xff"), ("yes", "boolean", "true"), ("tiny", "int", "-3"),
        ("long", "long", "9"), ("text", "string", "é"),
    ):  # fmt: skip
        options = options_of(sql=query, key=(key,))
        source = prepare(load(sql, options), options)
        assert source.table.keys == (Column(key, kind),)
        assert read(source)["tuples"] == [(NOON, wanted)]


@pytest.mark.parametrize(
    ("values", "message", "hint"),
    [
        ({"key": ("nosuch",)}, "--key nosuch: [UNRESOLVED_COLUMN", "columns: at, user, id, s"),
        ({"time": "at +"}, "--time at +: [PARSE_SYNTAX_ERROR]", "columns: at, user"),
        ({"where": "id"}, "--where id: [DATATYPE_MISMATCH", "columns:"),
        ({"where": "nosuch = 1"}, "--where nosuch = 1: [UNRESOLVED", "columns:"),
        ({"key": ("*",)}, "--key *: [", "columns:"),
        ({"cost": "sum(id)"}, "--cost sum(id): [MISSING_GROUP_BY]", "columns:"),
        ({"key": ("user", "s")}, "--key s is struct<x:int>", "cast it to a string, binary, boolean or integer"),
        ({"key": ("1.5",)}, "--key 1.5 is decimal(2,1)", "cast it"),
        ({"key": ("CAST(id AS DOUBLE)",)}, "is double", "cast it"),
        ({"key": ("current_date()",)}, "is date", "cast it"),
        ({"time": "array(at)"}, "is array<bigint>", "cast it to a timestamp, date, number or string"),
        ({"time": "true"}, "is boolean", "cast it"),
        ({"cost": "user"}, "--cost user is string", "--cost 'CAST(user AS ...)'"),
        ({"weight": "current_timestamp()"}, "is timestamp", "cast it to a number"),
    ],
)
def test_wrong_expressions(
    sql: Any, values: dict[str, Any], message: str, hint: str, capfd: pytest.CaptureFixture[str]
) -> None:
    query = "SELECT 1700000000L AS at, 'a' AS user, 1L AS id, named_struct('x', 1) AS s"
    options = options_of(sql=query, **values)
    with pytest.raises(UsageError) as wrong:
        canonical(load(sql, options), options)
    assert message in wrong.value.message
    assert "\n" not in wrong.value.message
    assert "SQLSTATE" not in wrong.value.message
    assert hint in (wrong.value.hint or "")
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("values", "message", "hint"),
    [
        ({"paths": ("/nosuch/path",)}, "/nosuch/path: [PATH_NOT_FOUND]", None),
        ({"paths": ("/x",), "format": "delta"}, "/x: [DATA_SOURCE_NOT_FOUND]", "spark.jars.packages"),
        ({"format": "kafka"}, "--format kafka: [KAFKA_DATA_SOURCE_NOT_ENABLED]", "spark.jars.packages"),
        ({"paths": ("xx://bucket/x",)}, 'xx://bucket/x: No FileSystem for scheme "xx"', "spark.jars.packages"),
        ({"paths": ("gs://bucket/x",)}, "GoogleHadoopFileSystem not found", "spark.jars.packages"),
        ({"table": "nosuch"}, "--table nosuch: [TABLE_OR_VIEW_NOT_FOUND]", None),
        ({"sql": "SELCT 1"}, "--sql: [PARSE_SYNTAX_ERROR]", None),
        ({"paths": (__file__,)}, "FAILED_READ_FILE", None),
    ],
)
def test_what_cannot_be_loaded(
    sql: Any, values: dict[str, Any], message: str, hint: str | None, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(UsageError) as wrong:
        load(sql, options_of(**{"paths": (), **values}))
    assert message in wrong.value.message
    assert "\n" not in wrong.value.message
    assert (hint or "") in (wrong.value.hint or "")
    assert capfd.readouterr().err == ""


def test_a_stream_is_refused(sql: Any) -> None:
    with pytest.raises(UsageError, match="is a stream"):
        canonical(sql.readStream.format("rate").load(), options_of("x"))


def test_limit(sql: Any, parquet: Path) -> None:
    assert len(ingest(sql, options_of(parquet, limit=3, null_keys="keep"))["tuples"]) == 3
