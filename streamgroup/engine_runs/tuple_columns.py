"""The columns of tuples on their way through an engine: as they are read, and as the sources chose."""

import pyarrow as pa

__all__ = ["CHOSEN", "CHOSEN_TYPES", "READ"]

READ = pa.schema([
    ("seq", pa.int64()), ("source", pa.int32()), ("key_id", pa.int64()), ("key", pa.binary()),
    ("arrival", pa.int64()), ("cost", pa.float64()),
])  # fmt: skip
CHOSEN = pa.schema([
    ("seq", pa.int64()), ("key_id", pa.int64()), ("key", pa.binary()), ("arrival", pa.int64()),
    ("worker", pa.int32()), ("service", pa.int64()), ("hot", pa.int32()), ("entries", pa.int64()),
    ("report", pa.string()),
])  # fmt: skip
CHOSEN_TYPES = (
    "seq long, key_id long, key binary, arrival long, worker int, service long, hot int, entries long, report string"
)
