"""Parser of written times: ISO 8601, and patterns of strptime or Java.

Texts that differ only in their digits have one shape. A pattern is matched once per shape; the fields of all rows of
that shape are at the same places, so that no work is done per row outside numpy.
"""

import re
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from streamgroup.base.errors import UsageError
from streamgroup.ingest.parsing.numbers import BAD, OK, offsets_of

__all__ = ["COMPACT", "ISO", "ZONE", "LocalTimes", "compile_pattern", "read_local"]

I64 = NDArray[np.int64]

# Status of a time whose zone has a name that has no single offset.
ZONE = 5

_OFFSET = r"[+-]\d{2}(?::?\d{2})?"
_ZONE = rf"(?P<z>[Zz]|UTC|GMT|{_OFFSET})"
_NAMED = rf"(?P<Z>[A-Za-z]{{1,5}}|{_OFFSET})"
# Behind an offset: the name of the zone, as Go and java.time write it, and Go's monotonic clock.
_BEHIND = r"(?: [A-Z]{2,5}(?: m=[+-][\d.]+)?|\[[A-Za-z0-9_+/-]+\])?"
_AFTER_HOUR = (
    rf"(?::(?P<M>\d{{2}})(?::(?P<S>\d{{2}})(?:[.,](?P<f>\d+))?)?)?(?:\s?(?P<z>[Zz]|{_OFFSET}){_BEHIND}|\s?{_NAMED})?"
)
# The forms that `iso8601` reads, the common one first: calendar dates, the basic form, days of the year. With slashes,
# too, which is no ISO 8601 but has one meaning only.
ISO = (
    rf"\s*(?P<Y>\d{{4}})-(?P<m>\d{{1,2}})-(?P<d>\d{{1,2}})(?:[Tt ]\s?(?P<H>\d{{1,2}}){_AFTER_HOUR})?\s*",
    rf"\s*(?P<Y>\d{{4}})/(?P<m>\d{{1,2}})/(?P<d>\d{{1,2}})(?:[Tt ]\s?(?P<H>\d{{1,2}}){_AFTER_HOUR})?\s*",
    r"\s*(?P<Y>\d{4})(?P<m>\d{2})(?P<d>\d{2})[Tt](?P<H>\d{2})(?:(?P<M>\d{2})(?:(?P<S>\d{2})(?:[.,](?P<f>\d+))?)?)?"
    rf"{_ZONE}?\s*",
    rf"\s*(?P<Y>\d{{4}})-(?P<j>\d{{3}})(?:[Tt ]\s?(?P<H>\d{{1,2}}){_AFTER_HOUR})?\s*",
)
# Dates that are nothing but digits, all of which must be there.
_COMPACT_DAY = r"(?P<Y>\d{4})(?P<m>\d{2})(?P<d>\d{2})"
COMPACT = {
    "%Y%m%d": _COMPACT_DAY,
    "%Y%m%d%H%M": rf"{_COMPACT_DAY}(?P<H>\d{{2}})(?P<M>\d{{2}})",
    "%Y%m%d%H%M%S": rf"{_COMPACT_DAY}(?P<H>\d{{2}})(?P<M>\d{{2}})(?P<S>\d{{2}})",
    "%Y%m%d%H%M%S%f": rf"{_COMPACT_DAY}(?P<H>\d{{2}})(?P<M>\d{{2}})(?P<S>\d{{2}})(?P<f>\d{{3}})",
}
# Names of zones that mean one offset, in hours: those of RFC 5322 and of the tz database, but for those that are in use
# for several (AST, BST, CDT, CST, GST, IST, MSK, SST).
_ZONES = {
    "z": 0, "ut": 0, "utc": 0, "gmt": 0, "wet": 0, "west": 1, "cet": 1, "met": 1, "cest": 2, "mest": 2, "eet": 2,
    "eest": 3, "sast": 2, "eat": 3, "hst": -10, "akst": -9, "akdt": -8, "pst": -8, "pdt": -7, "mst": -7, "mdt": -6,
    "est": -5, "edt": -4, "adt": -3, "nst": -3.5, "ndt": -2.5, "pkt": 5, "wib": 7, "wita": 8, "hkt": 8, "awst": 8,
    "wit": 9, "jst": 9, "acst": 9.5, "acdt": 10.5, "aest": 10, "aedt": 11, "nzst": 12, "nzdt": 13,
}  # fmt: skip
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_MONTH = r"(?P<b>[A-Za-z]{3,9})\.?"
_STRPTIME = {
    "Y": r"(?P<Y>\d{4})", "y": r"(?P<y>\d{2})", "m": r"(?P<m>\d{1,2})", "d": r"\s?(?P<d>\d{1,2})",
    "e": r"\s?(?P<d>\d{1,2})", "H": r"(?P<H>\d{1,2})", "I": r"(?P<I>\d{1,2})", "M": r"(?P<M>\d{1,2})",
    "S": r"(?P<S>\d{1,2})", "f": r"(?P<f>\d+)", "L": r"(?P<L>\d{1,3})", "j": r"(?P<j>\d{1,3})",
    "p": r"(?P<p>[AaPp]\.?[Mm]\.?)",
    "b": _MONTH, "B": _MONTH, "h": _MONTH, "a": r"[A-Za-z]{3,9}", "A": r"[A-Za-z]{3,9}", "z": _ZONE, "Z": _NAMED,
    "s": r"(?P<s>\d{1,11})", "F": r"(?P<Y>\d{4})-(?P<m>\d{1,2})-(?P<d>\d{1,2})",
    "T": r"(?P<H>\d{1,2}):(?P<M>\d{1,2}):(?P<S>\d{1,2})",
    "%": "%",
}  # fmt: skip
_JAVA = {
    "y": r"(?P<Y>\d{4})", "u": r"(?P<Y>\d{4})", "M": r"(?P<m>\d{1,2})", "d": r"(?P<d>\d{1,2})",
    "H": r"(?P<H>\d{1,2})", "h": r"(?P<I>\d{1,2})", "m": r"(?P<M>\d{1,2})", "s": r"(?P<S>\d{1,2})",
    "S": r"(?P<f>\d+)", "n": r"(?P<f>\d+)", "a": r"(?P<p>[AaPp]\.?[Mm]\.?)", "D": r"(?P<j>\d{1,3})",
    "E": r"[A-Za-z]{3,9}", "X": _ZONE, "x": _ZONE, "Z": _ZONE, "z": _NAMED,
}  # fmt: skip
# Behind seconds, a fraction: a program that writes them may leave it out where it is zero.
_FRACTION = re.compile(r"(\(\?P<[Ss]>\\d\{1,\d+\}\))(\\\.|,)\(\?P<f>\\d\+\)")
# The milliseconds right behind seconds since 1970 are the last three digits.
_EPOCH_MILLIS = (r"(?P<s>\d{1,11})(?P<L>\d{1,3})", r"(?P<s>\d{1,11})(?P<L>\d{3})")
_DIGITS_ONLY = re.compile(r"(\(\?P<[YymdHIMSj]>\\d\{(\d,)?\d\}\))+")


def _strptime(pattern: str) -> str:
    pieces = []
    for literal, directive in re.findall(r"([^%]+)|%(.?)", pattern):
        if literal:
            pieces.append(re.escape(literal))
        elif directive in _STRPTIME:
            pieces.append(_STRPTIME[directive])
        else:
            raise UsageError(
                f"--time-format: %{directive} is not known", f"known: {' '.join('%' + c for c in _STRPTIME)}"
            )
    return "".join(pieces)


def _java(pattern: str) -> str:
    pieces = []
    for quoted, letters, other in _java_tokens(pattern):
        if letters:
            pieces.append(_java_field(letters))
        else:
            pieces.append(re.escape(quoted or other))
    return "".join(pieces)


def _java_tokens(pattern: str) -> list[tuple[str, str, str]]:
    found = re.finditer(r"'(?P<quoted>[^']*)'|(?P<letters>(?P<one>[A-Za-z])(?P=one)*)|(?P<other>.)", pattern)
    return [
        (
            "'" if match["quoted"] == "" else match["quoted"] or "",
            match["letters"] or "",
            match["other"] or "",
        )
        for match in found
    ]


def _java_field(letters: str) -> str:
    letter, width = letters[0], len(letters)
    if letter == "M" and width >= 3:
        return _MONTH
    if letter in "yu" and width == 2:
        return r"(?P<y>\d{2})"
    if letter not in _JAVA:
        raise UsageError(f"--time-format: the letter {letter} is not known", f"known: {' '.join(_JAVA)}")
    return _JAVA[letter]


def compile_pattern(pattern: str) -> str:
    """Turn `%Y-%m-%d %H:%M` (strptime) or `yyyy-MM-dd HH:mm` (Java, Spark) into a regular expression.

    Fields that a pattern lacks are those of 1970-01-01 00:00. A fraction may have any number of digits, and be missing
    together with the point or comma between it and the seconds. `%L` is a number of milliseconds, not a fraction. `%s`
    is seconds since 1970, `%s%L` milliseconds. UsageError for a directive that is not known or comes twice.
    """
    text = _strptime(pattern).replace(*_EPOCH_MILLIS) if "%" in pattern else _java(pattern)
    text = _FRACTION.sub(r"\1(?:\2(?P<f>\\d+))?", text)
    try:
        fields = set(re.compile(text).groupindex)
    except re.error as error:
        raise UsageError(f"--time-format {pattern!r}: {error}", "use each field once") from None
    if not fields & {"Y", "y", "H", "I", "j", "d", "S", "s"}:
        raise UsageError(
            f"--time-format {pattern!r} holds no field of a time",
            "use auto, s, ms, us, ns, iso8601, or a pattern such as '%Y-%m-%d %H:%M' or 'yyyy-MM-dd HH:mm'",
        )
    return text


class LocalTimes(NamedTuple):
    """Times as written: us since 1970 by their own clock, the offset in us that came with them, and status.

    `zoned` marks rows that carry an offset of their own.
    """

    local: I64
    offset: I64
    zoned: NDArray[np.bool_]
    status: NDArray[np.uint8]


def _digits_wide(regex: str) -> int:
    """Return how many digits a time has that is nothing but digits, or 0 for any other."""
    plain = regex.replace(r"\s?", "")
    if not _DIGITS_ONLY.fullmatch(plain):
        return 0
    return sum(map(int, re.findall(r"(\d)\}", plain)))


def _padded(data: NDArray[np.uint8], start: I64, length: int, width: int) -> tuple[NDArray[np.uint8], I64]:
    """Copy texts of one length, with zeros before them; gives the bytes and where each text begins."""
    table = np.full((len(start), width), ord("0"), np.uint8)
    table[:, width - length :] = data[start[:, None] + np.arange(length)]
    return table.ravel(), np.arange(len(start), dtype=np.int64) * width


def read_local(texts: pa.Array, regex: str, *others: str) -> LocalTimes:
    """Read a binary column of written times by regular expressions with the fields of `compile_pattern`.

    `others` are tried in turn where `regex` does not match. Where that is nothing but digits, as of `%H%M`, a number
    that is too short lacks zeros in front: 517 is 0517. Not where a year of four digits comes first: 970916 is no
    `%Y%m%d`.
    """
    rows = len(texts)
    result = LocalTimes(
        np.zeros(rows, np.int64), np.zeros(rows, np.int64), np.zeros(rows, bool), np.full(rows, BAD, np.uint8)
    )
    bounds, data = offsets_of(texts)
    start = bounds[:-1]
    digit = (data >= ord("0")) & (data <= ord("9"))
    shaped = np.where(digit, np.uint8(ord("0")), data)
    shapes = pa.Array.from_buffers(
        pa.large_binary(), rows, [None, pa.py_buffer(np.ascontiguousarray(bounds)), pa.py_buffer(shaped)]
    ).dictionary_encode()
    which = shapes.indices.to_numpy()
    compiled = [re.compile(text) for text in (regex, *others)]
    width = _digits_wide(regex)
    pads = not regex.startswith("(?P<Y>")
    order = np.argsort(which, kind="stable")
    borders = np.searchsorted(which[order], np.arange(len(shapes.dictionary) + 1))
    for number, shape in enumerate(shapes.dictionary.to_pylist()):
        members = order[borders[number] : borders[number + 1]]
        begin, source = start[members], data
        if width and len(shape) != width and not shape.strip(b"0"):
            if not pads or not 0 < len(shape) < width:
                continue
            source, begin = _padded(data, begin, len(shape), width)
            shape = b"0" * width
        try:
            text = shape.decode("ascii")
        except UnicodeDecodeError:
            continue
        match = next(filter(None, (form.fullmatch(text) for form in compiled)), None)
        if match is not None:
            _read_shape(result, members, begin, source, match)
    return result


def _read_shape(out: LocalTimes, rows: I64, start: I64, data: NDArray[np.uint8], match: re.Match[str]) -> None:
    spans = {name: match.span(name) for name in match.re.groupindex if match.group(name) is not None}

    def number(name: str, default: int) -> I64:
        if name not in spans:
            return np.full(len(rows), default, np.int64)
        return _digits(start, data, *spans[name])

    year, month, day = number("Y", 1970), number("m", 1), number("d", 1)
    if "y" in spans:
        short = number("y", 70)
        year = np.where(short < 69, 2000 + short, 1900 + short)
    if "b" in spans:
        name = match.group("b")[:3].lower()
        if name not in _MONTHS:
            return
        month = np.full(len(rows), _MONTHS.index(name) + 1, np.int64)
    hour, minute, second = number("H", 0), number("M", 0), number("S", 0)
    # A leap second is the first of the next minute; it ends an hour, or half of one in some zones.
    good = (
        (minute <= 59)
        & ((second <= 59) | ((second == 60) & (minute % 30 == 29)))
        & (hour <= 23)
        & (year >= 1)
        & (month >= 1)
        & (month <= 12)
        & (day >= 1)
    )
    if "I" in spans:
        twelve = number("I", 12)
        good &= (twelve >= 1) & (twelve <= 12)
        hour = twelve % 12 + (12 if match.groupdict().get("p", "a").lower().startswith("p") else 0)
    months = (year - 1970) * 12 + np.clip(month, 1, 12) - 1
    first = months.astype("M8[M]").astype("M8[D]").astype(np.int64)
    following = (months + 1).astype("M8[M]").astype("M8[D]").astype(np.int64)
    days = first + day - 1
    good &= days < following
    if "j" in spans:
        of_year = number("j", 1)
        start_of_year = ((year - 1970) * 12).astype("M8[M]").astype("M8[D]").astype(np.int64)
        days = start_of_year + of_year - 1
        next_year = ((year - 1969) * 12).astype("M8[M]").astype("M8[D]").astype(np.int64)
        good &= (of_year >= 1) & (days < next_year)
    micros = np.zeros(len(rows), np.int64)
    if "f" in spans:
        begin, end = spans["f"]
        end = min(end, begin + 6)
        micros = _digits(start, data, begin, end) * 10 ** (6 - (end - begin))
    if "L" in spans:
        micros = number("L", 0) * 1000
    out.local[rows] = ((days * 24 + hour) * 60 + minute) * 60_000_000 + second * 1_000_000 + micros
    out.status[rows] = np.where(good, OK, BAD)
    if "s" in spans:
        out.local[rows] = number("s", 0) * 1_000_000 + micros
        out.zoned[rows] = True
    elif "z" in spans or "Z" in spans:
        offset, fits = _offset(start, data, match, "z" if "z" in spans else "Z")
        out.offset[rows] = offset
        out.zoned[rows] = True
        out.status[rows[good & ~fits]] = ZONE if (match.groupdict().get("Z") or "").isalpha() else BAD


def _offset(start: I64, data: NDArray[np.uint8], match: re.Match[str], name: str) -> tuple[I64, NDArray[np.bool_]]:
    begin, end = match.span(name)
    text = match.group(name)
    if text[0] not in "+-":
        hours = _ZONES.get(text.lower())
        return np.full(len(start), int((hours or 0) * 3_600_000_000)), np.full(len(start), hours is not None)
    whole = _digits(start, data, begin + 1, begin + 3)
    minutes = _digits(start, data, end - 2, end) if end - begin > 3 else np.zeros(len(start), np.int64)
    offset = (whole * 60 + minutes) * 60_000_000
    return (-offset if text[0] == "-" else offset), (whole <= 23) & (minutes <= 59)


def _digits(start: I64, data: NDArray[np.uint8], begin: int, end: int) -> I64:
    value = np.zeros(len(start), np.int64)
    for column in range(begin, end):
        value = value * 10 + (data[start + column] - np.uint8(ord("0")))
    return value
