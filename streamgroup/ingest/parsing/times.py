"""Parser of times: numbers, texts and Arrow timestamps to int64 microseconds since 1970 (UTC), with a status a row."""

import datetime as dt
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from streamgroup.base.errors import UsageError
from streamgroup.ingest.parsing import numbers, time_patterns
from streamgroup.traces.timestamps import to_micros

__all__ = [
    "FAR_FROM_1970",
    "KNOWN",
    "NUMERIC",
    "REASONS",
    "TimeFormat",
    "find_zone",
    "guess_format",
    "iso",
    "parse_times",
    "resolve_format",
]

I64 = NDArray[np.int64]

# Units of numbers, by the decimal exponent that makes microseconds of them.
NUMERIC = {"s": 6, "ms": 3, "us": 0, "ns": -3, "filetime": -1}
# Upper bounds of the median absolute value of the first rows, for `auto`.
_AUTO = ((10**11, "s"), (10**14, "ms"), (10**17, "us"))
# 1601-01-01, where FILETIME begins, in us since 1970; and the values from 1970 to 2099, which as ns would be of 1973.
_1601 = -11_644_473_600_000_000
_FILETIME = (116_444_736_000_000_000, 157_469_184_000_000_000)
# 1900-01-01 and 2201-01-01 in us: a unit that was guessed puts no good time outside.
FAR_FROM_1970 = (-2_208_988_800_000_000, 7_289_654_400_000_000)
# Dates written as numbers, by their digits; `auto` takes the numbers of most rows for dates if they can be.
_DAY_DIGITS = r"(?:19|20|21)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])"
_HOUR_DIGITS = r"(?:[01]\d|2[0-3])[0-5]\d"
_COMPACT = (
    ("%Y%m%d%H%M%S", rf"^{_DAY_DIGITS}{_HOUR_DIGITS}[0-5]\d$"),
    ("%Y%m%d", rf"^{_DAY_DIGITS}$"),
    ("%Y%m%d%H%M%S%f", rf"^{_DAY_DIGITS}{_HOUR_DIGITS}[0-5]\d\d\d\d$"),
    ("%Y%m%d%H%M", rf"^{_DAY_DIGITS}{_HOUR_DIGITS}$"),
)

# Reasons by status; 0 is a good time.
REASONS = {
    numbers.BAD: "time cannot be read",
    numbers.RANGE: "time out of range",
    3: "time is -1 (none)",
    4: "time does not exist in the time zone",
    time_patterns.ZONE: "time zone name is not known or has several meanings",
    6: "time before 1900 or after 2200, unlike the others",
    7: "time is 2^63-1 (none)",
    8: "time is -2^63 (none)",
}
_MINUS_ONE, _GAP, _FAR, _MAXIMUM, _MINIMUM = 3, 4, 6, 7, 8
_INT64_MAX = 2**63 - 1
_DATE = r"^\s*(\d{4}[-/]|\d{8}[Tt])"
_HOUR = 3_600_000_000
_EPOCH = dt.datetime(1970, 1, 1)
# Naive times that datetime can hold with room for any offset.
_FIRST = -62_135_510_400_000_000
_LAST = 253_402_214_400_000_000


class TimeFormat(NamedTuple):
    """How the times of one input are written: its name, a decimal exponent (numbers) or regular expressions (texts).

    `others` are tried on texts that `regex` does not match. `origin` is where numbers count from, in us since 1970.
    `bounded`: the unit is a guess, and a time before 1900 or after 2200 is none.
    """

    name: str
    exponent: int | None
    regex: str = ""
    others: tuple[str, ...] = ()
    origin: int = 0
    bounded: bool = False


# Times of columns with a timestamp type.
KNOWN = TimeFormat("timestamps", None)
_ISO = TimeFormat("iso8601", None, time_patterns.ISO[0], time_patterns.ISO[1:])


def iso(timestamp: int) -> str:
    """Write us since 1970 as ISO 8601 in UTC, any year; a fraction only where there is one."""
    text = str(np.datetime64(timestamp, "us"))
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text}Z"


def find_zone(name: str) -> ZoneInfo:
    """Look up a time zone; UsageError when there is none of that name."""
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise UsageError(f"--timezone: {name!r} is not known", "use a name such as Europe/Berlin or UTC") from None


def resolve_format(name: str) -> TimeFormat | None:
    """Resolve `--time-format`: None for auto, to be decided per input by `guess_format`."""
    if name == "auto":
        return None
    if name in NUMERIC:
        return TimeFormat(name, NUMERIC[name], origin=_1601 if name == "filetime" else 0)
    return _ISO if name == "iso8601" else TimeFormat(name, None, time_patterns.compile_pattern(name))


def guess_format(first: pa.Array, *, numeric: bool = False) -> TimeFormat:
    """Decide `auto` from the first 1,000 times of an input (binary texts): numbers by size, else iso8601.

    Only numbers and texts that begin as a date does have a say, not `NA`, and the numbers win a tie; `numeric`: the
    column holds nothing but numbers. The median absolute value decides, so that a sentinel does not; -1, 2^63-1 and
    numbers beyond 64 bits, times in no unit, do not count. Numbers that read as dates, as 20240131, are dates.
    """
    present = first.filter(pc.fill_null(pc.greater(pc.binary_length(first), 0), False))
    values, status = numbers.to_fixed(present, 0)
    found = int((status != numbers.BAD).sum())
    dates = pc.sum(pc.match_substring_regex(present, _DATE)).as_py() or 0
    if not numeric and len(present) and (not found or found < dates):
        return _ISO
    counted = (status == numbers.OK) & (values != -1) & (np.abs(values) < _INT64_MAX) & (values != ~_INT64_MAX)
    values = values[counted]
    if not len(values):
        return _number_format("s")
    for pattern, regex in _COMPACT:
        # 0 is no date, whatever the others are.
        if 2 * (pc.sum(pc.match_substring_regex(present, regex)).as_py() or 0) > np.count_nonzero(values):
            return TimeFormat(pattern, None, time_patterns.COMPACT[pattern])
    median = float(np.median(np.abs(values)))
    unit = next((unit for bound, unit in _AUTO if median < bound), "ns")
    if unit == "ns" and _FILETIME[0] <= median < _FILETIME[1]:
        unit = "filetime"
    form = _number_format(unit)
    typical = float(np.median(values)) * 10.0 ** NUMERIC[unit] + form.origin
    return form._replace(bounded=FAR_FROM_1970[0] <= typical < FAR_FROM_1970[1])


def _number_format(unit: str) -> TimeFormat:
    form = resolve_format(unit)
    assert form is not None
    return form


def parse_times(column: pa.Array, form: TimeFormat, zone: ZoneInfo) -> tuple[I64, NDArray[np.uint8]]:
    """Read a column of times as us since 1970 UTC, and per row 0 or a key of REASONS.

    `column` is binary texts or an arrow timestamp or date. Times without an offset are in `zone`; of an
    ambiguous one (clocks set back) the earlier instant is taken, one that does not exist (clocks set forward)
    is refused.
    """
    if pa.types.is_timestamp(column.type) or pa.types.is_date(column.type):
        return _from_arrow(column, zone)
    if form.exponent is not None:
        return _from_numbers(column, form.exponent, form)
    read = time_patterns.read_local(column, form.regex, *form.others)
    status = read.status.copy()
    values = read.local - read.offset
    naive = np.flatnonzero((status == numbers.OK) & ~read.zoned)
    values[naive], status[naive] = _to_utc(read.local[naive], zone)
    return values, status


def _from_numbers(column: pa.Array, exponent: int, form: TimeFormat) -> tuple[I64, NDArray[np.uint8]]:
    values, status = numbers.to_fixed(column, exponent)
    # In many data sets -1 means "no time", not the last second of 1969.
    minus = status == numbers.OK
    minus &= values == (-(10**exponent) if exponent >= 0 else -1)
    if minus.any():
        rows = np.flatnonzero(minus)
        texts = column.take(pa.array(rows)).to_pylist()
        status[rows[[float(text) == -1 for text in texts]]] = _MINUS_ONE
    if exponent <= 0:
        _mark_sentinels(values, status, _INT64_MAX // 10**-exponent)
    if form.origin:
        status[(status == numbers.OK) & (values < -_INT64_MAX - form.origin)] = numbers.RANGE
        values = np.where(status == numbers.OK, values, -form.origin) + form.origin
    if form.bounded:
        low, high = FAR_FROM_1970
        status[(status == numbers.OK) & ((values < low) | (values >= high))] = _FAR
    return values, status


def _mark_sentinels(values: I64, status: NDArray[np.uint8], most: int) -> None:
    """Mark the largest and the smallest 64-bit number, which mean "never" and "not a time"."""
    status[(status == numbers.OK) & (values == most)] = _MAXIMUM
    status[(status == numbers.OK) & (values == ~most)] = _MINIMUM


def _from_arrow(column: pa.Array, zone: ZoneInfo) -> tuple[I64, NDArray[np.uint8]]:
    status = np.where(column.is_valid().to_numpy(zero_copy_only=False), numbers.OK, numbers.BAD).astype(np.uint8)
    if pa.types.is_date(column.type):
        column = column.cast(pa.timestamp("s" if pa.types.is_date32(column.type) else "ms"))
    values, misfit = to_micros(pc.fill_null(column.cast(pa.int64()), 0).to_numpy(), column.type.unit)
    status[misfit] = numbers.RANGE
    if column.type.unit in ("us", "ns"):
        _mark_sentinels(values, status, _INT64_MAX // (1 if column.type.unit == "us" else 1000))
    if column.type.tz is None:
        good = np.flatnonzero(status == numbers.OK)
        values = values.copy()
        values[good], status[good] = _to_utc(values[good], zone)
    return values, status


def _to_utc(local: I64, zone: ZoneInfo) -> tuple[I64, NDArray[np.uint8]]:
    """Convert local times to UTC. Offsets are looked up per hour, per row in hours with a change."""
    status = np.zeros(len(local), np.uint8)
    if zone.key in ("UTC", "Etc/UTC", "GMT") or not len(local):
        return local, status
    inside = (local >= _FIRST) & (local < _LAST)
    status[~inside] = numbers.RANGE
    hours, which = np.unique(np.floor_divide(np.where(inside, local, 0), _HOUR), return_inverse=True)
    offsets = np.zeros(len(hours), np.int64)
    uneven = np.zeros(len(hours), bool)
    for number, hour in enumerate(hours.tolist()):
        found = {_offset(moment, fold, zone) for moment in (hour * _HOUR, (hour + 1) * _HOUR - 1) for fold in (0, 1)}
        offsets[number] = min(found)
        uneven[number] = len(found) > 1
    result = local - offsets[which]
    for row in np.flatnonzero(uneven[which] & inside).tolist():
        moment = int(local[row])
        result[row] = moment - _offset(moment, 0, zone)
        back = (_EPOCH + dt.timedelta(microseconds=int(result[row]))).replace(tzinfo=dt.UTC).astimezone(zone)
        if back.replace(tzinfo=None) - _EPOCH != dt.timedelta(microseconds=moment):
            status[row] = _GAP
    return result, status


def _offset(local: int, fold: int, zone: Any) -> int:
    moment = (_EPOCH + dt.timedelta(microseconds=local)).replace(tzinfo=zone, fold=fold)
    offset = moment.utcoffset() or dt.timedelta(0)
    return offset // dt.timedelta(microseconds=1)
