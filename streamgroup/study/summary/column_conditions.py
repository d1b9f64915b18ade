"""Conditions on the columns of a table, as in `workers>=16,grouping=pkg`; nothing is evaluated as code."""

import re
from typing import NamedTuple

import polars as pl

from streamgroup.base.errors import UsageError
from streamgroup.base.spelling_hint import suggest

__all__ = ["Condition", "grouping_is", "matches", "parse_conditions"]

_PIECE = re.compile(r"^\s*([A-Za-z_][A-Za-z0-9_]*)\s*(>=|<=|!=|==|=|>|<)\s*(.*?)\s*$", re.DOTALL)
_TRUTHS = {"true": True, "false": False}


class Condition(NamedTuple):
    """A column, how it is compared (=, !=, <, <=, >, >=) and with what; the value None stands for null."""

    column: str
    sign: str
    value: str | float | int | bool | None

    def __str__(self) -> str:
        """Write the condition as it is read."""
        value = (
            "null" if self.value is None else str(self.value).lower() if isinstance(self.value, bool) else self.value
        )
        return f"{self.column}{self.sign}{value}"


def parse_conditions(text: str, schema: pl.Schema, option: str) -> list[Condition]:
    """Read conditions with commas between them; `schema` gives the columns and `option` names the flag in errors.

    The commas within a grouping's parameters belong to it: `grouping=greedy_d:d=3,workers=8` is two conditions
    because `workers` is a column, `grouping=fish:alpha=0.2,epoch=1000` is one. So do those before numbers, as no column
    is named by one: `slowdown=1,1,2` is one condition.
    """
    pieces: list[str] = []
    for piece in text.split(","):
        match = _PIECE.match(piece)
        known = match is not None and match.group(1) in schema
        parameter = re.match(r"^\s*grouping\s*!?==?[^:]*:", pieces[-1]) if pieces else None
        if pieces and not known and (parameter or re.match(r"^\s*[0-9.]", piece)):
            pieces[-1] += f",{piece}"
        else:
            pieces.append(piece)
    return [_condition(piece, schema, option) for piece in pieces]


def _condition(piece: str, schema: pl.Schema, option: str) -> Condition:
    match = _PIECE.match(piece)
    if match is None or not match.group(3):
        raise UsageError(f"{option}: {piece!r} is not a condition", "write COLUMN>VALUE, with one of = != < <= > >=")
    column, sign, text = match.groups()
    if column not in schema:
        raise UsageError(f"{option}: there is no column {column!r}", suggest(column, schema.names()))
    value = _value(text, schema[column], f"{option}: {piece.strip()!r}")
    sign = "=" if sign == "==" else sign
    if sign not in ("=", "!=") and not (isinstance(value, int | float) and not isinstance(value, bool)):
        raise UsageError(f"{option}: {piece.strip()!r}: only numbers have an order", "compare with = or !=")
    return Condition(column, sign, value)


def _value(text: str, kind: pl.DataType, where: str) -> str | float | int | bool | None:
    if text == "null":
        return None
    if kind == pl.Boolean:
        if text.lower() not in _TRUTHS:
            raise UsageError(f"{where}: {text!r} is neither true nor false")
        return _TRUTHS[text.lower()]
    if not kind.is_numeric():
        return text
    try:
        number = float(text)
        if number != number or number in (float("inf"), float("-inf")):
            raise ValueError
        return int(text) if re.fullmatch(r"[+-]?\d{1,18}", text) else number
    except ValueError:
        raise UsageError(f"{where}: {text!r} is not a number") from None


def grouping_is(text: str) -> pl.Expr:
    """Return whether the column `grouping` is this one: its full text, or its name whatever its parameters."""
    column = pl.col("grouping")
    if ":" in text:
        return column == text
    return (column == text) | column.str.starts_with(f"{text}:")


def matches(condition: Condition) -> pl.Expr:
    """Return the condition as an expression: null where the column is null, unless it is compared with null."""
    column, sign, value = condition
    if value is None:
        return pl.col(column).is_null() if sign == "=" else pl.col(column).is_not_null()
    if column == "grouping" and isinstance(value, str):
        return grouping_is(value) if sign == "=" else ~grouping_is(value)
    left, right = pl.col(column), pl.lit(value)
    return {
        "=": left == right,
        "!=": left != right,
        "<": left < right,
        "<=": left <= right,
        ">": left > right,
        ">=": left >= right,
    }[sign]
