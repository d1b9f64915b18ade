"""Arrow columns as texts, and several columns joined to one time or one composite key."""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["as_texts", "joined_keys", "joined_times"]


def as_texts(column: Any) -> Any:
    """Write numbers, booleans and strings as texts (binary); timestamps and dates stay as they are."""
    kind = column.type
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return column
    if pa.types.is_boolean(kind):
        column = pc.if_else(column, "true", "false")
    elif pa.types.is_float16(kind) or pa.types.is_float32(kind):
        column = column.cast(pa.float64()).cast(pa.string())
    elif not _holds_texts(kind):
        column = column.cast(pa.string())
    return column.cast(pa.binary())


def _holds_texts(kind: pa.DataType) -> bool:
    is_string = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    return bool(is_string or pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def joined_times(parts: list[pa.Array]) -> pa.Array:
    """Write times of several columns (texts, dates, times of day) with a blank between; null where one is null."""
    texts = [part if pa.types.is_binary(part.type) else part.cast(pa.string()).cast(pa.binary()) for part in parts]
    return pc.binary_join_element_wise(*texts, b" ")


def joined_keys(parts: list[pa.Array]) -> pa.StructArray:
    """Put the parts of composite keys side by side; the contract makes keys of them."""
    return pa.StructArray.from_arrays(parts, names=[str(number) for number in range(len(parts))])
