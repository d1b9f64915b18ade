"""A trace of each input, and traces that are there already."""

import os
from pathlib import Path
from typing import Any

import pytest

from streamgroup.base.errors import DataError, UsageError
from streamgroup.ingest.make_trace import IngestResult, ingest
from streamgroup.ingest.options import make_options
from streamgroup.ingest.trace_per_input import ingest_each, trace_name
from streamgroup.spark.session import Session
from streamgroup.traces.manifest import read_manifest

UP_TO_DATE = ["up to date"]


@pytest.fixture
def inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.chdir(tmp_path)
    for number in range(3):
        Path(f"day{number}.csv").write_text("timestamp,key\n" + f"{number},a\n" * (number + 1))
    return [f"day{number}.csv" for number in range(3)]


def each(*inputs: str, **options: Any) -> list[IngestResult]:
    asked = {"reader": "csv", "time_format": "s", "output": "out", "engine": "local", **options}
    return list(ingest_each(make_options(inputs=inputs, **asked)))


def one(path: str, **options: Any) -> IngestResult:
    asked = {"reader": "csv", "time_format": "s", "output": "t", "engine": "local", "if_missing": True, **options}
    return ingest(make_options(inputs=(path,), **asked))


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("logs/a.csv.gz", "a.trace"),
        ("A.JSONL.ZST", "A.trace"),
        ("pageviews-20240803-060000.gz", "pageviews-20240803-060000.trace"),
        ("part-00000.snappy.parquet", "part-00000.snappy.trace"),
        ("access.log.2024-01-01", "access.log.2024-01-01.trace"),
        (".csv", ".csv.trace"),
        ("s3://bucket/logs/a.txt?versionId=1", "a.trace"),
    ],
)
def test_names(path: str, name: str) -> None:
    assert trace_name(path) == name


def test_each_input_is_as_if_ingested_alone(inputs: list[str]) -> None:
    made = each("day*.csv")
    assert [str(result.trace) for result in made] == ["out/day0.trace", "out/day1.trace", "out/day2.trace"]
    for path, result in zip(inputs, made, strict=True):
        alone = one(path, output=f"alone-{path}").manifest
        assert result.manifest.model_copy(update={"name": alone.name}) == alone
        assert read_manifest(str(result.trace)) == result.manifest


@pytest.mark.spark
def test_spark_starts_once(inputs: list[str], spark: Session) -> None:
    options = make_options(reader="csv", inputs=tuple(inputs), output="out", time_format="s")
    made = [result.manifest.fingerprint for result in ingest_each(options, session=spark)]
    assert made == [result.manifest.fingerprint for result in each(*inputs, output="local")]


def test_inputs_of_one_name(inputs: list[str]) -> None:
    Path("other").mkdir()
    Path("other/day1.csv.txt").write_text("timestamp,key\n1,a\n")
    Path("day1.csv.gz").write_bytes(b"")
    with pytest.raises(UsageError, match=r"day1\.csv and day1\.csv\.gz would both be out/day1\.trace"):
        each(*inputs, "day1.csv.gz")
    assert not Path("out").exists()


def test_a_trace_in_an_input_folder_is_refused_the_first_time(inputs: list[str]) -> None:
    for output in (".", "out"):
        with pytest.raises(UsageError, match=r"day0\.trace lies in the input \."):
            each(".", output=output)
    assert sorted(path.name for path in Path().iterdir()) == inputs
    assert len(each("*.csv", output=".")) == len(each("*.csv", output=".", overwrite=True)) == 3


def test_the_first_failure_ends_it_and_if_missing_goes_on(inputs: list[str]) -> None:
    Path("day1.csv").write_text("timestamp,key\nnever,a\n")
    with pytest.raises(DataError):
        each(*inputs)
    assert [path.name for path in Path("out").iterdir()] == ["day0.trace"]
    with pytest.raises(UsageError, match="exists already"):
        each(*inputs)
    Path("day1.csv").write_text("timestamp,key\n1,a\n")
    made = each(*inputs, if_missing=True)
    assert [result.notes == UP_TO_DATE for result in made] == [True, False, False]


def test_a_trace_that_is_up_to_date_stays(inputs: list[str]) -> None:
    first = one("day2.csv")
    assert first.notes != UP_TO_DATE
    before = {path: path.stat().st_mtime_ns for path in Path("t").rglob("*")}
    again = one("day2.csv")
    assert (again.notes, again.manifest, again.trace) == (UP_TO_DATE, first.manifest, first.trace)
    # The same content, written anew; and options that do not change a trace.
    os.utime("day2.csv", ns=(before[Path("t/trace.json")] + 10**10,) * 2)
    assert one("day2.csv", max_rejects="5", overwrite=True).notes == UP_TO_DATE
    assert {path: path.stat().st_mtime_ns for path in Path("t").rglob("*")} == before


@pytest.mark.parametrize(
    ("change", "options", "said"),
    [
        (None, {"time_format": "ms"}, "with --time-format s, not --time-format ms"),
        (None, {"time_format": "auto"}, "with --time-format s, not the default of --time-format"),
        (None, {"head": 1}, "with the default of --head, not --head 1"),
        (None, {"reader": "text", "delimiter": ",", "header": True}, "made by the reader csv"),
        (None, {"inputs": ("day2.csv", "day1.csv")}, "made without day1.csv"),
        (None, {"inputs": ("day1.csv",)}, "made of day2.csv, not day1.csv"),
        ("timestamp,key\n2,a\n", {}, "day2.csv had 26 bytes then, not 18"),
        ("timestamp,key\n2,a\n2,b\n2,a\n", {}, "day2.csv has changed since"),
    ],
)
def test_a_trace_of_something_else_is_told(
    inputs: list[str], change: str | None, options: dict[str, Any], said: str
) -> None:
    old = one("day2.csv").manifest
    if change:
        Path("day2.csv").write_text(change)
        later = Path("t/trace.json").stat().st_mtime_ns + 10**9
        os.utime("day2.csv", ns=(later, later))
    asked = {"reader": "csv", "time_format": "s", "output": "t", "engine": "local", "if_missing": True}
    asked |= {"inputs": ("day2.csv",), **options}
    with pytest.raises(UsageError) as raised:
        ingest(make_options(**asked))
    assert said in str(raised.value)
    assert "--overwrite" in (raised.value.hint or "")
    assert read_manifest("t") == old
    assert ingest(make_options(**asked, overwrite=True)).notes != UP_TO_DATE


def test_a_changed_input_without_a_checksum_counts_as_another(inputs: list[str]) -> None:
    one("day0.csv", checksum=False)
    later = Path("t/trace.json").stat().st_mtime_ns + 10**9
    os.utime("day0.csv", ns=(later, later))
    with pytest.raises(UsageError, match="has changed since"):
        one("day0.csv", checksum=False)


def test_a_broken_trace_is_told(inputs: list[str]) -> None:
    one("day0.csv")
    Path("t/trace.json").write_text("{")
    with pytest.raises(DataError, match="not JSON"):
        one("day0.csv")
