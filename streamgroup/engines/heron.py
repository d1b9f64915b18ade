"""Apache Heron: the task of a fields grouping, which the stream manager computes from the serialised values.

It adds up `std::hash` of each field's bytes modulo 633910111, and takes the sum modulo n; the result is a place in the
list of task ids, ascending. The bytes are those of the topology's serializer, so the serializer decides. Classes
FieldsGrouping (C++), JavaSerializer and KryoSerializer (apache/incubator-heron); the rule is that of its first commit.
`std::hash` is libstdc++'s; with another C++ library keys go elsewhere. Heron has no partial key grouping.
"""

from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from streamgroup.base.errors import DataError, UsageError
from streamgroup.engines.compile_key_functions import compiled
from streamgroup.engines.keys.typed_key_arrays import Keys
from streamgroup.engines.keys.typed_key_values import Int, Value, check_workers, fields_of
from streamgroup.kernels.compiling.kernel_decorators import njit

__all__ = ["Serializer", "fields_task", "fields_tasks_all", "serialized"]

Serializer = Literal["java", "kryo3-4", "kryo5"]

_PRIME = 633910111
_SEED, _FACTOR, _64_BITS = 0xC70F6907, 0xC6A4A7935BD1E995, 0xFFFF_FFFF_FFFF_FFFF

# What java.io.ObjectOutputStream writes ahead of a value: the class, its fields, its parent.
_STREAM = bytes.fromhex("aced0005")
_PARENT = b"xr\0\x10java.lang.Number" + bytes.fromhex("86ac951d0b94e08b020000") + b"xp"
_INTEGER = _STREAM + b"sr\0\x11java.lang.Integer" + bytes.fromhex("12e2a0a4f7818738020001") + b"I\0\x05value" + _PARENT
_LONG = _STREAM + b"sr\0\x0ejava.lang.Long" + bytes.fromhex("3b8be490cc8f23df020001") + b"J\0\x05value" + _PARENT
_SHORT_TEXT = 0xFFFF
# Up to so many characters that are all ASCII Kryo marks the last one instead of writing a length.
_ASCII_MOST: dict[str, int] = {"kryo3-4": 63, "kryo5": 32}
_KRYO_STRING, _KRYO_INTEGER, _KRYO_LONG = 3, 2, 9

_NO_NULL = "what serializers make of null is not covered"
_NO_BYTES = "how byte arrays are serialised is not covered"


def _units(text: str) -> list[int]:
    raw = text.encode("utf-16-le", "surrogatepass")
    return [raw[at] | raw[at + 1] << 8 for at in range(0, len(raw), 2)]


def _by_unit(units: Sequence[int], zero: bytes) -> bytes:
    """Write each UTF-16 code unit in one to three bytes."""
    return b"".join(zero if unit == 0 else chr(unit).encode("utf-8", "surrogatepass") for unit in units)


def _java(value: Value) -> bytes:
    if isinstance(value, str):
        text = _by_unit(_units(value), b"\xc0\x80")
        if len(text) <= _SHORT_TEXT:
            return _STREAM + b"t" + len(text).to_bytes(2, "big") + text
        return _STREAM + b"|" + len(text).to_bytes(8, "big") + text
    assert isinstance(value, int)
    wide = not isinstance(value, Int)
    return (_LONG if wide else _INTEGER) + value.to_bytes(8 if wide else 4, "big", signed=True)


def _varint(value: int, most: int) -> bytes:
    """Write 7 bits a byte, the lowest first; the last of `most` bytes holds all that is left."""
    found = b""
    while value > 127 and len(found) < most - 1:
        found += bytes([value & 127 | 128])
        value >>= 7
    return found + bytes([value])


def _kryo(value: Value, ascii_most: int) -> bytes:
    if not isinstance(value, str):
        assert isinstance(value, int)
        zigzag = value * 2 if value >= 0 else -2 * value - 1
        if isinstance(value, Int):
            return bytes([_KRYO_INTEGER]) + _varint(zigzag, 5)
        return bytes([_KRYO_LONG]) + _varint(zigzag, 9)
    units = _units(value)
    head = bytes([_KRYO_STRING])
    if 1 < len(units) <= ascii_most and max(units) < 128:
        return head + bytes(units[:-1]) + bytes([units[-1] | 128])
    length = len(units) + 1
    if length < 64:
        head += bytes([128 | length])
    else:
        head += bytes([192 | length & 63]) + _varint(length >> 6, 4)
    return head + _by_unit(units, b"\0")


def serialized(value: Value, serializer: Serializer = "java") -> bytes:
    """Return the bytes of a field as a serializer writes them.

    java is JavaSerializer, Heron's default; kryo3-4 and kryo5 are KryoSerializer with that version of Kryo (Heron
    0.20.0 has 3.0.3, later sources 5.4.0), which differ for ASCII texts of 33 to 63 characters. DataError for null,
    UsageError for bytes.
    """
    if value is None:
        raise DataError(f"Heron's fields grouping has no rule for a null key: {_NO_NULL}", "drop null keys")
    if isinstance(value, bytes):
        raise UsageError(f"Heron's fields grouping has no rule for bytes: {_NO_BYTES}", "give a string or a number")
    _check(serializer)
    return _java(value) if serializer == "java" else _kryo(value, _ASCII_MOST[serializer])


def _check(serializer: str) -> None:
    if serializer not in get_args(Serializer):
        raise UsageError(f"serializer={serializer!r}: must be {', '.join(get_args(Serializer))}")


def _std_hash(data: bytes) -> int:
    found = _SEED ^ len(data) * _FACTOR & _64_BITS
    whole = len(data) // 8 * 8
    for at in range(0, whole, 8):
        block = int.from_bytes(data[at : at + 8], "little") * _FACTOR & _64_BITS
        found = (found ^ (block ^ block >> 47) * _FACTOR & _64_BITS) * _FACTOR & _64_BITS
    if len(data) > whole:
        found = (found ^ int.from_bytes(data[whole:], "little")) * _FACTOR & _64_BITS
    found = (found ^ found >> 47) * _FACTOR & _64_BITS
    return found ^ found >> 47


def fields_task(key: Value | Sequence[Value], n: int, serializer: Serializer = "java") -> int:
    """Return the task of a fields grouping, 0..n-1; a tuple stands for several fields, whose order does not matter.

    The sum is a signed 32-bit number: from four fields on it may overflow, and is widened with its sign. For what is
    not covered see `serialized`; topologies in Python, whose keys are pickled, are not either.
    """
    check_workers(n)
    total = sum(_std_hash(serialized(field, serializer)) % _PRIME for field in fields_of(key))
    wrapped = (total + (1 << 31)) % (1 << 32) - (1 << 31)
    return (wrapped & _64_BITS) % n


def fields_tasks_all(keys: Keys, n: int, serializer: Serializer = "java") -> NDArray[np.uint16]:
    """Return `fields_task` of every key, each one field: uint16[K]."""
    check_workers(n)
    _check(serializer)
    if keys.parts:
        return keys.each(lambda key: fields_task(key, n, serializer))
    keys.refuse_null("Heron's fields grouping")
    keys.refuse_kinds("Heron's fields grouping", ["bytes"], _NO_BYTES)
    found = np.empty(keys.count, dtype=np.uint16)
    if keys.kind == "string":
        if serializer == "java":
            _java_texts(keys.data, keys.start, np.uint64(n), found)
        else:
            _kryo_texts(keys.data, keys.start, np.int64(_ASCII_MOST[serializer]), np.uint64(n), found)
    elif serializer == "java":
        wide = keys.kind == "long"
        prefix = np.frombuffer(_LONG if wide else _INTEGER, dtype=np.uint8)
        _java_numbers(keys.number, prefix, 8 if wide else 4, np.uint64(n), found)
    else:
        _kryo_numbers(keys.number, keys.kind == "long", np.uint64(n), found)
    return found


@njit
def _task(data: Any, end: Any, n: Any) -> Any:
    """Return the task by data[:end]."""
    factor = np.uint64(_FACTOR)
    found = np.uint64(_SEED) ^ (np.uint64(end) * factor)
    at = 0
    while at + 8 <= end:
        block = np.uint64(0)
        for place in range(8):
            block |= np.uint64(data[at + place]) << np.uint64(8 * place)
        block *= factor
        found = (found ^ ((block ^ (block >> np.uint64(47))) * factor)) * factor
        at += 8
    if at < end:
        block = np.uint64(0)
        for place in range(end - at):
            block |= np.uint64(data[at + place]) << np.uint64(8 * place)
        found = (found ^ block) * factor
    found = (found ^ (found >> np.uint64(47))) * factor
    found ^= found >> np.uint64(47)
    return (found % np.uint64(_PRIME)) % n


@njit
def _write_unit(out: Any, at: Any, unit: Any) -> Any:
    """Write a half of a surrogate pair in three bytes; give the place behind it."""
    out[at] = 0xE0 | (unit >> 12)
    out[at + 1] = 0x80 | ((unit >> 6) & 0x3F)
    out[at + 2] = 0x80 | (unit & 0x3F)
    return at + 3


@njit
def _write_text(data: Any, begin: Any, end: Any, out: Any, at: Any, wide_zero: Any) -> Any:
    """Write UTF-8 by UTF-16 code units; give the place behind it."""
    while begin < end:
        lead = np.int64(data[begin])
        if lead >= 0xF0:
            point = ((lead & 7) << 18) | ((np.int64(data[begin + 1]) & 0x3F) << 12)
            point |= ((np.int64(data[begin + 2]) & 0x3F) << 6) | (np.int64(data[begin + 3]) & 0x3F)
            point -= 0x10000
            at = _write_unit(out, at, 0xD800 + (point >> 10))
            at = _write_unit(out, at, 0xDC00 + (point & 0x3FF))
            begin += 4
            continue
        if lead == 0 and wide_zero:
            out[at] = 0xC0
            out[at + 1] = 0x80
            at += 2
        else:
            out[at] = lead
            at += 1
        begin += 1
    return at


@njit
def _longest(start: Any) -> Any:
    most = 0
    for key in range(start.shape[0] - 1):
        most = max(most, start[key + 1] - start[key])
    return most


@compiled
def _java_texts(data: Any, start: Any, n: Any, found: Any) -> None:
    # A zero takes two bytes, and nothing more than twice its UTF-8.
    room = 13
    out = np.empty(room + 2 * _longest(start), dtype=np.uint8)
    for key in range(found.shape[0]):
        length = 0
        for at in range(start[key], start[key + 1]):
            byte = data[at]
            length += 2 if byte == 0 else 3 if byte >= 0xF0 else 1
        out[0], out[1], out[2], out[3] = 0xAC, 0xED, 0, 5
        long = length > _SHORT_TEXT
        size = 8 if long else 2
        out[4] = 0x7C if long else 0x74
        for place in range(size):
            out[5 + place] = (length >> (8 * (size - 1 - place))) & 0xFF
        end = _write_text(data, start[key], start[key + 1], out, 5 + size, True)
        found[key] = _task(out, end, n)


@njit
def _write_varint(out: Any, at: Any, value: Any, most: Any) -> Any:
    for _ in range(most - 1):
        if value <= np.uint64(127):
            break
        out[at] = np.uint8(value & np.uint64(127)) | np.uint8(128)
        value >>= np.uint64(7)
        at += 1
    out[at] = np.uint8(value)
    return at + 1


@compiled
def _kryo_texts(data: Any, start: Any, ascii_most: Any, n: Any, found: Any) -> None:
    room = 6
    out = np.empty(room + 2 * _longest(start), dtype=np.uint8)
    out[0] = _KRYO_STRING
    for key in range(found.shape[0]):
        units = 0
        plain = True
        for at in range(start[key], start[key + 1]):
            byte = data[at]
            # Bytes that go on with a character count nothing, and one beyond the basic plane is two units.
            units += 0 if 0x80 <= byte < 0xC0 else 2 if byte >= 0xF0 else 1
            plain &= byte < 0x80
        if plain and 1 < units <= ascii_most:
            for place in range(units):
                out[1 + place] = data[start[key] + place]
            out[units] |= np.uint8(128)
            found[key] = _task(out, 1 + units, n)
            continue
        length = units + 1
        if length < 64:
            out[1] = 0x80 | length
            begin = 2
        else:
            out[1] = 0xC0 | (length & 63)
            begin = _write_varint(out, 2, np.uint64(length >> 6), 4)
        end = _write_text(data, start[key], start[key + 1], out, begin, False)
        found[key] = _task(out, end, n)


@compiled
def _java_numbers(number: Any, prefix: Any, size: Any, n: Any, found: Any) -> None:
    begin = prefix.shape[0]
    out = np.empty(begin + size, dtype=np.uint8)
    out[:begin] = prefix
    for key in range(found.shape[0]):
        for place in range(size):
            out[begin + place] = (number[key] >> (8 * (size - 1 - place))) & 0xFF
        found[key] = _task(out, begin + size, n)


@compiled
def _kryo_numbers(number: Any, wide: Any, n: Any, found: Any) -> None:
    out = np.empty(10, dtype=np.uint8)
    out[0] = _KRYO_LONG if wide else _KRYO_INTEGER
    for key in range(found.shape[0]):
        zigzag = np.uint64((number[key] << 1) ^ (number[key] >> 63))
        found[key] = _task(out, _write_varint(out, 1, zigzag, 9 if wide else 5), n)
