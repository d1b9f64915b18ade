"""The ingest as a whole, on Spark, against what the files' makers and a slow twin say."""

import csv
import gzip
import io
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pyspark
import pytest

from streamgroup.base.errors import DataError, UsageError
from streamgroup.ingest.make_reader import make_reader
from streamgroup.ingest.make_trace import IngestResult, ingest
from streamgroup.ingest.options import make_options
from streamgroup.ingest.parsing import lines
from streamgroup.ingest.pipeline import key_ids_by_frequency, order_segments, tuple_segments
from streamgroup.ingest.pipeline.arrow_blocks import rows_of
from streamgroup.ingest.pipeline.read_splits import read_task
from streamgroup.ingest.pipeline.tuple_segments import read_segment
from streamgroup.ingest.readers.protocol import Split
from streamgroup.ingest.sources import file_source
from streamgroup.spark.session import Session
from streamgroup.traces.hash_and_show_keys import hash_key
from streamgroup.traces.manifest import read_manifest
from tests.ingest.naive_ingest import Twin, tuples_of
from tests.spark.session_on_cluster import Cluster

pytestmark = pytest.mark.spark

Ingest = Callable[..., IngestResult]


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def adds_up(result: IngestResult) -> bool:
    facts = result.manifest
    assert facts.rows_read is not None
    return facts.rows_read == (facts.rows_kept or 0) + (facts.rows_rejected or 0) + (facts.rows_filtered or 0)


@pytest.mark.parametrize(
    ("reader", "file", "options", "facts"),
    [
        (
            "csv",
            "twitter-cache-cluster52/cluster52-first105000.csv.zst",
            {"key": "object", "cost": "size"},
            (105_000, 23_542, 0.0587, True),
        ),
        ("text", "jodie-wikipedia/wikipedia.tsv.gz", {"time": "4", "key": "3"}, (157_474, 1_000, 0.0123, True)),
        (
            "csv",
            "nycflights13/flights-first45000.csv.gz",
            {"time": "time_hour", "key": "dest"},
            (45_000, 100, 0.051, False),
        ),
        (
            "csv",
            "nycflights13/flights-first45000.csv.gz",
            {"time": "time_hour", "key": "carrier"},
            (45_000, 16, 0.173, False),
        ),
        ("csv", "anon-reviews/anonreviews.csv.bz2", {"time": "date", "key": "vendorId"}, (578_805, 247, 0.025, False)),
    ],
    ids=["twitter", "jodie", "flights-dest", "flights-carrier", "reviews"],
)
def test_real_files(
    make: Ingest, raw: Path, reader: str, file: str, options: dict[str, Any], facts: tuple[int, int, float, bool]
) -> None:
    result = make(reader, raw / file, **options)
    found = result.manifest
    assert (found.tuples, found.keys, found.in_order) == (facts[0], facts[1], facts[3])
    assert found.p1 == pytest.approx(facts[2], abs=0.0006)
    assert (found.rows_kept, found.rows_rejected) == (facts[0], 0)
    assert adds_up(result)
    assert bool(found.out_of_order) != facts[3]
    assert found == read_manifest(result.trace)
    stamps = pq.read_table(result.trace / "tuples").column("timestamp").to_numpy()
    assert (stamps[1:] >= stamps[:-1]).all()
    counts = pq.read_table(result.trace / "keys").column("count").to_pylist()
    assert counts == sorted(counts, reverse=True)
    assert sum(counts) == facts[0]
    assert not [path for path in result.trace.iterdir() if path.name not in ("trace.json", "tuples", "keys")]


def test_null_keys_of_real_flights(make: Ingest, raw: Path) -> None:
    file = raw / "nycflights13/flights-first45000.csv.gz"
    with gzip.open(file, "rt") as text:
        missing = sum(row["tailnum"] == "NA" for row in csv.DictReader(text))
    assert missing > 0
    options = {"time": "time_hour", "key": "tailnum", "null_values": ("NA",)}
    dropped = make("csv", file, **options)
    assert (dropped.manifest.filtered or {})["null key"] == missing
    assert any("null key" in warning for warning in dropped.warnings)
    # How times are written is no reason to worry.
    assert dropped.notes[0] == "inferred: times are iso8601"
    assert dropped.notes[1].startswith("times: ")
    assert not any("inferred" in warning for warning in dropped.warnings)
    kept = make("csv", file, null_keys="keep", output="kept.trace", **options)
    assert kept.manifest.tuples == 45_000
    keys = pq.read_table(kept.trace / "keys").to_pylist()
    null = next(row for row in keys if row["key"] is None)
    assert (null["count"], null["hash_lo"], null["hash_hi"]) == (missing, *hash_key(None))
    with pytest.raises(DataError, match=rf"{missing} null keys, the first at .*gz:\d+"):
        make("csv", file, null_keys="fail", output="failed.trace", **options)
    assert not (kept.trace.parent / "failed.trace").exists()


@pytest.fixture
def tied_files(tmp_path: Path) -> list[Path]:
    """Twelve files, 50 times with very many ties, keys of many frequencies."""
    draw = random.Random(7)
    files = []
    for number in range(1, 13):
        path = tmp_path / f"in-{number}.csv"
        text = io.StringIO()
        text.write("time,key\n")
        for _ in range(700):
            text.write(f"{draw.randrange(50)},k{int(draw.paretovariate(0.8))}\n")
            if draw.random() < 0.02:
                text.write("\n")
        path.write_text(text.getvalue())
        files.append(path)
    return files


def test_total_order_against_the_twin(make: Ingest, tied_files: list[Path]) -> None:
    result = make("csv", *tied_files)
    twin = Twin(tied_files)
    assert tuples_of(result.trace) == twin.tuples
    assert pq.read_table(result.trace / "keys").column("key").to_pylist() == twin.keys
    assert result.manifest.out_of_order == twin.late
    lows = pq.read_table(result.trace / "keys").column("hash_lo").to_pylist()
    assert lows == [hash_key(key.encode())[0] for key in twin.keys]
    # A glob takes the files by the bytes of their names: 1, 10, 11, 12, 2, ...
    globbed = make("csv", tied_files[0].parent / "in-*.csv", output="globbed.trace")
    by_name = sorted(tied_files, key=lambda path: path.name)
    assert tuples_of(globbed.trace) == Twin(by_name).tuples


def test_small_limits_change_nothing(
    make: Ingest, tied_files: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Splits, ranges of keys and tasks of any size give the same bytes (they are set in the driver's plan)."""
    whole = make("csv", *tied_files)
    monkeypatch.setattr(lines, "SPLIT_BYTES", 1000)
    monkeypatch.setattr(file_source, "MOST_BYTES", 3000)
    monkeypatch.setattr(key_ids_by_frequency, "RANGE_KEYS", 200)
    monkeypatch.setattr(order_segments, "LEAST_TUPLES", 500)
    pieces = make("csv", *tied_files, output="pieces.trace")
    assert {name: content for name, content in tree(pieces.trace).items() if name != "trace.json"} == {
        name: content for name, content in tree(whole.trace).items() if name != "trace.json"
    }
    assert pieces.manifest.fingerprint == whole.manifest.fingerprint
    assert pieces.manifest.out_of_order == whole.manifest.out_of_order


@pytest.mark.parametrize("head", [1, 3000, 8399, 10_000])
def test_head_is_the_first_of_the_stream(make: Ingest, tied_files: list[Path], head: int) -> None:
    result = make("csv", *tied_files, head=head)
    twin = Twin(tied_files).tuples[:head]
    assert tuples_of(result.trace) == twin
    assert result.manifest.keys == len({key for _, key in twin})
    assert adds_up(result)
    assert (result.manifest.filtered or {}).get("beyond --head", 0) == 12 * 700 - len(twin)


@pytest.mark.parametrize("master", [pytest.param("local[1]", marks=pytest.mark.slow), "local[4]", "cluster"])
def test_the_same_bytes_from_every_master(
    spark: Session, tied_files: list[Path], tmp_path: Path, master: str, request: pytest.FixtureRequest
) -> None:
    """In another process, as a session cannot be open twice; machine zone and hash seed differ, too."""
    folder = tmp_path / "one"
    inputs = [*tied_files, tmp_path / "odd.csv", tmp_path / "written.csv"]
    inputs[-2].write_bytes(b"time,key\n3,\xff\nx,y\n4,\xff\n5,b\n")
    inputs[-1].write_text("time,key\n2024-03-10 02:30,a\n2024-03-10T03:00:00.5,b\n2024-03-10 02:30:00+01:00,c\n")
    expected = ingest(
        make_options(reader="csv", inputs=tuple(map(str, inputs)), output=folder / "x.trace", cost=None),
        session=spark,
    )
    other = tmp_path / "two" / "x.trace"
    if master == "cluster":
        cluster: Cluster = request.getfixturevalue("cluster")
        cluster.call("tests.spark.calls_on_cluster:ingest_files", str(other), [*map(str, inputs)])
    else:
        _ingest_on(master, other, inputs)
    assert tree(other) == tree(expected.trace)
    assert tuples_of(other)[-3:] == [
        (1_710_034_200_000_000, "c"), (1_710_037_800_000_000, "a"), (1_710_039_600_500_000, "b"),
    ]  # fmt: skip
    assert list(other.parent.iterdir()) == [other]
    assert not (Path(pyspark.__file__).parent / "work").exists()


def _ingest_on(master: str, output: Path, inputs: list[Path]) -> None:
    code = (
        "import sys\n"
        "from streamgroup.ingest.make_trace import ingest; from streamgroup.ingest.options import make_options\n"
        "if __name__ == '__main__':\n"
        "    ingest(make_options(reader='csv', inputs=tuple(sys.argv[3:]), output=sys.argv[2], master=sys.argv[1],"
        " driver_memory='1g'))\n"
    )
    told = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, master, str(output), *map(str, inputs)],
        env={**os.environ, "TZ": "Asia/Tokyo", "PYTHONHASHSEED": "2", "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (told.returncode, told.stdout, told.stderr) == (0, "", "")


def test_rejects_are_kept_with_file_and_line(make: Ingest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "SPLIT_BYTES", 20)
    first, second = tmp_path / "a.csv", tmp_path / "b.csv"
    first.write_text("time,key\n" + "1,a\n\n" * 10 + "bad\n2,b\n")
    second.write_text('key,time\nb,2\nb,2,2\n"b,2\n')
    result = make("csv", first, second, max_rejects="3")
    rejects = pq.read_table(result.trace / "rejects").to_pylist()
    assert rejects == [
        {"file": str(first), "line": 22, "reason": "wrong number of fields", "text": "bad"},
        {"file": str(second), "line": 3, "reason": "wrong number of fields", "text": "b,2,2"},
        {"file": str(second), "line": 4, "reason": "quote is never closed", "text": '"b,2'},
    ]
    assert result.manifest.rejected == {"wrong number of fields": 2, "quote is never closed": 1}
    assert result.manifest.filtered == {"header": 2, "blank": 10}
    assert (result.manifest.rows_read, result.manifest.tuples) == (27, 12)
    with pytest.raises(DataError, match=r"3 of 27 rows .*2 x wrong number of fields \(.*a.csv:22: 'bad'\)"):
        make("csv", first, second, max_rejects="2", output="none.trace")
    assert not (tmp_path / "none.trace").exists()


def test_late_events_count_and_stay(make: Ingest, tmp_path: Path) -> None:
    path = tmp_path / "late.tsv"
    path.write_text("10\ta\n11\tb\n9\tc\n12\td\n")
    result = make("slb", path)
    assert (result.manifest.tuples, result.manifest.out_of_order, result.manifest.in_order) == (4, 1, False)
    assert [key for _, key in tuples_of(result.trace)] == ["c", "a", "b", "d"]


def test_words_of_one_row_stay_together(make: Ingest, tmp_path: Path) -> None:
    path = tmp_path / "words.tsv"
    path.write_text("2\tb a b\n1\tc  a\n1\t \n")
    result = make("slb", path, split_words=True, head=4)
    assert tuples_of(result.trace) == [(1_000_000, "c"), (1_000_000, "a"), (2_000_000, "b"), (2_000_000, "a")]
    assert (result.manifest.rows_kept, result.manifest.out_of_order) == (2, 1)
    assert adds_up(result)


@pytest.mark.parametrize("content", [b"", b"\n", b"time,key\n", b"time,key\n,\n1,NA\n"])
def test_nothing_left_is_an_error_that_says_so(make: Ingest, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"no rows|no tuple is left"):
        make("csv", path, null_values=("NA",), max_rejects="100%")
    assert [entry.name for entry in tmp_path.iterdir()] == ["x.csv"]


def test_odd_keys_come_through(make: Ingest, tmp_path: Path) -> None:
    keys = [b"a,b", b'"', b"\xf0\x9f\x98\x80", b"nul\x00nul", b"\xff\xfe", b"", b"k" * (1 << 20), b" ", b"line\nfeed"]
    path = tmp_path / "odd.csv"
    path.write_bytes(
        b"time,key\n" + b"".join(b'%d,"%s"\n' % (n, key.replace(b'"', b'""')) for n, key in enumerate(keys))
    )
    result = make("csv", path, multiline=True)
    table = pq.read_table(result.trace / "keys").to_pylist()
    assert [row["key_bytes"] or row["key"].encode() for row in table] == sorted(keys)
    assert [(row["hash_lo"], row["hash_hi"]) for row in table] == [hash_key(key) for key in sorted(keys)]


def test_a_cut_gzip_leaves_nothing(make: Ingest, tmp_path: Path) -> None:
    path = tmp_path / "cut.csv.gz"
    content = "time,key\n" + "".join(f"{n},{random.Random(n).random()}\n" for n in range(50_000))
    path.write_bytes(gzip.compress(content.encode())[:300_000])
    with pytest.raises(DataError, match=r"cut\.csv\.gz: the compressed data are cut off or damaged"):
        make("csv", path)
    # The task finds it, too, when the head of the file is whole.
    path.write_bytes(gzip.compress((content + "9,9\n" * 2_000_000).encode())[:-9])
    with pytest.raises(DataError, match=r"cut\.csv\.gz: the compressed data are cut off or damaged"):
        make("csv", path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["cut.csv.gz"]


def test_an_existing_trace_is_replaced_only_when_asked(make: Ingest, tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("time,key\n1,a\n")
    make("csv", path)
    with pytest.raises(UsageError, match="exists already"):
        make("csv", path)
    path.write_text("time,key\n1,b\n")
    assert tuples_of(make("csv", path, overwrite=True).trace) == [(1_000_000, "b")]


def test_segments_of_one_input_are_bounded(
    make: Ingest, tied_files: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = make("csv", *tied_files)
    monkeypatch.setattr(tuple_segments, "MAX_KEYS", 20)
    monkeypatch.setattr(lines, "BLOCK_BYTES", 500)
    options = make_options(reader="csv", inputs=(str(tied_files[0]),), output="unused")
    assert make_reader(options).plan(str(tied_files[0])) == [(0, None)]
    rows = list(rows_of(read_task(options, [[Split(3, 0, str(tied_files[0]), 0, None)]], 0)))
    found = [read_segment(row) for row in rows if row.kind == "segment"]
    assert len(found) > 3
    assert [segment.number for segment in found] == list(range(3 << 20, (3 << 20) + len(found)))
    assert sum(segment.tuples for segment in found) == 700
    assert whole.manifest.tuples == 12 * 700


def test_interrupt_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "x.csv.gz"
    path.write_bytes(gzip.compress(b"time,key\n" + b"1,a\n" * 20_000_000, 1))
    code = (
        "import sys\n"
        "from streamgroup.ingest.make_trace import ingest; from streamgroup.ingest.options import make_options\n"
        "class Tell:\n"
        "    def start(self, total, text): print(text, flush=True)\n"
        "    def advance(self, done): pass\n"
        "if __name__ == '__main__':\n"
        "    options = make_options(reader='csv', inputs=(sys.argv[1],), output=sys.argv[2], master='local[1]')\n"
        "    try: ingest(options, Tell())\n"
        "    except KeyboardInterrupt: sys.exit(130)\n"
    )
    place, temporary = tmp_path / "traces", tmp_path / "tmp"
    temporary.mkdir()
    for number in (signal.SIGINT, signal.SIGTERM):
        process = subprocess.Popen(
            [sys.executable, "-W", "error", "-c", code, str(path), str(place / "x.trace")],
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "TMPDIR": str(temporary)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        for line in process.stdout:
            if line.strip() == "reading":
                break
        time.sleep(1)
        process.send_signal(number)
        try:
            _, errors = process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            # The bridge to the JVM can swallow one that comes while it closes a socket; one asks again then.
            process.send_signal(number)
            _, errors = process.communicate(timeout=300)
        assert (process.returncode, errors) == (130, "")
        assert not place.exists()
        assert list(temporary.iterdir()) == []
    assert str(temporary) not in subprocess.run(["ps", "axww"], capture_output=True, text=True, check=True).stdout
