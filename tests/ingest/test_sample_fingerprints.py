"""The shipped files make the traces that they always made, whatever runs the ingest."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from streamgroup.ingest.make_trace import IngestResult, ingest
from streamgroup.ingest.options import make_options

# Reader, file, options, fingerprint, late rows: as an ingest that kept segments in files made them.
KNOWN: list[tuple[str, str, dict[str, Any], str, int]] = [
    (
        "csv", "twitter-cache-cluster52/cluster52-first105000.csv.zst", {"key": "object", "cost": "size"},
        "08fa6f514f6c9525e302cd3cff82cb4d4d5c3238035d0eeb46f3033e386d66f6", 0,
    ),
    (
        "text", "jodie-wikipedia/wikipedia.tsv.gz", {"time": "4", "key": "3"},
        "cb51b3120c0634c195b0b48545d93e03695febcbfc90c09149c797397c0e3f1a", 0,
    ),
    (
        "csv", "nycflights13/flights-first45000.csv.gz", {"time": "time_hour", "key": "dest"},
        "fe583c2e78f04897859a4a8a7cbefdca41d7d4c94820502831402ca29543e2d6", 27_610,
    ),
    (
        "csv", "nycflights13/flights-first45000.csv.gz",
        {"time": "time_hour", "key": "tailnum", "null_values": ("NA",), "null_keys": "keep", "value": "distance"},
        "2121ebe2d78dc45c57cc8fe909dac3e69055874bb2b0ed2f3e0805472d41e613", 27_610,
    ),
    (
        "csv", "anon-reviews/anonreviews.csv.bz2", {"time": "date", "key": "vendorId", "head": 100_000},
        "ef31c916d02847d5b862ad44bef05bb791fa968433cc6c5bab2279c2cd60e304", 577_400,
    ),
    (
        "wikipedia-pageviews", "wikimedia-pageviews-hourly/pageviews-20240803-060000.gz", {},
        "39ee3a9d47ca12d5b859a3718c8e957aadc61bc11c7fbcbd82f8b36adcd4c932", 999,
    ),
]  # fmt: skip


@pytest.mark.parametrize(("reader", "file", "options", "fingerprint", "late"), KNOWN)
def test_in_this_process(
    raw: Path, tmp_path: Path, reader: str, file: str, options: dict[str, Any], fingerprint: str, late: int
) -> None:
    asked = make_options(
        reader=reader, inputs=(str(raw / file),), output=tmp_path / "x.trace", engine="local", **options
    )
    made = ingest(asked).manifest
    assert (made.fingerprint, made.out_of_order) == (fingerprint, late)


@pytest.mark.spark
@pytest.mark.parametrize(("reader", "file", "options", "fingerprint", "late"), KNOWN)
def test_on_spark(
    make: Callable[..., IngestResult],
    raw: Path,
    reader: str,
    file: str,
    options: dict[str, Any],
    fingerprint: str,
    late: int,
) -> None:
    made = make(reader, raw / file, **options).manifest
    assert (made.fingerprint, made.out_of_order) == (fingerprint, late)
