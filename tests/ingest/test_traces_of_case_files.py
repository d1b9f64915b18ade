"""Whole traces of what files do not say, or say in several columns: manifests, notes, warnings, errors, replays."""

from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from streamgroup.base.errors import DataError, UsageError
from streamgroup.ingest.make_trace import IngestResult
from streamgroup.ingest.parsing import lines
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.replay.scenario.plan import make_plan
from streamgroup.traces.trace import open_trace

Make = Callable[..., IngestResult]
CASES = Path(__file__).parents[1] / "data" / "cases"


def test_a_trace_without_times(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "SPLIT_BYTES", 64)
    for name in "ab":
        (tmp_path / name).write_text("key\n" + "".join(f"{name}{row % 3}\n" for row in range(40)))
    made = make("csv", tmp_path / "a", tmp_path / "b", time="none", key="key")
    assert (made.manifest.times, made.manifest.in_order, made.manifest.tuples) == ("none", True, 80)
    assert made.notes == ["times: none, tuples are numbered; replay them with --arrivals rate=R or the like"]
    assert made.warnings == []
    stamps = pq.read_table(made.trace / "tuples").column("timestamp").to_pylist()
    assert stamps == list(range(80))
    trace = open_trace(made.trace)
    with pytest.raises(UsageError, match="no times to arrive at") as caught:
        make_plan(trace, ReplayOptions(grouping="kg", workers=4))
    assert "--arrivals rate=R" in str(caught.value.hint)
    make_plan(trace, ReplayOptions(grouping="kg", workers=4, arrivals="rate=100"))


def test_a_trace_of_composite_keys(make: Make) -> None:
    made = make("csv", CASES / "27-composite-key" / "Financial1.spc", header=False, time="5", key="1,2")
    parts = made.manifest.key_parts
    assert parts is not None
    assert [(part.name, part.type) for part in parts] == [("1", "string"), ("2", "string")]
    assert made.manifest.keys == 24
    assert made.notes[-1] == "times: 1970-01-01T00:00:00Z to 1970-01-01T00:00:01.49Z"


def test_a_key_that_never_occurs(make: Make) -> None:
    made = make("parquet", CASES / "21-parquet-null-type" / "part-1.parquet", key="user", null_keys="keep")
    assert (made.manifest.tuples, made.manifest.keys) == (50, 1)
    assert made.warnings == ["the key is null in every row: is --key the right column?"]


def test_units_of_files_that_follow_each_other(make: Make, tmp_path: Path) -> None:
    for name, scale in (("ms", 1000), ("us", 1_000_000)):
        start = 1_700_000_000 if name == "ms" else 1_700_000_100
        (tmp_path / name).write_text("time,key\n" + "".join(f"{(start + row) * scale},a\n" for row in range(100)))
    made = make("csv", tmp_path / "ms", tmp_path / "us")
    assert made.notes[-1] == "times: 2023-11-14T22:13:20Z to 2023-11-14T22:16:39Z"
    assert made.manifest.in_order
    # Relative times in us: the first file looks like seconds, the second like milliseconds.
    for name, start in (("first", 0), ("second", 200_000_000_000)):
        (tmp_path / name).write_text("time,key\n" + "".join(f"{start + row * 10**7},a\n" for row in range(100)))
    with pytest.raises(DataError, match=r"first look like s, those of .*second like ms, and then their times overlap"):
        make("csv", tmp_path / "first", tmp_path / "second", output="other.trace")
    make("csv", tmp_path / "first", tmp_path / "second", output="other.trace", time_format="us")


def test_what_is_not_likely_is_warned_of(make: Make) -> None:
    made = make("csv", CASES / "04-azure-2021" / "AzureFunctionsInvocationTrace.txt", time="3", key="2", cost="4")
    assert made.warnings[-1].startswith("the mean cost is 0.")
    made = make("csv", CASES / "01-msr-filetime" / "web_0.csv.gz", header=False, time="1", key="5",
                time_format="ns", output="ns.trace")  # fmt: skip
    assert made.warnings[-1].startswith("some times lie before 1990, from 1974")


@pytest.mark.parametrize(
    ("content", "options", "hint"),
    [
        ("time,key\n31.12.2024,a\n", {}, "a time reads '31.12.2024': say how times are written with --time-format"),
        ("time,key\n1,a,\n2,b,\n", {}, "--ragged accepts rows with more or fewer fields"),
        ('time,key\n1,"a\\"b"\n', {}, "--escape"),
        ('time,key\n1,"a\nb\nc"\n2,d\n', {}, "--multiline reads line breaks in quoted fields"),
        ('{"time":1}\n', {"key": "user"}, "is --key the right column?"),
    ],
)
def test_what_is_advised(make: Make, tmp_path: Path, content: str, options: dict[str, str], hint: str) -> None:
    (tmp_path / "in").write_text(content)
    with pytest.raises(DataError) as caught:
        make("jsonl" if options else "csv", tmp_path / "in", **options)
    assert str(caught.value.hint).startswith(hint)
