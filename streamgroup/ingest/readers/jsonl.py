"""JSON Lines: one object a line; columns are fields, or paths such as `user.name` into nested objects."""

import json
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from streamgroup.base.errors import DataError
from streamgroup.ingest import fields
from streamgroup.ingest.lines import HEAD_ROWS, Block, LineReader
from streamgroup.ingest.readers.protocol import Defaults, Layout, Parsed, Reject, find_column

__all__ = ["Reader"]


class _Fraction(str):
    """A number with a fraction or exponent, as it was written."""

    __slots__ = ()


class _Fault(str):
    """What is wrong with a line."""

    __slots__ = ()


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


_DECODER = json.JSONDecoder(parse_int=str, parse_float=_Fraction, parse_constant=_refuse)


def _get(record: dict[str, Any], name: str) -> Any:
    if name in record:
        return record[name]
    value: Any = record
    for step in name.split("."):
        if not isinstance(value, dict):
            return None
        value = value.get(step)
    return value


def _scalar(value: Any) -> bytes | None:
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    if isinstance(value, bool):
        return b"true" if value else b"false"
    if value is None:
        return None
    raise TypeError


class Reader(LineReader):
    """JSON Lines: integers keep their digits, however many; a field that is null or missing is a null key."""

    about = "one JSON object a line; nested fields by path (user.name)"
    defaults: ClassVar = Defaults(time=("timestamp", "time", "ts"), key=("key",))

    @property
    def splittable(self) -> bool:
        """A JSON line never holds a raw line feed."""
        return True

    def look(self, head: Block, path: str) -> Layout:
        """Collect the fields of the first 1,000 rows."""
        lines = fields.find_lines(head.data)
        names: dict[str, None] = {}
        wanted = {name for name in (self.options.time, self.options.key, self.options.cost, self.options.value) if name}
        for start, end in zip(lines.start[:HEAD_ROWS].tolist(), lines.end[:HEAD_ROWS].tolist(), strict=True):
            record = _decode(head.data[start:end].tobytes())
            if isinstance(record, dict):
                names.update(dict.fromkeys(record))
                names.update(dict.fromkeys(name for name in wanted if _get(record, name) is not None))
        if not names:
            raise DataError(f"{path}: no JSON objects in it", "give a file with one object a line")
        found, opts = tuple(names), self.options
        return Layout(
            names=found,
            time=find_column(opts.time, self.defaults.time, found, "time", path),
            key=find_column(opts.key, self.defaults.key, found, "key", path),
            cost=find_column(opts.cost, (), found, "cost", path),
            value=find_column(opts.value, (), found, "value", path),
        )

    def parse(self, block: Block, layout: Layout, rows: int | None) -> Parsed:
        """Decode the lines of a block."""
        data = block.data
        lines = fields.find_lines(data)
        raw = data.tobytes()
        wanted = [layout.names[i] if i >= 0 else None for i in (layout.time, layout.key, layout.cost, layout.value)]
        columns: list[list[bytes | None]] = [[], [], [], []]
        kept: list[int] = []
        rejects: list[Reject] = []
        blank = 0
        bounds = list(zip(lines.start.tolist(), lines.end.tolist(), strict=True))[:rows]
        for row, (start, end) in enumerate(bounds):
            text = raw[start:end]
            record = _decode(text)
            if not isinstance(record, dict):
                if not text.strip():
                    blank += 1
                else:
                    rejects.append(
                        Reject(row + 1, str(record) if isinstance(record, _Fault) else "not a JSON object", text)
                    )
                continue
            try:
                values = [_scalar(_get(record, name)) if name is not None else None for name in wanted]
                if wanted[1] is not None and isinstance(_get(record, wanted[1]), _Fraction):
                    raise TypeError
            except TypeError:
                rejects.append(Reject(row + 1, "key, time, cost or value is of a type that cannot serve", text))
                continue
            for column, value in zip(columns, values, strict=True):
                column.append(value)
            kept.append(row)
        arrays = [pa.array(column, pa.binary()) for column in columns]
        return Parsed(
            rows=len(bounds),
            lines=len(lines.start),
            consumed=len(data),
            line=np.array(kept, np.int64) + 1,
            time=arrays[0],
            key=arrays[1],
            cost=arrays[2] if layout.cost >= 0 else None,
            value=arrays[3] if layout.value >= 0 else None,
            text=lambda entry: raw[slice(*bounds[kept[entry]])],
            rejects=rejects,
            filtered={"blank": blank} if blank else {},
        )


def _decode(text: bytes) -> Any:
    try:
        return _DECODER.decode(text.decode("utf-8"))
    except UnicodeDecodeError:
        return _Fault("not UTF-8")
    except (ValueError, RecursionError):
        return _Fault("not JSON")
