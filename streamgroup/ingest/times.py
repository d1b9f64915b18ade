"""Times of every form to int64 microseconds since 1970, UTC; what cannot be one gets a reason."""

import datetime as dt
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from streamgroup.base.errors import UsageError
from streamgroup.ingest import numbers, patterns
from streamgroup.traces.instants import to_micros

__all__ = ["KNOWN", "NUMERIC", "REASONS", "TimeFormat", "find_zone", "guess_format", "parse_times", "resolve_format"]

I64 = NDArray[np.int64]

NUMERIC = {"s": 6, "ms": 3, "us": 0, "ns": -3}
# Upper bounds of the largest absolute value among the first rows, for `auto`.
_AUTO = ((10**11, "s"), (10**14, "ms"), (10**17, "us"))

# Reasons by status; 0 is a good time.
REASONS = {
    numbers.BAD: "time cannot be read",
    numbers.RANGE: "time out of range",
    3: "time is -1 (none)",
    4: "time does not exist in the time zone",
}
_NONE, _GAP = 3, 4
_DATE = r"^\s*\d{4}-"
_HOUR = 3_600_000_000
_EPOCH = dt.datetime(1970, 1, 1)
# Naive times that datetime can hold with room for any offset.
_FIRST = -62_135_510_400_000_000
_LAST = 253_402_214_400_000_000


class TimeFormat(NamedTuple):
    """How the times of one input are written: its name, a decimal exponent (numbers) or a regex (texts)."""

    name: str
    exponent: int | None
    regex: str


# Of times that come as times, not as texts.
KNOWN = TimeFormat("timestamps", None, "")


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
        return TimeFormat(name, NUMERIC[name], "")
    return TimeFormat(name, None, patterns.ISO if name == "iso8601" else patterns.compile_pattern(name))


def guess_format(first: pa.Array, *, numeric: bool = False) -> TimeFormat:
    """Decide `auto` from the first 1,000 times of an input (binary texts): numbers by size, else iso8601.

    Only numbers and texts that begin as a date does have a say, not `NA`, and the numbers win a tie; `numeric`: the
    column holds nothing but numbers. Those beyond 64 bits, times in no unit, do not count for the size.
    """
    present = first.filter(pc.fill_null(pc.greater(pc.binary_length(first), 0), False))
    values, status = numbers.to_fixed(present, 0)
    found = int((status != numbers.BAD).sum())
    dates = pc.sum(pc.match_substring_regex(present, _DATE)).as_py() or 0
    if not numeric and len(present) and (not found or found < dates):
        return TimeFormat("iso8601", None, patterns.ISO)
    largest = max(map(abs, values[status == numbers.OK].tolist()), default=0)
    unit = next((unit for bound, unit in _AUTO if largest < bound), "ns")
    return TimeFormat(unit, NUMERIC[unit], "")


def parse_times(column: pa.Array, form: TimeFormat, zone: ZoneInfo) -> tuple[I64, NDArray[np.uint8]]:
    """Read a column of times as us since 1970 UTC, and per row 0 or a key of REASONS.

    `column` is binary texts or an arrow timestamp or date. Times without an offset are in `zone`; of an
    ambiguous one (clocks set back) the earlier instant is taken, one that does not exist (clocks set forward)
    is refused.
    """
    if pa.types.is_timestamp(column.type) or pa.types.is_date(column.type):
        return _from_arrow(column, zone)
    if form.exponent is not None:
        values, status = numbers.to_fixed(column, form.exponent)
        # -1 stands for "no time" in many data sets; nobody means the last second of 1969.
        minus = status == numbers.OK
        minus &= values == (-(10**form.exponent) if form.exponent >= 0 else -1)
        if minus.any():
            rows = np.flatnonzero(minus)
            texts = column.take(pa.array(rows)).to_pylist()
            status[rows[[float(text) == -1 for text in texts]]] = _NONE
        return values, status
    read = patterns.read_local(column, form.regex)
    status = read.status.copy()
    values = read.local - read.offset
    naive = np.flatnonzero((status == numbers.OK) & ~read.zoned)
    values[naive], status[naive] = _to_utc(read.local[naive], zone)
    return values, status


def _from_arrow(column: pa.Array, zone: ZoneInfo) -> tuple[I64, NDArray[np.uint8]]:
    status = np.where(column.is_valid().to_numpy(zero_copy_only=False), numbers.OK, numbers.BAD).astype(np.uint8)
    if pa.types.is_date(column.type):
        column = column.cast(pa.timestamp("s" if pa.types.is_date32(column.type) else "ms"))
    values, misfit = to_micros(pc.fill_null(column.cast(pa.int64()), 0).to_numpy(), column.type.unit)
    status[misfit] = numbers.RANGE
    if column.type.tz is None:
        good = np.flatnonzero(status == numbers.OK)
        values = values.copy()
        values[good], status[good] = _to_utc(values[good], zone)
    return values, status


def _to_utc(local: I64, zone: ZoneInfo) -> tuple[I64, NDArray[np.uint8]]:
    """Move local times to UTC. Offsets are looked up per hour; only hours with a change go row by row."""
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
