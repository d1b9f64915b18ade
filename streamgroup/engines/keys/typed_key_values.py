"""Key values with the types that engines distinguish: a string "42", an int 42 and a long 42 are three keys."""

from collections.abc import Sequence
from typing import Any

from streamgroup.base.errors import UsageError

__all__ = [
    "KINDS",
    "PART_KINDS",
    "Int",
    "Long",
    "Value",
    "check_choice",
    "check_kind",
    "check_value",
    "check_workers",
    "fields_of",
    "java_utf8",
    "kind_of",
    "parts_of",
]

# The types that the keys of a trace may be declared to have.
KINDS = ("string", "int", "long", "bytes")
# Those of the parts of a composite key, whose type is theirs with commas between.
PART_KINDS = (*KINDS, "boolean")


class _Sized(int):
    """A whole number of a fixed width, two's complement."""

    bits = 0

    def __new__(cls, value: int) -> "_Sized":
        """Check the range; UsageError outside of it."""
        if isinstance(value, (bool, float)) or not isinstance(value, int):
            raise UsageError(f"{cls.__name__}({value!r}): not a whole number", f"give an int: {cls.__name__}(42)")
        if not -(1 << (cls.bits - 1)) <= value < 1 << (cls.bits - 1):
            raise UsageError(f"{cls.__name__}({value}): does not fit {cls.bits} bits", "a Long holds 64 bits")
        return super().__new__(cls, value)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({int(self)})"


class Int(_Sized):
    """A 32-bit integer, -2^31 to 2^31 - 1: Java's int and Integer."""

    bits = 32


class Long(_Sized):
    """A 64-bit integer, -2^63 to 2^63 - 1: Java's long and Long."""

    bits = 64


Value = str | bytes | Int | Long | None


def check_value(value: Any) -> Value:
    """Return the value if it is a key value; UsageError for a plain int, and for types whose rule is not covered."""
    if value is None or isinstance(value, (str, bytes, Int, Long)):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        raise UsageError(
            f"{value}: is it an int or a long? They go to different places", f"Int({value}), Long({value})"
        )
    raise UsageError(
        f"{value!r}: no rule is known for keys that are a {type(value).__name__}", "use str, bytes, Int, Long or None"
    )


def check_kind(kind: str) -> str:
    """Return the name of a type of keys if there is one, `string,long` for a composite key; UsageError otherwise."""
    parts = parts_of(kind)
    if kind not in KINDS and not (parts and all(part in PART_KINDS for part in parts)):
        known = f"known: {', '.join(KINDS)}; of a composite key those of its parts, as string,long"
        raise UsageError(f"--key-type {kind!r}: there is no such type of keys", known)
    return kind


def parts_of(kind: str) -> tuple[str, ...]:
    """Return the types of the parts of a composite key from their names with commas; empty for a key of one value."""
    return tuple(kind.split(",")) if "," in kind else ()


def kind_of(value: Value) -> str:
    """Name the type of a value: string, int, long, bytes or null."""
    if value is None:
        return "null"
    return {str: "string", bytes: "bytes", Int: "int", Long: "long"}[type(check_value(value))]


def fields_of(key: Value | Sequence[Value]) -> list[Value]:
    """Return the fields of a key: of a tuple or list each of them, else the key itself as the only one.

    UsageError where there is none, or one of them is not a value.
    """
    fields = list(key) if isinstance(key, (tuple, list)) else [key]
    if not fields:
        raise UsageError("a composite key without fields", "give at least one field")
    return [check_value(field) for field in fields]


def check_choice(name: str, value: str, choices: tuple[str, ...]) -> str:
    """Return the value of an option if it is one of the choices; UsageError otherwise."""
    if value not in choices:
        raise UsageError(f"{name}={value}: unknown", f"known: {', '.join(choices)}")
    return value


def check_workers(n: Any, name: str = "n") -> int:
    """Return the number of targets if it is a whole number from 1 to 65536; UsageError otherwise."""
    if isinstance(n, bool) or not isinstance(n, int) or not 1 <= n <= 1 << 16:
        raise UsageError(f"{name}={n!r}: must be a whole number from 1 to 65536")
    return n


def java_utf8(text: str) -> bytes:
    """Encode as Java's `getBytes(UTF_8)` does: half of a surrogate pair alone becomes a question mark."""
    # A pair that is written as two halves is one character, as in UTF-16.
    joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return "".join("?" if "\ud800" <= char <= "\udfff" else char for char in joined).encode()
