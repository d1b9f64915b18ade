"""Typed values and packed keys: what is taken, what is refused, and that packing loses nothing."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgroup.base.errors import DataError, UsageError
from streamgroup.engines.hashes.java_hash_and_random import (
    hash_code,
    hash_codes,
    random_below,
    random_start,
    string_hash,
)
from streamgroup.engines.keys.typed_key_arrays import make_keys, pack
from streamgroup.engines.keys.typed_key_values import Int, Long, check_value, fields_of, java_utf8, kind_of
from tests.engines.recorded_vectors import TEXTS, keys_of

EDGES = [0, 1, -1, 2**31 - 1, -(2**31), 2**31, 2**63 - 1, -(2**63), -2, 42]


@pytest.mark.parametrize("wrong", [1, True, 1.0, 1j, [1], object()])
def test_what_is_no_value_is_refused(wrong: object) -> None:
    with pytest.raises(UsageError):
        check_value(wrong)


@pytest.mark.parametrize(("kind", "value"), [(Int, 2**31), (Int, -(2**31) - 1), (Long, 2**63), (Long, -(2**63) - 1)])
def test_numbers_have_a_width(kind: type, value: int) -> None:
    with pytest.raises(UsageError, match="bits"):
        kind(value)
    with pytest.raises(UsageError, match="whole"):
        kind(True)


def test_kinds_and_fields() -> None:
    assert [kind_of(value) for value in ("a", b"a", Int(1), Long(1), None)] == [
        "string",
        "bytes",
        "int",
        "long",
        "null",
    ]
    assert fields_of(("a", None)) == ["a", None]
    assert fields_of("ab") == ["ab"]
    with pytest.raises(UsageError, match="without fields"):
        fields_of(())


def test_java_writes_a_question_mark_for_half_a_pair() -> None:
    assert java_utf8("a\ud83db") == b"a?b"
    assert java_utf8("\ud83d\ude00") == "😀".encode()
    assert java_utf8("é\0") == "é\0".encode()


@pytest.mark.parametrize(
    ("text", "code"),
    [("polygenelubricants", -(2**31)), ("GydZG_", -(2**31)), ("DESIGNING WORKHOUSES", -(2**31)), ("f5a5a608", 0),
     ("\0", 0), ("", 0), ("😀", 1772899), ("\ud83d\ude00", 1772899), ("\ud83d", 0xD83D)],
)  # fmt: skip
def test_string_hashes(text: str, code: int) -> None:
    assert string_hash(text) == code


def test_number_hashes() -> None:
    assert [hash_code(Long(v)) for v in (-1, -2, 42, 2**32)] == [0, 1, 42, 1]
    assert [hash_code(Int(v)) for v in (-1, 42)] == [-1, 42]
    assert hash_code(None) == 0
    assert hash_code(b"\x80") == 31 - 128


def test_random_draws_again_what_would_favour_small_numbers() -> None:
    n = (1 << 30) + 1
    again = next(seed for seed in range(100) if random_start(seed) and _first(seed) - _first(seed) % n + n - 1 >= 2**31)
    found, state = random_below(random_start(again), n)
    assert 0 <= found < n
    assert state != (random_start(again) * 0x5DEECE66D + 0xB) % 2**48


def _first(seed: int) -> int:
    return ((random_start(seed) * 0x5DEECE66D + 0xB) % 2**48) >> 17


@settings(deadline=None)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]))))
def test_strings_vectorised(texts: list[str]) -> None:
    values = [*texts, *TEXTS, "\0é😀" * 1000, None]
    keys = keys_of("string", values)
    assert [keys.value(at) for at in range(keys.count)] == values
    assert hash_codes(keys).tolist() == [hash_code(value) for value in values]


@settings(deadline=None)
@given(st.lists(st.binary()))
def test_bytes_vectorised(texts: list[bytes]) -> None:
    values = [None, *texts, b"\xff\x00\x80" * 999]
    keys = keys_of("bytes", values)
    assert [keys.value(at) for at in range(keys.count)] == values
    assert hash_codes(keys).tolist() == [hash_code(value) for value in values]


@pytest.mark.parametrize(("kind", "of", "bits"), [("int", Int, 32), ("long", Long, 64)])
def test_numbers_vectorised(kind: str, of: type, bits: int) -> None:
    @settings(deadline=None)
    @given(st.lists(st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)))
    def check(numbers: list[int]) -> None:
        values = [
            of(number)
            for number in (*numbers, *(edge for edge in EDGES if -(2 ** (bits - 1)) <= edge < 2 ** (bits - 1)))
        ]
        keys = keys_of(kind, [*values, None])
        assert [keys.value(at) for at in range(keys.count)] == [*values, None]
        assert hash_codes(keys).tolist() == [hash_code(value) for value in (*values, None)]

    check()


def test_signs_and_leading_zeros_are_taken() -> None:
    assert make_keys("int", *pack([b"007", b"+7", b"-0"])).number.tolist() == [7, 7, 0]


@pytest.mark.parametrize(
    ("kind", "key"),
    [("int", b""), ("int", b"-"), ("int", b"1.0"), ("int", b" 1"), ("int", b"2147483648"), ("int", b"-2147483649"),
     ("int", b"99999999999999999999999"), ("long", b"9223372036854775808"), ("long", b"-9223372036854775809"),
     ("long", b"18446744073709551616"), ("long", b"1x"), ("string", b"\xff")],
)  # fmt: skip
def test_what_does_not_parse_is_bad_data_by_name(kind: str, key: bytes) -> None:
    with pytest.raises(DataError) as told:
        make_keys(kind, *pack([b"1", None, key]))
    assert repr(key.decode(errors="replace")) in told.value.message
    assert told.value.exit_code == 4


def test_a_long_key_is_cut_where_it_is_told() -> None:
    with pytest.raises(DataError) as told:
        make_keys("int", *pack([b"x" * 10_000]))
    assert len(told.value.message) < 200


def test_no_such_kind() -> None:
    with pytest.raises(UsageError, match="float"):
        make_keys("float", *pack([b"1"]))


@settings(deadline=None)
@given(st.binary())
def test_utf8_is_judged_as_python_does(key: bytes) -> None:
    try:
        key.decode()
        valid = True
    except UnicodeDecodeError:
        valid = False
    try:
        make_keys("string", *pack([b"ok", key]))
        assert valid
    except DataError:
        assert not valid


@pytest.mark.parametrize(
    "key",
    [b"\xc0\x80", b"\xc1\xbf", b"\xe0\x9f\xbf", b"\xed\xa0\x80", b"\xed\xbf\xbf", b"\xf0\x8f\xbf\xbf",
     b"\xf4\x90\x80\x80", b"\xf5\x80\x80\x80", b"\x80", b"\xe2\x82", b"\xe2\x82a", b"\xf0\x9f\x98"],
)  # fmt: skip
def test_not_quite_utf8(key: bytes) -> None:
    with pytest.raises(DataError, match="UTF-8"):
        make_keys("string", *pack([key]))
