"""Written times: ISO 8601, and patterns in the manner of strptime or of Java, read shape by shape.

Texts that differ only in their digits have one shape. A pattern is matched once per shape, and the fields of
all rows of that shape are then cut out at the same places: no work per row outside numpy.
"""

import re
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from streamgroup.base.errors import UsageError
from streamgroup.ingest.numbers import BAD, OK, offsets_of

__all__ = ["ISO", "LocalTimes", "compile_pattern", "read_local"]

I64 = NDArray[np.int64]

ISO = (
    r"\s*(?P<Y>\d{4})-(?P<m>\d{1,2})-(?P<d>\d{1,2})"
    r"(?:[T ]\s?(?P<H>\d{1,2}):(?P<M>\d{2})(?::(?P<S>\d{2})(?:[.,](?P<f>\d+))?)?"
    r"\s?(?P<z>[Zz]|UTC|GMT|[+-]\d{2}(?::?\d{2})?)?)?\s*"
)
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_MONTH = r"(?P<b>[A-Za-z]{3,9})\.?"
_ZONE = r"(?P<z>[Zz]|UTC|GMT|[+-]\d{2}(?::?\d{2})?)"
_STRPTIME = {
    "Y": r"(?P<Y>\d{4})", "y": r"(?P<y>\d{2})", "m": r"(?P<m>\d{1,2})", "d": r"\s?(?P<d>\d{1,2})",
    "e": r"\s?(?P<d>\d{1,2})", "H": r"(?P<H>\d{1,2})", "I": r"(?P<I>\d{1,2})", "M": r"(?P<M>\d{1,2})",
    "S": r"(?P<S>\d{1,2})", "f": r"(?P<f>\d+)", "L": r"(?P<L>\d{1,3})", "j": r"(?P<j>\d{1,3})",
    "p": r"(?P<p>[AaPp]\.?[Mm]\.?)",
    "b": _MONTH, "B": _MONTH, "h": _MONTH, "a": r"[A-Za-z]{3,9}", "A": r"[A-Za-z]{3,9}", "z": _ZONE,
    "F": r"(?P<Y>\d{4})-(?P<m>\d{1,2})-(?P<d>\d{1,2})", "T": r"(?P<H>\d{1,2}):(?P<M>\d{1,2}):(?P<S>\d{1,2})",
    "%": "%",
}  # fmt: skip
_JAVA = {
    "y": r"(?P<Y>\d{4})", "u": r"(?P<Y>\d{4})", "M": r"(?P<m>\d{1,2})", "d": r"(?P<d>\d{1,2})",
    "H": r"(?P<H>\d{1,2})", "h": r"(?P<I>\d{1,2})", "m": r"(?P<M>\d{1,2})", "s": r"(?P<S>\d{1,2})",
    "S": r"(?P<f>\d+)", "n": r"(?P<f>\d+)", "a": r"(?P<p>[AaPp]\.?[Mm]\.?)", "D": r"(?P<j>\d{1,3})",
    "E": r"[A-Za-z]{3,9}", "X": _ZONE, "x": _ZONE, "Z": _ZONE, "z": _ZONE,
}  # fmt: skip
# Behind seconds, a fraction: a program that writes them may leave it out where it is zero.
_FRACTION = re.compile(r"(?<=\(\?P<S>\\d\{1,2\}\))(\\\.|,)\(\?P<f>\\d\+\)")
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
    together with the point or comma between it and the seconds. `%L` is a number of milliseconds, not a fraction.
    UsageError for a directive that is not known or comes twice.
    """
    text = _FRACTION.sub(r"(?:\1(?P<f>\\d+))?", _strptime(pattern) if "%" in pattern else _java(pattern))
    try:
        fields = set(re.compile(text).groupindex)
    except re.error as error:
        raise UsageError(f"--time-format {pattern!r}: {error}", "use each field once") from None
    if not fields & {"Y", "y", "H", "I", "j", "d", "S"}:
        raise UsageError(
            f"--time-format {pattern!r} holds no field of a time",
            "use auto, s, ms, us, ns, iso8601, or a pattern such as '%Y-%m-%d %H:%M' or 'yyyy-MM-dd HH:mm'",
        )
    return text


class LocalTimes(NamedTuple):
    """Times as written: us since 1970 by their own clock, the offset in us that came with them, and status.

    `zoned` tells which rows carry an offset of their own.
    """

    local: I64
    offset: I64
    zoned: NDArray[np.bool_]
    status: NDArray[np.uint8]


def _digits_wide(regex: str) -> int:
    """Give how many digits a time has that is nothing but digits, or 0 for any other."""
    plain = regex.replace(r"\s?", "")
    if not _DIGITS_ONLY.fullmatch(plain):
        return 0
    return sum(map(int, re.findall(r"(\d)\}", plain)))


def _padded(data: NDArray[np.uint8], start: I64, length: int, width: int) -> tuple[NDArray[np.uint8], I64]:
    """Copy texts of one length, with zeros before them; gives the bytes and where each text begins."""
    table = np.full((len(start), width), ord("0"), np.uint8)
    table[:, width - length :] = data[start[:, None] + np.arange(length)]
    return table.ravel(), np.arange(len(start), dtype=np.int64) * width


def read_local(texts: pa.Array, regex: str) -> LocalTimes:
    """Read a binary column of written times by a regular expression with the fields of `compile_pattern`.

    Where that is nothing but digits, as of `%H%M`, a number that is too short lacks zeros in front: 517 is 0517. Not
    where a year of four digits comes first: 970916 is no `%Y%m%d`.
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
    compiled = re.compile(regex)
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
            match = compiled.fullmatch(shape.decode("ascii"))
        except UnicodeDecodeError:
            continue
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
    good = (minute <= 59) & (second <= 59) & (hour <= 23) & (year >= 1) & (month >= 1) & (month <= 12) & (day >= 1)
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
    if "z" in spans:
        offset, fits = _offset(start, data, match)
        out.offset[rows] = offset
        out.zoned[rows] = True
        good &= fits
    out.status[rows] = np.where(good, OK, BAD)


def _offset(start: I64, data: NDArray[np.uint8], match: re.Match[str]) -> tuple[I64, NDArray[np.bool_]]:
    begin, end = match.span("z")
    text = match.group("z")
    if text[0] not in "+-":
        return np.zeros(len(start), np.int64), np.ones(len(start), bool)
    hours = _digits(start, data, begin + 1, begin + 3)
    minutes = _digits(start, data, end - 2, end) if end - begin > 3 else np.zeros(len(start), np.int64)
    offset = (hours * 60 + minutes) * 60_000_000
    return (-offset if text[0] == "-" else offset), (hours <= 23) & (minutes <= 59)


def _digits(start: I64, data: NDArray[np.uint8], begin: int, end: int) -> I64:
    value = np.zeros(len(start), np.int64)
    for column in range(begin, end):
        value = value * 10 + (data[start + column] - np.uint8(ord("0")))
    return value
