"""The order of a stream and the instants in it: total, counted, and the same whatever the machine's zone."""

import datetime as dt
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamgroup.ingest.make_trace import IngestResult
from streamgroup.ingest.parsing import lines
from streamgroup.replay.replay_trace import replay
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.traces.trace import open_trace
from tests.ingest.naive_ingest import Twin, tuples_of

Ingest = Callable[..., IngestResult]
Parse = Callable[..., Any]


@pytest.fixture(params=["UTC", "Asia/Tokyo", "America/New_York"])
def machine_zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", request.param)
        time.tzset()
        yield request.param
    time.tzset()


def us(*parts: int) -> int:
    return (dt.datetime(*parts) - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1)  # type: ignore[arg-type]


def test_written_times_do_not_ask_the_machine_for_its_zone(parse: Parse, machine_zone: str) -> None:
    assert time.tzname[0] == {"UTC": "UTC", "Asia/Tokyo": "JST", "America/New_York": "EST"}[machine_zone]
    # 02:30 is an hour that New York skipped; as UTC it is before 03:00, and bounds are read like the times.
    content = b"time,key\n2024-03-10 02:30,a\n2024-03-10 03:00,b\n2024-03-10T02:30:00-05:00,c\n2024-03-10,d\n"
    expected = [(us(2024, 3, 10, 2, 30), b"a"), (us(2024, 3, 10, 3), b"b"), (us(2024, 3, 10, 7, 30), b"c")]
    assert parse(content, "csv", since="2024-03-10 00:00:01").tuples == expected
    pattern = b"time,key\n10/03/2024 02:30,a\n"
    assert parse(pattern, "csv", time_format="%d/%m/%Y %H:%M").tuples == expected[:1]
    skipped = parse(content, "csv", timezone="America/New_York")
    assert skipped.rejects == [(2, "time does not exist in the time zone")]
    assert skipped.tuples[0] == (us(2024, 3, 10, 7), b"b")


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_naive_parquet_times_do_not_ask_the_machine_for_its_zone(
    parse: Parse, tmp_path: Path, machine_zone: str, unit: str
) -> None:
    moments = [dt.datetime(2024, 3, 10, 2, 30), dt.datetime(2024, 3, 10, 3), dt.datetime(1969, 12, 31, 23)]
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"time": pa.array(moments, pa.timestamp(unit)), "key": ["a", "b", "c"]}), path)
    rows = parse(path.read_bytes(), "parquet")
    assert rows.tuples == [(us(2024, 3, 10, 2, 30), b"a"), (us(2024, 3, 10, 3), b"b"), (-3_600_000_000, b"c")]


@pytest.mark.spark
def test_late_tuples_are_counted_and_none_is_lost_on_the_way_to_the_workers(make: Ingest, tmp_path: Path) -> None:
    path = tmp_path / "late.tsv"
    path.write_text("10\ta\n11\tb\n9\tc\n12\td\n")
    made = make("slb", path)
    assert (made.manifest.rows_read, made.manifest.tuples, made.manifest.out_of_order) == (4, 4, 1)
    for grouping in ("sg", "kg", "pkg"):
        options = ReplayOptions(grouping=grouping, workers=2, service="1ms", window="1s")
        outcome = replay(open_trace(made.trace), options, interpreted=True)
        assert outcome.window.finished is not None
        assert (outcome.worker.tuples.sum(), outcome.window.finished.sum()) == (4, 4)


@pytest.mark.spark
def test_a_hundred_thousand_tuples_at_fifty_times(
    make: Ingest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twelve files of many splits: rows of one time stand in the order of files and lines, not of names or tasks."""
    draw = random.Random(13)
    files = [tmp_path / f"in-{number}.csv" for number in range(1, 13)]
    row = 0
    for path in files:
        rows = 100_000 // 12 + (path == files[-1]) * (100_000 % 12)
        path.write_text("time,key\n" + "".join(f"{draw.randrange(50)},k{row + n}\n" for n in range(rows)))
        row += rows
    monkeypatch.setattr(lines, "SPLIT_BYTES", 20_000)
    result = make("csv", *files)
    twin, found = Twin(files), tuples_of(result.trace)
    assert found == twin.tuples
    assert (len(found), len({stamp for stamp, _ in found}), result.manifest.keys) == (100_000, 50, 100_000)
    assert result.manifest.out_of_order == twin.late
