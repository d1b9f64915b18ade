"""The columns of tuples on their way through the query. A sequence number of -1 marks a row that is no tuple.

In an input file, a row with a `worker` is a report to `source`: the worker finished tuple `seq`, which had arrived
there at `arrival`; times in ns since the run's origin. `worker`, `start` and `finish` of a tuple are -1.
"""

import pyarrow as pa

__all__ = ["CHOSEN", "READ", "READ_TYPES", "SERVED", "no_tuples"]

READ = pa.schema([
    ("label", pa.int32()), ("source", pa.int32()), ("seq", pa.int64()), ("key_id", pa.int64()), ("key", pa.binary()),
    ("arrival", pa.int64()), ("cost", pa.float64()), ("worker", pa.int32()), ("start", pa.int64()),
    ("finish", pa.int64()),
])  # fmt: skip
READ_TYPES = (
    "label int, source int, seq long, key_id long, key binary, arrival long, cost double, worker int, start long, "
    "finish long"
)
# `label` is the worker's; `hot` and `entries` are -1 where the grouping reports no such thing.
CHOSEN = "label int, worker int, seq long, key_id long, key binary, service long, hot int, entries long, report string"
# `batch` is Spark's number; `start` and `finish` are ns since the epoch, by the clock of the worker's machine.
SERVED = "seq long, worker int, start long, finish long, service long, hot int, entries long, batch long, report string"


def no_tuples(rows: int) -> dict[str, list[object]]:
    """Return columns, all but the label, the worker and the report, of rows that are no tuples."""
    return {
        "seq": [-1] * rows, "key_id": [-1] * rows, "key": [None] * rows, "service": [0] * rows, "hot": [-1] * rows,
        "entries": [-1] * rows,
    }  # fmt: skip
