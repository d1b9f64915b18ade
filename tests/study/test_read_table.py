"""Tables of a run that are damaged, or of another version: the file and the column are named."""

from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from streamgroup.base.errors import DataError
from streamgroup.cli.app import app
from streamgroup.study.read_run import TABLES, read_record, read_tables
from streamgroup.study.read_table import read_table
from streamgroup.study.summary.load_runs import load_runs


def changed(run: Path, table: str, *columns: pl.Expr, without: str = "") -> None:
    path = run / f"{table}.parquet"
    pl.read_parquet(path).with_columns(*columns).drop(without, strict=False).write_parquet(path)


@pytest.mark.parametrize("table", TABLES)
def test_a_table_is_read_as_it_was_written(run: Path, table: str) -> None:
    assert read_table(run, table).equals(pl.read_parquet(run / f"{table}.parquet"))


@pytest.mark.parametrize(
    ("table", "column"),
    [
        ("summary", "grouping"), ("windows", "start_s"), ("workers", "tuples"), ("loads", "worker"), ("keys", "key"),
        ("latency", "at_least_ms"), ("lag", "backlog_s"),
    ],
)  # fmt: skip
def test_a_column_that_is_missing_is_named(run: Path, table: str, column: str) -> None:
    changed(run, table, without=column)
    with pytest.raises(DataError, match=rf"{table}\.parquet.*: the column {column} is missing$"):
        read_table(run, table)
    with pytest.raises(DataError, match=rf"{table}\.parquet.*: the column {column} is missing$"):
        read_tables(run)


@pytest.mark.parametrize(
    ("table", "column", "value", "said"),
    [
        ("summary", "imbalance", "x", "String, not numbers"),
        ("summary", "seed", "x", "String, not numbers"),
        ("summary", "bottleneck", 1, "Int32, not texts"),
        ("workers", "busy_s", "x", "String, not numbers"),
        ("keys", "key", 1, "Int32, not texts"),
        ("lag", "schema_version", "1", "String, not numbers"),
    ],
)
def test_a_column_of_another_type_is_named(run: Path, table: str, column: str, value: object, said: str) -> None:
    changed(run, table, pl.lit(value).alias(column))
    with pytest.raises(DataError, match=rf"{table}\.parquet.*: the column {column} holds {said}$"):
        read_table(run, table)


def test_a_column_of_nulls_and_one_that_is_not_known_are_no_faults(run: Path) -> None:
    changed(run, "summary", pl.lit(None).alias("imbalance"), pl.lit("x").alias("later"))
    assert read_table(run, "summary")["later"].to_list() == ["x"]
    assert load_runs([run])["imbalance"].to_list() == [None]


@pytest.mark.parametrize(
    ("command", "table", "change", "said"),
    [
        ("report RUN -o OUT", "workers", {"without": "tuples"}, "workers.parquet: the column tuples is missing"),
        ("plot worker-load RUN -o OUT", "workers", {"without": "tuples"}, "the column tuples is missing"),
        ("explain RUN", "workers", {"without": "tuples"}, "workers.parquet: the column tuples is missing"),
        ("compare RUN RUN", "summary", {"text": "imbalance"}, "the column imbalance holds String, not numbers"),
        ("report RUN -o OUT", "summary", {"text": "imbalance"}, "the column imbalance holds String, not numbers"),
        ("summarize RUN", "summary", {"text": "imbalance"}, "summary.parquet is not the summary of one run: the col"),
    ],
)
def test_commands_name_the_file_and_the_column(
    run: Path, tmp_path: Path, command: str, table: str, change: dict[str, str], said: str
) -> None:
    if "text" in change:
        changed(run, table, pl.lit("x").alias(change["text"]))
    else:
        changed(run, table, without=change["without"])
    places = {"RUN": str(run), "OUT": str(tmp_path / "out.html")}
    done = CliRunner().invoke(app, [places.get(word, word) for word in command.split()])
    assert (done.exit_code, done.stdout) == (4, "")
    assert said in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


@pytest.mark.parametrize(("version", "later"), [(0, False), (2, True)])
def test_a_table_of_another_version_is_refused(run: Path, version: int, later: bool) -> None:
    for table in TABLES:
        changed(run, table, pl.lit(version, pl.Int32).alias("schema_version"))
        with pytest.raises(DataError, match=rf"{table}\.parquet: tables of version {version}, ") as caught:
            read_table(run, table)
        assert str(caught.value.hint).startswith("update streamgroup" if later else "make the run again")
    with pytest.raises(DataError, match=rf"summary\.parquet: tables of version {version}, "):
        load_runs([run])


@pytest.mark.parametrize(("version", "later"), [(0, False), (99, True), ("x", False)])
def test_a_run_of_a_later_version_is_no_reason_to_make_it_again(run: Path, version: object, later: bool) -> None:
    text = (run / "run.json").read_text()
    new = f'"schema_version": "{version}"' if isinstance(version, str) else f'"schema_version": {version}'
    (run / "run.json").write_text(text.replace('"schema_version": 1', new))
    with pytest.raises(DataError, match=f"tables of version {version}, this program reads 1") as caught:
        read_record(run)
    assert str(caught.value.hint).startswith("update streamgroup" if later else "make the run again")
