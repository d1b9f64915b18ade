"""Conditions on the columns of the input, as in `event=click,bytes>0`; nothing is evaluated as code."""

import re
from typing import NamedTuple

__all__ = ["ORDERS", "RowCondition", "parse_where"]

# Commas outside of quotes.
_COMMA = re.compile(r',(?=(?:[^"]*"[^"]*")*[^"]*$)')
_CONDITION = re.compile(r'\s*("(?:[^"]|"")*"|[^"=!<>]+?)\s*(>=|<=|!=|==|=|>|<)\s*("(?:[^"]|"")*"|[^"]*?)\s*', re.DOTALL)
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
# Signs that compare numbers.
ORDERS = ("<", "<=", ">", ">=")


class RowCondition(NamedTuple):
    """A column as it is written on the command line, how it is compared (=, !=, <, <=, >, >=), and with what.

    `text` None stands for null. `number` is the text as a number, None if it is none.
    """

    column: str
    sign: str
    text: bytes | None
    number: float | None


def parse_where(text: str) -> tuple[RowCondition, ...]:
    """Read conditions with commas between them; a name or value with a comma is in quotes.

    ValueError says which is wrong.
    """
    return tuple(_condition(piece) for piece in _COMMA.split(text))


def _condition(piece: str) -> RowCondition:
    match = _CONDITION.fullmatch(piece)
    if match is None or not match[3]:
        raise ValueError(f"{piece!r} is not a condition such as event=click or bytes>0")
    column, sign, value = match.groups()
    if value == "null":
        found = RowCondition(column, sign, None, None)
    else:
        plain = value[1:-1].replace('""', '"') if value.startswith('"') else value
        number = float(value) if _NUMBER.fullmatch(value) else None
        found = RowCondition(column, sign.replace("==", "="), plain.encode("utf-8", "surrogateescape"), number)
    if found.sign in ORDERS and found.number is None:
        raise ValueError(f"{piece.strip()!r}: only numbers have an order; compare with = or !=")
    return found
