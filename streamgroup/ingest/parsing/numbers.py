"""The decimal parser: columns of texts to integers or floats, exactly."""

import re
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

__all__ = ["BAD", "OK", "RANGE", "offsets_of", "per_distinct", "to_fixed", "to_float"]

OK, BAD, RANGE = 0, 1, 2

_NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?")
_INT64 = 2**63
# Longest text that is parsed by columns of digits: sign, 18 digits, point.
_MAX_WIDTH = 24
# Numbers of so many digits fit into int64.
_SAFE_DIGITS = 18


def offsets_of(texts: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Return the offsets and bytes behind a binary array (nulls look empty); the bytes are padded by _WIDTH."""
    wide = "i8" if pa.types.is_large_binary(texts.type) or pa.types.is_large_string(texts.type) else "i4"
    _, offsets, data = texts.buffers()
    bounds = np.frombuffer(offsets, dtype=wide)[texts.offset : texts.offset + len(texts) + 1].astype(np.int64)
    first, last = (int(bounds[0]), int(bounds[-1])) if len(bounds) else (0, 0)
    body = np.frombuffer(data, dtype=np.uint8)[first:last] if data is not None else np.empty(0, np.uint8)
    return bounds - first, np.concatenate([body, np.zeros(_MAX_WIDTH, np.uint8)])


def per_distinct(texts: pa.Array, function: Any) -> list[Any]:
    """Call a function of bytes once per distinct text and give its result for every row (None for null)."""
    encoded = texts.dictionary_encode()
    results = [function(value) for value in encoded.dictionary.to_pylist()]
    return [None if i is None else results[i] for i in encoded.indices.to_pylist()]


def _parse_exactly(text: bytes | None, exponent: int) -> tuple[int, int]:
    if text is None:
        return 0, BAD
    stripped = text.strip(b" \t")
    if not _NUMBER.fullmatch(stripped):
        return 0, BAD
    sign, digits, power = Decimal(stripped.decode()).as_tuple()
    assert isinstance(power, int)
    number = int("".join(map(str, digits))) * (-1 if sign else 1)
    shift = power + exponent
    value = number * 10**shift if shift >= 0 else number // 10 ** min(-shift, 2000)
    return (value, OK) if -_INT64 <= value < _INT64 else (0, RANGE)


def to_fixed(texts: pa.Array, exponent: int) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Read decimal texts as floor(number * 10^exponent), exactly; no float is involved.

    Returns the values and per row OK, BAD (not a number, or null) or RANGE (does not fit into int64).
    """
    if exponent < 0:
        values, status = to_fixed(texts, 0)
        return np.floor_divide(values, 10**-exponent), status
    rows = len(texts)
    bounds, data = offsets_of(texts)
    start, length = bounds[:-1], np.diff(bounds)
    same_width = _parse_same_width(data, length, exponent)
    if same_width is not None and texts.null_count == 0:
        return same_width, np.zeros(rows, np.uint8)
    values = np.zeros(rows, np.int64)
    point = np.full(rows, _MAX_WIDTH, np.int64)
    digits = np.zeros(rows, np.int64)
    dropped = np.zeros(rows, bool)
    bad = length > _MAX_WIDTH
    negative = data[start] == ord("-") if rows else np.zeros(0, bool)
    for column in range(int(min(length.max(initial=0), _MAX_WIDTH))):
        live = column < length
        digit = data[np.where(live, start + column, 0)] - np.uint8(ord("0"))
        is_digit = live & (digit <= 9)
        is_point = live & (digit == 254) & (point == _MAX_WIDTH)
        bad |= live & ~is_digit & ~is_point & ~(negative & (column == 0))
        used = is_digit & (column <= point + exponent)
        values = np.where(used, values * 10 + digit, values)
        digits += used
        dropped |= is_digit & ~used & (digit != 0)
        point = np.where(is_point, column, point)
    fraction = np.where(point < _MAX_WIDTH, np.clip(length - 1 - point, 0, exponent), 0)
    values *= np.power(10, exponent - fraction, dtype=np.int64)
    # 19 digits stay below 2^64, so that one too large for int64 shows as negative.
    places = digits + exponent - fraction
    bad |= (digits == 0) | (places > 19) | ((places == 19) & (values < 0))
    values = np.where(negative, -values - dropped, values)
    status = np.zeros(rows, np.uint8)
    odd = np.flatnonzero(bad)
    if len(odd):
        exact = per_distinct(texts.take(pa.array(odd)), lambda text: _parse_exactly(text, exponent))
        for row, outcome in zip(odd.tolist(), exact, strict=True):
            values[row], status[row] = outcome or (0, BAD)
    return values, status


def _parse_same_width(data: NDArray[np.uint8], length: NDArray[np.int64], exponent: int) -> NDArray[np.int64] | None:
    """Parse texts that all have the same number of digits, and the point at the same place or none; None for others."""
    width = int(length[0]) if len(length) else 0
    if not 0 < width <= _SAFE_DIGITS or (length != width).any():
        return None
    # Digits become 0 to 9, a column a row; the point becomes 254.
    digits = (data[: width * len(length)] - np.uint8(ord("0"))).reshape(-1, width).T
    point = int(np.argmax(digits[:, 0] == 254)) if (digits[:, 0] == 254).any() else width
    fraction = max(width - 1 - point, 0)
    if (width == 1 and point == 0) or width - fraction + exponent > _SAFE_DIGITS:
        return None
    values = np.zeros(len(length), np.int64)
    for column in range(width):
        digit = np.ascontiguousarray(digits[column])
        if column == point:
            if (digit != 254).any():
                return None
        elif digit.max() > 9:
            return None
        elif column <= point + exponent:
            values *= 10
            values += digit
    values *= 10 ** (exponent - min(fraction, exponent))
    return values


def _float(text: bytes | None) -> float:
    stripped = (text or b"").strip(b" \t")
    return float(stripped) if _NUMBER.fullmatch(stripped) else float("nan")


def to_float(values: pa.Array) -> NDArray[np.float64]:
    """Read numbers (decimal texts, or a numeric column) as float64; NaN where there is none."""
    if not pa.types.is_binary(values.type):
        result: NDArray[np.float64] = pc.fill_null(values.cast(pa.float64(), safe=False), float("nan")).to_numpy()
        return result
    try:
        parsed = pc.fill_null(values.cast(pa.string()).cast(pa.float64()), float("nan"))
    except pa.ArrowInvalid:
        none = float("nan")
        return np.array([none if v is None else v for v in per_distinct(values, _float)], dtype=np.float64)
    found: NDArray[np.float64] = parsed.to_numpy()
    return found
