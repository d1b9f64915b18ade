"""Rules of engines against slow twins that share nothing with them: any keys, any number of fields, any n."""

import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

import mmh3
from hypothesis import example, given, settings
from hypothesis import strategies as st

from streamgroup.engines import flink, hazelcast, heron, spark_rdd, spark_sql, storm
from streamgroup.engines.keys.typed_key_values import Int, Long, Value
from tests.engines.recorded_vectors import TEXTS

_quick = settings(deadline=None, max_examples=60)
M32, M64 = 2**32 - 1, 2**64 - 1

_texts = st.one_of(
    st.sampled_from(TEXTS),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=80),
    st.text(st.characters(max_codepoint=127), max_size=80),
)
_ints = st.one_of(st.sampled_from([-(2**31), -1, 0, 2**31 - 1]), st.integers(-(2**31), 2**31 - 1))
_longs = st.one_of(_ints, st.integers(-(2**63), 2**63 - 1), st.sampled_from([-(2**63), 2**31, 2**63 - 1]))
_solid: Any = st.one_of(_texts, st.builds(Int, _ints), st.builds(Long, _longs))
_maybe: Any = st.one_of(_solid, st.none())
_keys = st.lists(_maybe, min_size=1, max_size=6)
_sizes = st.one_of(st.sampled_from([1, 2, 3, 64, 100, 128, 65_536]), st.integers(1, 65_536))


def _signed(value: int, bits: int = 32) -> int:
    return (value + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))


def _left(value: int, by: int) -> int:
    return (value << by | value >> (32 - by)) & M32


def _blocks(data: bytes, width: int) -> tuple[list[int], bytes]:
    """The whole blocks, the lowest byte first, and the bytes that are left."""
    whole = len(data) // width * width
    return [int.from_bytes(data[at : at + width], "little") for at in range(0, whole, width)], data[whole:]


def _units(text: str) -> list[int]:
    return [unit for (unit,) in struct.iter_unpack("<H", text.encode("utf-16-le"))]


def _polynomial(numbers: Sequence[int], start: int) -> int:
    """31^k times the start, plus 31^(k-1) times the first, ..., plus the last."""
    last = len(numbers) - 1
    return _signed(start * 31 ** (last + 1) + sum(number * 31 ** (last - at) for at, number in enumerate(numbers)))


def _java(value: Value) -> int:
    if value is None:
        return 0
    if isinstance(value, str):
        return _polynomial(_units(value), 0)
    if isinstance(value, Long):
        low, high = struct.unpack("<ii", struct.pack("<q", value))
        return int(low ^ high)
    return int(value)


def _mixed(blocks: Iterable[int], state: int) -> int:
    for block in blocks:
        once = _left(block * 0xCC9E2D51 & M32, 15) * 0x1B873593
        state = (_left((state ^ once) & M32, 13) * 5 + 0xE6546B64) & M32
    return state


def _ended(state: int, length: int) -> int:
    state = (state ^ length) & M32
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):
        state = (state ^ state >> shift) * factor & M32
    return _signed(state)


def _packed(value: Value, order: Literal["<", ">"]) -> bytes:
    """A string in UTF-8, an int in 4 bytes, a long in 8."""
    assert value is not None
    if isinstance(value, str):
        return value.encode()
    return struct.pack(order + ("q" if isinstance(value, Long) else "i"), value)


def _magnitude(value: int) -> int:
    return 0 if value == -(2**31) else abs(value)


@_quick
@given(_keys, _sizes)
def test_storm_fields(key: list[Value], n: int) -> None:
    assert storm.fields_task(key, n) == _polynomial([_java(field) for field in key], 1) % n


def _java_random(seed: int, n: int) -> Iterator[int]:
    state = (seed ^ 0x5DEECE66D) % 2**48
    while True:
        state = (state * 0x5DEECE66D + 0xB) % 2**48
        drawn = state >> 17
        if n.bit_count() == 1:
            yield n * drawn >> 31
        elif drawn - drawn % n + n - 1 < 2**31:
            yield drawn % n


@_quick
@given(_solid, st.lists(_maybe, max_size=5), _sizes, st.sampled_from(["fields", "first"]))
def test_storm_pkg(first: str | Int | Long, more: list[Value], n: int, mode: Literal["fields", "first"]) -> None:
    key = [first, *more]
    if mode == "fields":
        data = b"".join(struct.pack(">i", _java(field)) for field in key)
    else:
        data = (first if isinstance(first, str) else str(int(first))).encode()
    assert storm.pkg_tasks(key, n, "1", mode) == tuple(abs(mmh3.hash64(data, seed)[0]) % n for seed in (13, 17))
    draws = _java_random(_polynomial([_signed(byte, 8) for byte in data], 1), n)
    one, other = next(draws), next(draws)
    assert storm.pkg_tasks(key, n, "2", mode) == (one, (other + (one == other)) % n)


def _flink_subtask(hashed: int, n: int, groups: int) -> int:
    return _magnitude(mmh3.hash(struct.pack("<i", hashed), 0)) % groups * n // groups


def _flink_row(columns: list[Value]) -> bytes:
    head, fixed, tail = 0, b"", b""
    words = -(-(len(columns) + 8) // 64)
    for at, column in enumerate(columns):
        if column is None:
            head |= 1 << (at + 8)
            fixed += bytes(8)
        elif isinstance(column, str):
            data = column.encode()
            if len(data) < 8:
                fixed += data.ljust(7, b"\0") + bytes([128 + len(data)])
            else:
                fixed += struct.pack("<II", len(data), 8 * (words + len(columns)) + len(tail))
                tail += data.ljust(-(-len(data) // 8) * 8, b"\0")
        else:
            fixed += _packed(column, "<").ljust(8, b"\0")
    return head.to_bytes(8 * words, "little") + fixed + tail


@_quick
@given(st.lists(_maybe, min_size=1, max_size=70), st.integers(1, 32_768), st.integers(0, 32_767))
@example([None] * 56, 100, 28)
@example([None] * 57, 100, 28)
def test_flink(key: list[Value], n: int, more: int) -> None:
    groups = min(n + more, 32_768)
    hashed = mmh3.hash(_flink_row(key), 42)
    assert flink.row_hash(key) == hashed
    assert flink.sql_subtask(key, n, groups) == _flink_subtask(hashed, n, groups)
    # A tuple of two fields at least: one alone is no tuple.
    hashed = _polynomial([_java(field) for field in key], _java("a"))
    assert flink.keyby_subtask(["a", *key], n, groups) == _flink_subtask(hashed, n, groups)


def _spark_column(value: Value, seed: int) -> int:
    """Each byte of the rest is a block, signed."""
    if value is None:
        return seed
    data = _packed(value, "<")
    blocks, rest = _blocks(data, 4)
    return _ended(_mixed([*blocks, *(_signed(byte, 8) & M32 for byte in rest)], seed), len(data))


@_quick
@given(_keys, _sizes)
def test_spark_sql(key: list[Value], n: int) -> None:
    hashed = 42
    for column in key:
        hashed = _spark_column(column, hashed)
    assert spark_sql.spark_sql_hash(key) == hashed
    assert spark_sql.spark_sql_partition(key, n) == hashed % n


@_quick
@given(st.tuples(_maybe, _maybe), _sizes)
@example((Long(-1), Long(-(2**31) - 1)), 65_536)
def test_scala_pairs(pair: tuple[Value, Value], n: int) -> None:
    hashes = [int(e) if isinstance(e, Long) and e == _signed(e) else _java(e) for e in pair]
    state = _mixed([hashed & M32 for hashed in (_java("Tuple2"), *hashes)], 0xCAFEBABE)
    assert spark_rdd.spark_rdd_partition(pair, n) == _ended(state, 2) % n


@_quick
@given(_solid, _sizes)
def test_hazelcast(key: Value, n: int) -> None:
    data = _packed(key, ">")
    data = struct.pack(">i", len(data)) + data if isinstance(key, str) else data
    assert hazelcast.hazelcast_partition(key, n) == _magnitude(mmh3.hash(data, 0x01000193)) % n


def _cpp(data: bytes) -> int:
    """`std::hash` of libstdc++: MurmurHash2, 64 bits."""
    factor, (blocks, rest) = 0xC6A4A7935BD1E995, _blocks(data, 8)
    state = 0xC70F6907 ^ len(data) * factor & M64
    for block in blocks:
        once = block * factor & M64
        state = (state ^ (once ^ once >> 47) * factor) * factor & M64
    if rest:
        state = (state ^ int.from_bytes(rest, "little")) * factor & M64
    state = (state ^ state >> 47) * factor & M64
    return state ^ state >> 47


def _unit_by_unit(text: str) -> bytes:
    """UTF-8 of each UTF-16 unit alone."""
    return b"".join(chr(unit).encode("utf-8", "surrogatepass") for unit in _units(text))


def _sevens(number: int, most: int) -> bytes:
    """Seven bits a byte, the lowest first; the last of `most` bytes has eight."""
    out = bytearray()
    while number > 127 and len(out) < most - 1:
        out.append(128 | number & 127)
        number >>= 7
    return bytes([*out, number])


def _kryo(value: str | int, longest: int) -> bytes:
    if isinstance(value, int):
        folded = 2 * value if value >= 0 else -2 * value - 1
        return b"\x09" + _sevens(folded, 9) if isinstance(value, Long) else b"\x02" + _sevens(folded, 5)
    units = len(_units(value))
    if 2 <= units <= longest and value.isascii():
        return b"\x03" + value[:-1].encode() + bytes([128 | ord(value[-1])])
    low, more = units + 1 & 63, units + 1 >> 6
    size = bytes([192 | low]) + _sevens(more, 5) if more else bytes([128 | low])
    return b"\x03" + size + _unit_by_unit(value)


def _object_stream(value: str) -> bytes:
    written = _unit_by_unit(value).replace(b"\0", b"\xc0\x80")
    return b"\xac\xed\0\5t" + struct.pack(">H", len(written)) + written


@_quick
@given(st.lists(_solid, min_size=1, max_size=6), st.lists(_texts, min_size=1, max_size=6), _sizes)
def test_heron(key: list[str | Int | Long], words: list[str], n: int) -> None:
    for fields, serializer, written in (
        (key, "kryo3-4", [_kryo(field, 63) for field in key]),
        (key, "kryo5", [_kryo(field, 32) for field in key]),
        (words, "java", [_object_stream(word) for word in words]),
    ):
        total = _signed(sum(_cpp(data) % 633_910_111 for data in written)) & M64
        assert heron.fields_task(fields, n, serializer) == total % n  # type: ignore[arg-type]
