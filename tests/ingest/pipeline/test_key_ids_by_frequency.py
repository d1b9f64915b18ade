"""The key dictionary, in ranges of keys: cut, counted and numbered."""

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

from streamgroup.base.progress import Silent
from streamgroup.ingest.pipeline import key_ids_by_frequency
from streamgroup.ingest.pipeline.expand_rows import Tuples
from streamgroup.ingest.pipeline.tuple_segments import SegmentWriter, read_segment
from streamgroup.ingest.runners.local_runner import LocalRunner


@pytest.mark.parametrize(("bound", "ranges"), [(256 << 20, 1), (100_000, 4)])
def test_long_keys_are_shared_by_their_bytes(monkeypatch: pytest.MonkeyPatch, bound: int, ranges: int) -> None:
    monkeypatch.setattr(key_ids_by_frequency, "RANGE_BYTES", bound)
    keys = [b"%03d" % (number % 40) * 4000 for number in range(60)]

    def blocks(number: int) -> Iterator[pa.RecordBatch]:
        rows, writer = np.arange(len(keys)), SegmentWriter(number)
        yield from writer.add(Tuples(rows, pa.array(keys, pa.binary()), None, None, rows, len(rows), [], Counter()))
        yield from writer.close()

    frame = LocalRunner(Silent()).tasks(1, blocks).keep()
    segments = [read_segment(row) for row in frame.stats("segment")]
    assert 40 * 12_000 <= segments[0].key_bytes < 40 * 12_100
    borders = key_ids_by_frequency.choose_key_ranges(segments, 1)
    ranks = key_ids_by_frequency.count_keys(
        key_ids_by_frequency.send_keys_to_ranges(frame, segments, borders), by_bytes=False
    ).keep()
    found = key_ids_by_frequency.assign_ids(ranks)
    assert (len(found.ids), found.keys, found.top, found.not_text) == (ranges, 40, 2, False)
    by_id: dict[int, tuple[bytes, int]] = {}
    for row in ranks.stats("table"):
        columns = row.columns()
        ids = found.ids[row.to].of(np.arange(row.place, row.place + len(columns)))
        pairs = zip(columns.column("key").to_pylist(), columns.column("count").to_pylist(), strict=True)
        by_id |= dict(zip(ids.tolist(), pairs, strict=True))
    assert [by_id[number] for number in range(40)] == list(zip(sorted(set(keys)), [2] * 20 + [1] * 20, strict=True))
