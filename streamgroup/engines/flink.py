"""Apache Flink: which parallel subtask a key goes to, by its key group.

`hash -> Flink's Murmur -> key group = that modulo max_parallelism -> subtask = key group * n / max_parallelism`, with n
the parallelism. So only `max_parallelism` groups of keys exist, each subtask owns a range of them, and ranges differ by
one group where n does not divide their number. The hash is `hashCode` of the key object in the DataStream API, and one
over the bytes of a row in SQL and the Table API, so the two send the same key to different subtasks.

Classes KeyGroupRangeAssignment, MathUtils, KeyGroupStreamPartitioner, SchedulerBase and BinaryRowData (apache/flink).
Since 1.2; vectors are from the classes of 1.18.1 and 2.3.0, and from jobs on 2.3.0.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamgroup.base.errors import DataError, UsageError
from streamgroup.engines.compile_key_functions import compiled
from streamgroup.engines.hashes.java_hash_and_random import absolute, hash_code, hash_codes, i32
from streamgroup.engines.hashes.murmur32 import finish, finish_word, mix, mix_word, murmur3
from streamgroup.engines.keys.typed_key_arrays import Keys
from streamgroup.engines.keys.typed_key_values import Int, Long, Value, check_workers, fields_of, java_utf8, kind_of
from streamgroup.kernels.compiling.kernel_decorators import njit

__all__ = [
    "LARGEST_PARALLELISM",
    "default_max_parallelism",
    "groups_of_subtasks",
    "key_group",
    "keyby_subtask",
    "keyby_subtasks_all",
    "resolved_max_parallelism",
    "row_hash",
    "sql_subtask",
    "sql_subtasks_all",
    "subtasks_of_hashes",
]

LARGEST_PARALLELISM = 1 << 15
_SEED = 42
_INLINE = 7
_NO_ARRAYS = "Flink rejects arrays as keys"
_NO_BINARY = "the rule of VARBINARY columns is not covered"


def default_max_parallelism(n: int) -> int:
    """Return the max parallelism that Flink computes for a parallelism where none is set: 128 to 32768.

    One and a half times n, rounded up to a power of two: 128 up to n = 85, 256 up to 171, ...
    """
    check_workers(n)
    return min(max(1 << (n + n // 2 - 1).bit_length(), 128), LARGEST_PARALLELISM)


def resolved_max_parallelism(n: int, max_parallelism: int | None) -> int:
    """Return the max parallelism in force; UsageError when it is not in 1..32768, or below the parallelism n."""
    check_workers(n)
    found = default_max_parallelism(n) if max_parallelism is None else max_parallelism
    if not 1 <= found <= LARGEST_PARALLELISM:
        raise UsageError(f"max_parallelism={found}: Flink takes 1 to {LARGEST_PARALLELISM}")
    if found < n:
        raise UsageError(
            f"max_parallelism={found} is less than the parallelism {n}: there are not as many key groups as subtasks",
            "Flink refuses such a job; raise max_parallelism",
        )
    return found


def key_group(hashed: int, max_parallelism: int) -> int:
    """Return the key group, 0..max_parallelism-1, of a 32-bit hash: Flink's Murmur of it, modulo their number.

    The Murmur is one block of MurmurHash3, seed 0, and then the absolute value (0 for -2^31), not a mask.
    """
    return absolute(i32(finish(mix(0, hashed), 4))) % max_parallelism


def groups_of_subtasks(n: int, max_parallelism: int | None = None) -> NDArray[np.int64]:
    """Return how many key groups each subtask owns, int64[n], whatever the keys."""
    most = resolved_max_parallelism(n, max_parallelism)
    return np.bincount(np.arange(most) * n // most, minlength=n)


def _object_hash(key: Value | Sequence[Value]) -> int:
    fields = fields_of(key)
    if key is None:
        raise DataError("Flink's keyBy refuses a null key", "drop null keys")
    if any(kind_of(field) == "bytes" for field in fields):
        raise UsageError(f"keyBy has no rule for bytes: {_NO_ARRAYS}", "give a string or a number")
    found = hash_code(fields[0])
    for field in fields[1:]:
        found = i32(31 * found + hash_code(field))
    return found


def keyby_subtask(key: Value | Sequence[Value], n: int, max_parallelism: int | None = None) -> int:
    """Return the subtask, 0..n-1, that `keyBy` of the DataStream API sends a key to; n is the parallelism.

    `max_parallelism` is 1..32768 and at least n; None is what Flink computes from n. A tuple is Flink's Tuple2 and so
    on: 31 times the hash so far plus that of the next field, from general knowledge and without vectors. A null key
    throws (DataError), a null field counts 0.
    """
    most = resolved_max_parallelism(n, max_parallelism)
    return key_group(_object_hash(key), most) * n // most


def keyby_subtasks_all(keys: Keys, n: int, max_parallelism: int | None = None) -> NDArray[np.uint16]:
    """Return `keyby_subtask` of every key: uint16[K]."""
    most = resolved_max_parallelism(n, max_parallelism)
    if keys.parts:
        return keys.each(lambda key: keyby_subtask(key, n, most))
    keys.refuse_null("Flink's keyBy")
    keys.refuse_kinds("Flink's keyBy", ["bytes"], _NO_ARRAYS)
    return subtasks_of_hashes(hash_codes(keys), n, most)


def _row(fields: Sequence[Value]) -> bytes:
    """Lay out a BinaryRowData: header with null bits, 8 bytes a field, then texts that are longer than 7 bytes."""
    header = 8 * ((len(fields) + 8 + 63) // 64)
    nulls = sum(1 << (8 + place) for place, field in enumerate(fields) if field is None)
    slots, rest = [], b""
    for field in fields:
        if field is None:
            slots.append(bytes(8))
        elif isinstance(field, Int):
            slots.append(field.to_bytes(4, "little", signed=True) + bytes(4))
        elif isinstance(field, Long):
            slots.append(field.to_bytes(8, "little", signed=True))
        elif isinstance(field, str):
            text = java_utf8(field)
            if len(text) <= _INLINE:
                slots.append(text.ljust(_INLINE, b"\0") + bytes([0x80 | len(text)]))
            else:
                offset = header + 8 * len(fields) + len(rest)
                slots.append((offset << 32 | len(text)).to_bytes(8, "little"))
                rest += text + bytes(-len(text) % 8)
        else:
            raise UsageError(f"Flink SQL has no rule for bytes: {_NO_BINARY}", "give a string or a number")
    return nulls.to_bytes(header, "little") + b"".join(slots) + rest


def row_hash(key: Value | Sequence[Value]) -> int:
    """Return the hash, signed 32 bits, of the row that the key columns make: MurmurHash3 over its bytes, seed 42.

    A tuple stands for several columns. Int is INT, Long BIGINT: of a value from 0 on they make the same row.
    """
    return i32(murmur3(_row(fields_of(key)), _SEED))


def sql_subtask(key: Value | Sequence[Value], n: int, max_parallelism: int | None = None) -> int:
    """Return the subtask, 0..n-1, that a keyed exchange of Flink SQL (GROUP BY) sends a key to; null is a key.

    `max_parallelism` as for `keyby_subtask`. Streaming only: a batch job hashes to channels without key groups. Vectors
    are from the classes that lay out and hash rows; no planner was run.
    """
    most = resolved_max_parallelism(n, max_parallelism)
    return key_group(row_hash(key), most) * n // most


def sql_subtasks_all(keys: Keys, n: int, max_parallelism: int | None = None) -> NDArray[np.uint16]:
    """Return `sql_subtask` of every key, each one column: uint16[K]."""
    most = resolved_max_parallelism(n, max_parallelism)
    if keys.parts:
        return keys.each(lambda key: sql_subtask(key, n, most))
    keys.refuse_kinds("Flink SQL", ["bytes"], _NO_BINARY)
    found = np.empty(keys.count, dtype=np.int32)
    if keys.kind == "string":
        _text_rows(keys.data, keys.start, found)
    else:
        _number_rows(keys.number, keys.kind == "long", found)
    if keys.null >= 0:
        found[keys.null] = row_hash(None)
    return subtasks_of_hashes(found, n, most)


def subtasks_of_hashes(hashes: NDArray[np.int32], n: int, most: int) -> NDArray[np.uint16]:
    """Return the subtasks of keys, uint16[K], from their hashes, with `most` key groups."""
    found = np.empty(len(hashes), dtype=np.uint16)
    _assign(hashes, np.int64(n), np.int64(most), found)
    return found


@compiled
def _assign(hashes: Any, n: Any, most: Any, found: Any) -> None:
    for key in range(found.shape[0]):
        mixed = np.int64(np.int32(finish_word(mix_word(np.uint32(0), np.uint32(hashes[key])), 4)))
        positive = np.int64(0) if mixed == -2147483648 else abs(mixed)
        found[key] = positive % most * n // most


@njit
def _row_start() -> Any:
    """Mix in the header of a row of one column that is not null."""
    return mix_word(mix_word(np.uint32(_SEED), np.uint32(0)), np.uint32(0))


@njit
def _padded_word(data: Any, at: Any, end: Any) -> Any:
    """Read four bytes, the lowest first, with zeros from `end` on."""
    found = np.uint32(0)
    for place in range(min(4, max(0, end - at))):
        found |= np.uint32(data[at + place]) << np.uint32(8 * place)
    return found


@compiled
def _text_rows(data: Any, start: Any, found: Any) -> None:
    for key in range(found.shape[0]):
        begin, end = start[key], start[key + 1]
        length = end - begin
        h = _row_start()
        if length <= _INLINE:
            h = mix_word(h, _padded_word(data, begin, end))
            mark = np.uint32(0x80 | length) << np.uint32(24)
            h = mix_word(h, np.uint32(_padded_word(data, begin + 4, end) | mark))
            size = 16
        else:
            # The text stands behind the header and the only column.
            h = mix_word(mix_word(h, np.uint32(length)), np.uint32(16))
            padded = (length + 7) // 8 * 8
            for at in range(begin, begin + padded, 4):
                h = mix_word(h, _padded_word(data, at, end))
            size = 16 + padded
        found[key] = np.int32(finish_word(h, size))


@compiled
def _number_rows(number: Any, long: Any, found: Any) -> None:
    for key in range(found.shape[0]):
        bits = np.uint64(number[key])
        h = mix_word(_row_start(), np.uint32(bits))
        h = mix_word(h, np.uint32(bits >> np.uint64(32)) if long else np.uint32(0))
        found[key] = np.int32(finish_word(h, 16))
