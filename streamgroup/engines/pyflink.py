"""PyFlink: which parallel subtask `key_by` of a job in Python sends a key to.

`Row.hashCode -> key group -> subtask`, with key groups as in Java (`streamgroup.engines.flink`). Python computes the
key and sends it to the JVM as the only field of a Row, which is what Flink hashes there: 62 plus the hash of the field,
where Java's `keyBy` has the hash alone. So PyFlink sends a key elsewhere than a job in Java.

Without a type (`key_by(f)`) the field is the pickle of the key as a Java array of bytes; with one
(`key_by(f, key_type=Types.STRING())`) it is a Java object, as in Java. The two disagree with each other. A pickle is of
protocol 5 where Python runs in processes, the default, and of Python's default protocol where it runs within the JVM
(`python.execution-mode: thread`), which is 4 up to Python 3.13. So a key without a type moves with the mode, too.

DataStream.key_by, CloudPickleCoder, the converters of pyflink.fn_execution.embedded (flink-python); classes
KeyByKeySelector, Row and RowUtils (apache/flink). Vectors are from jobs on Flink 2.3.0 and CPython 3.11; pickles of one
protocol are the same in CPython 3.8 and later.
"""

import pickle
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from streamgroup.base.errors import UsageError
from streamgroup.engines.compile_key_functions import compiled
from streamgroup.engines.flink import key_group, resolved_max_parallelism, subtasks_of_hashes
from streamgroup.engines.hashes.java_hash_and_random import hash_code, hash_codes, i32
from streamgroup.engines.keys.typed_key_arrays import Keys
from streamgroup.engines.keys.typed_key_values import Value, check_choice, fields_of
from streamgroup.kernels.compiling.kernel_decorators import njit

__all__ = ["Mode", "pyflink_hash", "pyflink_subtask", "pyflink_subtasks_all"]

Mode = Literal["process", "thread"]

# How Python runs, and the protocol of its pickles.
_PROTOCOLS = {"process": 5, "thread": 4}
# Of the Row that holds null, with a type or without: null is not pickled. Then of one that holds a key.
_NULL = 31
# An array of fields starts at 1, and so does the array that Flink makes of the only one: 31 * 1 + (31 * 1 + hash).
_ROW = 62
_NO_ARRAYS = "Flink rejects arrays of bytes as keys that have a type"
# From this many bytes on, a pickle has them outside its frame.
_UNFRAMED = 1 << 16


def pyflink_hash(key: Value | Sequence[Value], *, declared: bool = False, mode: Mode = "process") -> int:
    """Return the hash, signed 32 bits, of the Row that PyFlink makes of a key.

    `declared` is whether `key_by` was given the type of the key: STRING, INT, LONG, or a TUPLE of them. `mode` is
    Flink's `python.execution-mode`. UsageError for bytes that have a type.
    """
    protocol = _protocol(mode)
    fields = fields_of(key)
    if key is None:
        return _NULL
    composite = isinstance(key, (tuple, list))
    if not declared:
        plain = tuple(int(field) if isinstance(field, int) else field for field in fields)
        return i32(_ROW + hash_code(pickle.dumps(plain if composite else plain[0], protocol)))
    if any(isinstance(field, bytes) for field in fields):
        raise UsageError(f"key_by has no rule for bytes with a type: {_NO_ARRAYS}", "leave the type out")
    found = hash_code(fields[0])
    for field in fields[1:]:
        found = i32(31 * found + hash_code(field))
    return i32(_ROW + found)


def _protocol(mode: str) -> int:
    return _PROTOCOLS[check_choice("mode", mode, tuple(_PROTOCOLS))]


def pyflink_subtask(
    key: Value | Sequence[Value],
    n: int,
    max_parallelism: int | None = None,
    *,
    declared: bool = False,
    mode: Mode = "process",
) -> int:
    """Return the subtask, 0..n-1, that PyFlink's `key_by` sends a key to; n is the parallelism.

    `max_parallelism` is 1..32768 and at least n; None is what Flink computes from n. `declared` and `mode` as for
    `pyflink_hash`. A tuple of values is a Python tuple. None is a key.
    """
    most = resolved_max_parallelism(n, max_parallelism)
    return key_group(pyflink_hash(key, declared=declared, mode=mode), most) * n // most


def pyflink_subtasks_all(
    keys: Keys, n: int, max_parallelism: int | None = None, *, declared: bool = False, mode: Mode = "process"
) -> NDArray[np.uint16]:
    """Return `pyflink_subtask` of every key: uint16[K]."""
    protocol = np.uint8(_protocol(mode))
    most = resolved_max_parallelism(n, max_parallelism)
    if keys.parts:
        return keys.each(lambda key: pyflink_subtask(key, n, most, declared=declared, mode=mode))
    if declared:
        keys.refuse_kinds("PyFlink's key_by, with a type,", ["bytes"], _NO_ARRAYS)
        found = hash_codes(keys) + np.int32(_ROW)
    elif keys.kind in ("int", "long"):
        found = np.empty(keys.count, dtype=np.int32)
        _hash_numbers(keys.number, protocol, found)
    else:
        found = np.empty(keys.count, dtype=np.int32)
        _hash_texts(keys.data, keys.start, keys.kind == "string", protocol, found)
        for place in np.flatnonzero(np.diff(keys.start) >= _UNFRAMED).tolist():
            found[place] = pyflink_hash(keys.value(place), mode=mode)
    if keys.null >= 0:
        found[keys.null] = _NULL
    return subtasks_of_hashes(found, n, most)


@njit
def _add(h: Any, byte: Any) -> Any:
    """Go on with `Arrays.hashCode` of bytes, which are signed."""
    return np.uint32(np.uint32(31) * h + np.uint32(np.int32(np.int8(byte))))


@njit
def _add_number(h: Any, value: Any, length: Any) -> Any:
    """Add the lowest bytes of a number, the lowest first."""
    bits = np.uint64(value)
    for place in range(length):
        h = _add(h, np.uint8((bits >> np.uint64(8 * place)) & np.uint64(255)))
    return h


@njit
def _begin(protocol: Any, payload: Any) -> Any:
    """Begin the hash of a pickle: its protocol, and a frame around a payload of four bytes or more."""
    h = _add(_add(np.uint32(1), np.uint8(0x80)), protocol)
    if payload >= 4:
        h = _add_number(_add(h, np.uint8(0x95)), payload, 8)
    return h


@njit
def _row_hash(h: Any) -> Any:
    """End a pickle with STOP, and put it into the Row."""
    return np.int32(np.uint32(_add(h, np.uint8(46)) + np.uint32(_ROW)))


@compiled
def _hash_texts(data: Any, start: Any, text: Any, protocol: Any, found: Any) -> None:
    """Hash the pickles of strings (`text`) or bytes that fit into a frame."""
    short, wide = (np.uint8(0x8C), np.uint8(88)) if text else (np.uint8(67), np.uint8(66))
    for key in range(found.shape[0]):
        length = start[key + 1] - start[key]
        width = 1 if length < 256 else 4
        h = _begin(protocol, 1 + width + length + 2)
        h = _add_number(_add(h, short if width == 1 else wide), length, width)
        for at in range(start[key], start[key + 1]):
            h = _add(h, data[at])
        # MEMOIZE.
        found[key] = _row_hash(_add(h, np.uint8(0x94)))


@compiled
def _hash_numbers(number: Any, protocol: Any, found: Any) -> None:
    """Hash the pickles of integers: of one, two or four bytes, or of as many as it takes."""
    for key in range(found.shape[0]):
        value = number[key]
        if 0 <= value < 256:
            h = _add_number(_add(_begin(protocol, 3), np.uint8(75)), value, 1)
        elif 0 <= value < 65_536:
            h = _add_number(_add(_begin(protocol, 4), np.uint8(77)), value, 2)
        elif -2147483648 <= value <= 2147483647:
            h = _add_number(_add(_begin(protocol, 6), np.uint8(74)), value, 4)
        else:
            # Two's complement, without bytes that only repeat the sign.
            length = 5
            while length < 8 and value >> (8 * length - 1) not in (0, -1):
                length += 1
            h = _add(_add(_begin(protocol, 3 + length), np.uint8(0x8A)), np.uint8(length))
            h = _add_number(h, value, length)
        found[key] = _row_hash(h)
