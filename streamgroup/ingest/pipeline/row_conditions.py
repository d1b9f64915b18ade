"""Applies the conditions of `--where` to parsed rows."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from streamgroup.ingest.parsing.columns_as_text import as_texts
from streamgroup.ingest.parsing.condition_text import ORDERS, RowCondition
from streamgroup.ingest.parsing.numbers import to_float

__all__ = ["meets"]

Mask = NDArray[np.bool_]

_COMPARE = dict(zip(ORDERS, (np.less, np.less_equal, np.greater, np.greater_equal), strict=True))


def meets(conditions: tuple[RowCondition, ...], columns: tuple[Any, ...], nulls: Any) -> Mask:
    """Mark the rows that meet all conditions; `columns` are those of the conditions, one or more, as they were parsed.

    A field that is null, empty, or one of `nulls` (binary) meets `=null` alone. `=` and `!=` compare the texts, and
    with a number also the numbers; a field that is no number has no order.
    """
    mask: Mask = np.ones(len(columns[0]), bool)
    for condition, column in zip(conditions, columns, strict=True):
        mask &= _meets(condition, _texts(column), nulls)
    return mask


def _texts(column: Any) -> Any:
    texts = as_texts(column)
    return texts if pa.types.is_binary(texts.type) else texts.cast(pa.string()).cast(pa.binary())


def _meets(condition: RowCondition, texts: Any, nulls: Any) -> Any:
    absent = texts.is_null().to_numpy(zero_copy_only=False) | _holds(pc.equal(pc.binary_length(texts), 0))
    if len(nulls):
        absent |= _holds(pc.is_in(texts, value_set=nulls))
    if condition.text is None:
        return absent if condition.sign == "=" else ~absent
    if condition.sign in _COMPARE:
        assert condition.number is not None
        with np.errstate(invalid="ignore"):
            return _COMPARE[condition.sign](to_float(texts), condition.number) & ~absent
    equal = _holds(pc.equal(texts, condition.text))
    if condition.number is not None:
        equal |= to_float(texts) == condition.number
    return (equal if condition.sign == "=" else ~equal) & ~absent


def _holds(mask: Any) -> Mask:
    return np.asarray(pc.fill_null(mask, False).to_numpy(zero_copy_only=False), dtype=bool)
