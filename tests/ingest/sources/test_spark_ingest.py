"""`ingest spark` and `from_dataframe` from end to end: the same trace as a reader makes, however Spark cut the rows."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamgroup.base.errors import DataError, UsageError
from streamgroup.ingest import from_dataframe
from streamgroup.ingest.make_trace import IngestResult, ingest
from streamgroup.ingest.options import make_options
from streamgroup.ingest.sources.table_options import make_source_options
from streamgroup.ingest.sources.table_to_trace import ingest_spark
from streamgroup.spark.session import Session
from streamgroup.traces.checks.validate import validate
from streamgroup.traces.trace import open_trace

pytestmark = pytest.mark.spark

ROWS = 5000
NOON = 1_700_000_000_000_000


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows with distinct times in a shuffled order, null keys, bad times and bad costs."""
    rng = np.random.default_rng(5)
    at = NOON + rng.permutation(ROWS)
    user = [None if draw == 0 else f"u{draw}" for draw in rng.zipf(1.5, ROWS) % 40]
    table = pa.table(
        {
            "at": pa.array(at, mask=rng.random(ROWS) < 0.002),
            "user": user,
            "id": rng.integers(0, 3, ROWS),
            "cost": np.where(rng.random(ROWS) < 0.002, -1.0, rng.random(ROWS)),
            "price": rng.random(ROWS),
        }
    )
    path = tmp_path_factory.mktemp("rows") / "rows.parquet"
    pq.write_table(table, path, row_group_size=1000)
    return path


def spark_options(output: Path, **values: Any) -> Any:
    return make_source_options(**{"time": "at", "key": ("user",), "output": output, "max_rejects": "5%", **values})


def test_same_fingerprint_as_a_reader(spark: Session, rows: Path, tmp_path: Path) -> None:
    columns = {"cost": "cost", "value": "price", "weight": "id", "null_keys": "keep"}
    read = ingest(
        make_options(
            reader="parquet", inputs=(str(rows),), output=tmp_path / "read", time="at", key="user", max_rejects="5%",
            engine="local", **columns,
        )
    )  # fmt: skip
    loaded = ingest_spark(spark_options(tmp_path / "loaded", paths=(str(rows),), **columns), session=spark)
    one, other = read.manifest, loaded.manifest
    assert one.fingerprint == other.fingerprint
    for name in ("tuples", "keys", "rows_read", "rows_kept", "rejected", "filtered", "total_cost_ns", "p1"):
        assert getattr(one, name) == getattr(other, name), name
    assert one.rejected
    assert (other.in_order, other.out_of_order, other.reader) == (None, None, "spark")
    assert validate(tmp_path / "loaded") == []
    rejects = pq.read_table(tmp_path / "loaded" / "rejects").to_pylist()
    assert len(rejects) == other.rows_rejected
    assert {reject["file"] for reject in rejects} == {str(rows)}
    assert {tuple(json.loads(reject["text"])) for reject in rejects} == {("at", "user", "cost", "price", "id")}


def test_ties_do_not_depend_on_partitions(spark: Session, rows: Path, tmp_path: Path) -> None:
    found = set()
    for parts in (1, 3, 7):
        frame = spark.spark.read.parquet(str(rows)).repartition(parts)
        made = from_dataframe(
            frame, time="1700000000 + id", key=("user", "id"), cost="abs(cost)", value="price",
            output=tmp_path / f"{parts}.trace",
        )  # fmt: skip
        found.add(made.manifest.fingerprint)
    assert len(found) == 1
    trace = open_trace(tmp_path / "7.trace")
    assert trace.tuples == ROWS
    assert trace.manifest.key_parts is not None
    assert [(part.name, part.type) for part in trace.manifest.key_parts] == [("user", "string"), ("id", "long")]
    keys = [json.loads(key or b"") for key in trace.all_keys()]
    assert all(len(key) == 2 and key[1] in (0, 1, 2) for key in keys)


def test_the_session_stays_as_it_was(spark: Session, rows: Path, tmp_path: Path) -> None:
    session = spark.spark
    frame = session.read.parquet(str(rows))
    before = dict(session.conf.getAll)
    made = from_dataframe(frame, time="at", key="user", output=str(tmp_path / "a"), max_rejects="5%")
    assert isinstance(made, IngestResult)
    with pytest.raises(UsageError, match="--key nosuch"):
        from_dataframe(frame, time="at", key="nosuch", output=tmp_path / "b")
    with pytest.raises(DataError, match=r"more than --max-rejects 0: 11 x time cannot be read \(the DataFrame:"):
        from_dataframe(frame, time="at", key="user", output=tmp_path / "c", max_rejects="0")
    with pytest.raises(UsageError, match="exists"):
        from_dataframe(frame, time="at", key="user", output=tmp_path / "a")
    with pytest.raises(UsageError, match="--nonsense"):
        from_dataframe(frame, time="at", key="user", output=tmp_path / "d", nonsense=1)
    assert dict(session.conf.getAll) == before
    assert not frame.storageLevel.useDisk
    assert session._jsc.getPersistentRDDs().size() == 0  # type: ignore[attr-defined]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a"]
    again = from_dataframe(
        frame, time="at", key="user", output=tmp_path / "a", max_rejects="5%", overwrite=True, where="id = 1", head=10
    )
    assert again.manifest.tuples == 10


def test_the_manifest_says_what_was_loaded_but_no_password(spark: Session, tmp_path: Path) -> None:
    query = "SELECT 1700000000 AS at, 'a' AS user"
    spark.spark.sql(query).write.parquet(str(tmp_path / "in.parquet"))
    made = ingest_spark(
        spark_options(
            tmp_path / "out.trace", paths=(str(tmp_path / "in.parquet"),), where="user = 'a'",
            option=("mergeSchema=true", "password=geheim", "url=jdbc://me:geheim@host/db"),
        ),
        session=spark,
    )  # fmt: skip
    text = (tmp_path / "out.trace" / "trace.json").read_text()
    assert "geheim" not in text
    assert made.manifest.reader_options == {
        "time": "at", "key": ["user"], "where": "user = 'a'",
        "option": ["mergeSchema=true", "password=***", "url=jdbc://me:***@host/db"],
    }  # fmt: skip
    assert made.manifest.inputs is not None
    assert [given.path for given in made.manifest.inputs] == [str(tmp_path / "in.parquet")]
    assert made.manifest.key_parts is None


def test_no_rows(spark: Session, tmp_path: Path) -> None:
    query = "SELECT 1700000000 AS at, 'a' AS user WHERE false"
    with pytest.raises(DataError, match="no tuple is left of 0 rows"):
        ingest_spark(spark_options(tmp_path / "out.trace", sql=query), session=spark)
    assert not list(tmp_path.iterdir())


def test_an_expression_that_fails_on_a_row(spark: Session, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    constant = "SELECT 1700000000 AS at, 'a' AS user, 'x' AS c"
    column = "SELECT id AS at, 'a' AS user, 1 / (id - 3) AS c FROM range(5)"
    texts = "SELECT IF(id = 3, 'x', '1700000000') AS at, 'a' AS user FROM range(5)"
    cast = r"--sql: an expression fails on a row: \[CAST_INVALID_INPUT\] The value 'x'"
    for query, values, said in (
        (constant, {"cost": "CAST(c AS DOUBLE)"}, cast),
        (column, {"cost": "c"}, r"--sql: an expression fails on a row: \[DIVIDE_BY_ZERO\]"),
        # Fails while the form of times is guessed, or later where it is given.
        (texts, {"time": "CAST(at AS BIGINT)"}, cast),
        (texts, {"time": "CAST(at AS BIGINT)", "time_format": "s"}, cast),
    ):
        with pytest.raises(DataError, match=said) as wrong:
            ingest_spark(spark_options(tmp_path / "out.trace", sql=query, **values), session=spark)
        assert "try_cast" in (wrong.value.hint or "")
        assert "\n" not in wrong.value.message
    assert "SQLQueryContext" not in capfd.readouterr().err
    assert not list(tmp_path.iterdir())
    with pytest.raises(DataError, match=r"1 of 1 rows cannot be read.*cost is negative or not a number"):
        ingest_spark(spark_options(tmp_path / "out.trace", sql=constant, cost="try_cast(c AS DOUBLE)"), session=spark)
