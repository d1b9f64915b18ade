"""The distinct keys of a stream as packed arrays with a declared type, for the vectorised rules."""

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgroup.base.errors import DataError, UsageError
from streamgroup.engines.compile_key_functions import compiled
from streamgroup.engines.keys.typed_key_values import KINDS, Int, Long, Value, check_kind, parts_of

__all__ = ["Keys", "make_keys", "pack"]

_MOST_SHOWN = 60


class Keys(NamedTuple):
    """K keys by id.

    `kind` is string, int, long or bytes. The bytes of key i are `data[start[i]:start[i + 1]]`: `data` uint8[...],
    `start` int64[K + 1]; those of a string are valid UTF-8, those of a number its decimal text. `number` is int64[K]
    for int and long, and empty else. `null` is the id of the null key, which has no bytes, or -1. Composite keys have
    the types of their parts as their `kind`, as in `string,long`, and the bytes of a JSON array; they are read one by
    one when a rule asks for them. `source` says where keys are from.
    """

    kind: str
    data: NDArray[np.uint8]
    start: NDArray[np.int64]
    number: NDArray[np.int64]
    null: int
    source: str = ""

    @property
    def parts(self) -> tuple[str, ...]:
        """The types of the parts of composite keys; empty for keys of one value."""
        return parts_of(self.kind)

    @property
    def count(self) -> int:  # type: ignore[override]
        """How many keys there are."""
        return len(self.start) - 1

    def raw(self, key: int) -> bytes:
        """Return the bytes of a key."""
        return self.data[self.start[key] : self.start[key + 1]].tobytes()

    def value(self, key: int) -> Value | tuple[Value, ...]:
        """Return a key as the value that the scalar rules take, a composite one as a tuple of its parts.

        DataError for a key that is not composed of its parts.
        """
        if self.parts:
            return (None,) * len(self.parts) if key == self.null else self._composite(self.raw(key))
        if key == self.null:
            return None
        if self.kind == "string":
            return self.raw(key).decode()
        if self.kind == "bytes":
            return self.raw(key)
        return (Int if self.kind == "int" else Long)(int(self.number[key]))

    def _composite(self, raw: bytes) -> tuple[Value, ...]:
        try:
            parts = json.loads(raw)
            assert isinstance(parts, list)
            return tuple(_READERS[kind](part) for kind, part in zip(self.parts, parts, strict=True))
        except (ValueError, AssertionError, RecursionError, UsageError):
            raise DataError(
                f"{f'{self.source}: ' if self.source else ''}key {_shown(raw)} is not composed of {self.kind}",
                'such a key is a JSON array of its parts, as ["de",42]',
            ) from None

    def each(self, rule: Callable[[Any], Any]) -> NDArray[np.uint16]:
        """Apply a scalar rule to every key, one by one: uint16[K], or [K, d] where it gives d places."""
        found = [rule(self.value(key)) for key in range(self.count)]
        return np.array(found, dtype=np.uint16)

    def refuse_composite(self, engine: str) -> None:
        """Raise UsageError if the keys are composite, for an engine whose rule takes one value."""
        if self.parts:
            raise UsageError(
                f"{engine} looks at one value, and the keys are composite: {self.kind}",
                "make the trace with one --key: the text that the engine has",
            )

    def refuse_null(self, engine: str) -> None:
        """Raise DataError if there is a null key, for an engine that throws on it."""
        if self.null >= 0:
            raise DataError(f"{engine} refuses a null key, and the trace has one", "ingest it with --null-keys drop")

    def refuse_kinds(self, engine: str, kinds: Sequence[str], why: str) -> None:
        """Raise UsageError if the keys are of one of these kinds."""
        if self.kind in kinds:
            others = " or ".join(kind for kind in KINDS if kind not in kinds)
            raise UsageError(f"{engine} has no rule for keys of type {self.kind}: {why}", f"take --key-type {others}")


def make_keys(
    kind: str,
    data: NDArray[np.uint8],
    start: NDArray[np.int64],
    null: int = -1,
    source: str = "",
) -> Keys:
    """Check and parse packed keys: `data` uint8[...], `start` int64[K + 1] from 0, `null` the id of the null key or -1.

    UsageError for an unknown kind; DataError, naming the key, where a string is not UTF-8, or a number is not
    decimal (a sign and digits) or does not fit its width; composite keys are looked at later, by `Keys.value`.
    """
    check_kind(kind)
    # Read-only arrays are another type to the compiler: all are.
    data = np.ascontiguousarray(data, dtype=np.uint8).view()
    start = np.ascontiguousarray(start, dtype=np.int64).view()
    data.flags.writeable = start.flags.writeable = False
    number = np.empty(0, dtype=np.int64)
    wrong = -1
    if kind in ("int", "long"):
        number = np.zeros(len(start) - 1, dtype=np.int64)
        bits = 32 if kind == "int" else 64
        wrong = int(_parse(data, start, null, np.uint64(1 << (bits - 1)), number))
    elif kind == "string":
        wrong = int(_first_not_utf8(data, start))
    number.flags.writeable = False
    keys = Keys(kind, data, start, number, null, source)
    if wrong >= 0:
        at = f"{source}: " if source else ""
        raise DataError(f"{at}key {_shown(keys.raw(wrong))} {_fault(kind)}", _HINTS[kind])
    return keys


def pack(values: Iterable[bytes | None]) -> tuple[NDArray[np.uint8], NDArray[np.int64], int]:
    """Pack the bytes of keys as `make_keys` takes them: data, start, and the id of the (last) null key or -1."""
    listed = list(values)
    start = np.zeros(len(listed) + 1, dtype=np.int64)
    np.cumsum([len(value or b"") for value in listed], out=start[1:])
    null = max((at for at, value in enumerate(listed) if value is None), default=-1)
    return np.frombuffer(b"".join(value or b"" for value in listed), dtype=np.uint8), start, null


def _text(part: Any) -> str | None:
    if part is not None and not isinstance(part, str):
        raise ValueError
    return part


def _boolean(part: Any) -> Any:
    if part is not None and not isinstance(part, bool):
        raise ValueError
    return part


def _bytes(part: Any) -> bytes | None:
    text = _text(part)
    return None if text is None else text.encode()


# How the parts of a composite key, out of JSON, become values of their types; a boolean is none that a rule takes.
_READERS: dict[str, Callable[[Any], Any]] = {
    "string": _text,
    "bytes": _bytes,
    "boolean": _boolean,
    "int": lambda part: None if part is None else Int(part),
    "long": lambda part: None if part is None else Long(part),
}

_HINTS = {
    "string": "for keys that are not text: --key-type bytes",
    "int": "--key-type long holds 64 bits, --key-type string takes any text",
    "long": "--key-type string takes any text",
}


def _fault(kind: str) -> str:
    if kind == "string":
        return "is not UTF-8, so it is no string"
    return f"is no {kind}: a sign and decimal digits, within {32 if kind == 'int' else 64} bits"


def _shown(key: bytes) -> str:
    text = repr(key.decode(errors="replace"))
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."


@compiled
def _parse(data: Any, start: Any, null: Any, limit: Any, number: Any) -> Any:
    """Parse decimal texts; give the first key that is none or is not within -limit..limit-1, else -1."""
    ten = np.uint64(10)
    for key in range(start.shape[0] - 1):
        if key == null:
            continue
        at, end = start[key], start[key + 1]
        negative = at < end and data[at] == 45
        if at < end and (data[at] == 45 or data[at] == 43):
            at += 1
        if at == end:
            return key
        most = limit if negative else limit - np.uint64(1)
        value = np.uint64(0)
        for place in range(at, end):
            digit = np.uint64(data[place]) - np.uint64(48)
            if digit > np.uint64(9) or value > (most - digit) // ten:
                return key
            value = value * ten + digit
        number[key] = -np.int64(value) if negative else np.int64(value)
    return -1


@compiled
def _first_not_utf8(data: Any, start: Any) -> Any:
    """Return the first key whose bytes are not valid UTF-8, else -1."""
    for key in range(start.shape[0] - 1):
        at, end = start[key], start[key + 1]
        while at < end:
            lead = data[at]
            at += 1
            if lead < 0x80:
                continue
            if lead < 0xC2 or lead > 0xF4:
                return key
            more = 1 if lead < 0xE0 else 2 if lead < 0xF0 else 3
            if at + more > end:
                return key
            # The second byte excludes longer forms than needed, surrogates, and what is beyond U+10FFFF.
            low = 0xA0 if lead == 0xE0 else 0x90 if lead == 0xF0 else 0x80
            high = 0x9F if lead == 0xED else 0x8F if lead == 0xF4 else 0xBF
            if data[at] < low or data[at] > high:
                return key
            for place in range(at + 1, at + more):
                if data[place] < 0x80 or data[place] > 0xBF:
                    return key
            at += more
    return -1
