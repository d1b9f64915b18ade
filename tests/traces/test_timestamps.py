"""Units to microseconds, at the edges of int64, and what a trace made by other programs may hold there."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamgroup.base.errors import DataError
from streamgroup.traces.timestamps import to_micros
from streamgroup.traces.trace import open_trace
from tests.traces_by_hand import write_trace

EDGES = [-(2**63), -(2**63) + 1, -(2**63) // 1000, -(2**63) // 10**6, -1001, -1, 0, 1, 2**63 // 1000, 2**63 - 1]


@pytest.mark.parametrize(("unit", "exponent"), [("s", 6), ("ms", 3), ("us", 0), ("ns", -3)])
def test_every_edge_is_exact_or_does_not_fit(unit: str, exponent: int) -> None:
    found, misfit = to_micros(np.array(EDGES, np.int64), unit)
    for value, micros, lost in zip(EDGES, found.tolist(), misfit.tolist(), strict=True):
        exact = value * 10**exponent if exponent >= 0 else value // 10**-exponent
        assert lost == (not -(2**63) <= exact < 2**63)
        assert micros == (0 if lost else exact)


def test_a_trace_with_the_least_of_all_seconds_is_refused(tmp_path: Path) -> None:
    trace = write_trace(tmp_path / "t", [(0, b"a", None), (1, b"a", None)])
    part = next((trace / "tuples").iterdir())
    table = pq.read_table(part)
    column = pa.array([-(2**63), 0], pa.timestamp("ms"))
    pq.write_table(table.set_column(table.schema.get_field_index("timestamp"), "timestamp", column), part)
    with pytest.raises(DataError, match="tuple 0: timestamp does not fit into microseconds"):
        list(open_trace(trace).batches(("timestamp",)))
