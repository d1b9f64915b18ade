"""The layout of a trace on disk: folders, names, sizes and the columns of each Parquet file."""

import pyarrow as pa

__all__ = [
    "BLOCK_ROWS",
    "FORMAT_VERSION",
    "KEYS",
    "KEY_PART_ROWS",
    "MANIFEST",
    "PART_ROWS",
    "REJECTS",
    "REJECTS_SCHEMA",
    "ROW_GROUP_ROWS",
    "TUPLES",
    "keys_schema",
    "part_name",
    "tuples_schema",
]

FORMAT_VERSION = 1

# Names inside a trace directory.
MANIFEST = "trace.json"
TUPLES = "tuples"
KEYS = "keys"
REJECTS = "rejects"

# Borders come from a row's place in the stream: bytes do not depend on cores or on how the input was split.
PART_ROWS = 8 << 20
ROW_GROUP_ROWS = 1 << 20
BLOCK_ROWS = 1 << 20
KEY_PART_ROWS = 1 << 20

REJECTS_SCHEMA = pa.schema(
    [
        pa.field("file", pa.string()),
        pa.field("line", pa.int64()),
        pa.field("reason", pa.string()),
        pa.field("text", pa.string()),
    ]
)


def tuples_schema(*, cost: bool = False, value: bool = False, weight: bool = False, parent: bool = False) -> pa.Schema:
    """Return the columns of `tuples/`: timestamp (us since 1970, UTC), key_id, and the optional ones asked for.

    `cost` is the base service time in us; `value` and `weight` are what the record carries (a price, a size). Tuples
    of one record have one `parent`, which never decreases along the stream.
    """
    fields = [
        pa.field("timestamp", pa.int64(), nullable=False),
        pa.field("key_id", pa.uint32(), nullable=False),
    ]
    if cost:
        fields.append(pa.field("cost", pa.float32(), nullable=False))
    if value:
        fields.append(pa.field("value", pa.float64(), nullable=False))
    if weight:
        fields.append(pa.field("weight", pa.float64(), nullable=False))
    if parent:
        fields.append(pa.field("parent", pa.int64(), nullable=False))
    return pa.schema(fields)


def keys_schema(*, key_bytes: bool = False) -> pa.Schema:
    """Return the columns of `keys/`; `key_bytes` (bytes of keys that are not UTF-8) only where one needs it."""
    fields = [pa.field("key_id", pa.uint32(), nullable=False), pa.field("key", pa.large_string())]
    if key_bytes:
        fields.append(pa.field("key_bytes", pa.large_binary()))
    fields += [
        pa.field("count", pa.uint64(), nullable=False),
        pa.field("hash_lo", pa.int64(), nullable=False),
        pa.field("hash_hi", pa.int64(), nullable=False),
    ]
    return pa.schema(fields)


def part_name(part: int) -> str:
    """Name part 0, 1, ... of a folder, so that the order of names is the order of parts."""
    return f"part-{part:05d}.parquet"
