from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from streamgroup.ingest import dictionary
from streamgroup.ingest.segments import Scratch, SegmentWriter
from streamgroup.ingest.tuples import Tuples
from tests.ingest.twin import Here


@pytest.mark.parametrize(("bound", "buckets"), [(256 << 20, 1), (100_000, 4)])
def test_long_keys_are_shared_by_their_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bound: int, buckets: int
) -> None:
    monkeypatch.setattr(dictionary, "BUCKET_BYTES", bound)
    keys = [b"%03d" % (number % 40) * 4000 for number in range(60)]
    rows, scratch = np.arange(len(keys)), Scratch(str(tmp_path))
    writer = SegmentWriter(scratch, 0)
    writer.add(Tuples(rows, pa.array(keys, pa.binary()), None, None, rows, len(rows), [], Counter()))
    writer.close()
    assert 40 * 12_000 <= writer.segments[0].key_bytes < 40 * 12_100
    found = dictionary.count_keys(Here(), scratch, writer.segments, 1)
    assert (len(found.buckets), found.keys, found.top) == (buckets, 40, 2)
    whole = dictionary.keys_between(scratch, found, 0, 40)
    names = whole.key.to_pylist()
    assert names == sorted(set(keys))
    assert np.asarray(whole.count).tolist() == [2] * 20 + [1] * 20
