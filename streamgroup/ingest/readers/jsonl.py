"""JSON Lines: one object a line; columns are fields, or paths such as `user.name` into nested objects."""

from typing import ClassVar

import numpy as np
import pyarrow as pa

from streamgroup.base.errors import DataError
from streamgroup.ingest.parsing import fields
from streamgroup.ingest.parsing.column_list_text import NO_TIME, column_names
from streamgroup.ingest.parsing.condition_text import parse_where
from streamgroup.ingest.parsing.json_text import Fault, Fraction, decode_all, get, scalar
from streamgroup.ingest.parsing.lines import HEAD_ROWS, Block, LineReader
from streamgroup.ingest.readers.protocol import Defaults, Layout, Parsed, Reject, find_columns

__all__ = ["Reader"]

_WRONG = "key, time, cost, value or weight is of a type that cannot serve"


class Reader(LineReader):
    """JSON Lines: integers keep their digits, however many; a field that is null or missing is a null key.

    Several texts in a line are as many rows. A field that the first rows lack may come later, or in another file.
    """

    about = "one JSON object a line; nested fields by path (user.name)"
    joins: ClassVar[tuple[str, ...]] = ("time", "key")
    defaults: ClassVar = Defaults(time=("timestamp", "time", "ts"), key=("key",))

    def look(self, head: Block, path: str) -> Layout:
        """Collect the fields of the first 1,000 rows, and those asked for by name."""
        lines = fields.find_lines(head.data)
        names: dict[str, None] = {}
        wanted = self._wanted()
        for row in range(min(len(lines.start), HEAD_ROWS)):
            for record in decode_all(lines.text(head.data, row)):
                if isinstance(record, dict):
                    names.update(dict.fromkeys(record))
                    names.update(dict.fromkeys(name for name in wanted if get(record, name) is not None))
        if not names:
            array = head.data[:1].tobytes() == b"["
            hint = "an array is no JSON Lines: jq -c '.[]' makes them of it" if array else "give one object a line"
            raise DataError(f"{path}: no JSON objects in it", hint)
        absent = [name for name in wanted if name not in names]
        some = ", ".join([*names][:10]) + (", ..." if len(names) > 10 else "")
        found = (*names, *absent)
        return Layout(
            names=found,
            **find_columns(self.options, self.defaults, found, path),
            inferred=tuple(f"no field {name!r} in the first rows, which have {some}" for name in absent),
        )

    def _wanted(self) -> list[str]:
        """Return the names asked for; a number may be the place of a field."""
        opts = self.options
        asked = [opts.time if opts.time != NO_TIME else None, opts.key, opts.cost, opts.value, opts.weight]
        asked += [one.column for one in parse_where(opts.where)] if opts.where is not None else []
        parts = [part for text in asked if text for part in column_names(text)]
        return [*dict.fromkeys(part.text for part in parts if part.quoted or not part.text.isdecimal())]

    def parse(self, block: Block, layout: Layout, rows: int | None) -> Parsed:
        """Decode the lines of a block."""
        lines = fields.find_lines(block.data)
        raw = block.data.tobytes()
        keys = layout.key_parts or (layout.key,)
        numbers = (layout.time, layout.cost, layout.value, layout.weight, *layout.time_parts, *layout.where)
        wanted = {number: layout.names[number] for number in (*numbers, *keys) if number >= 0}
        columns: dict[int, list[bytes | None]] = {number: [] for number in wanted}
        kept: list[int] = []
        rejects: list[Reject] = []
        blank = done = 0
        bounds = list(zip(lines.start.tolist(), lines.end.tolist(), strict=True))
        for row, (start, end) in enumerate(bounds):
            if done == rows:
                break
            text = raw[start:end]
            records = decode_all(text)[: None if rows is None else rows - done]
            done += max(len(records), 1)
            blank += not records
            if any(not isinstance(record, dict) for record in records):
                done -= len(records) - 1
                fault = records[0] if isinstance(records[0], Fault) else "not a JSON object"
                rejects.append(Reject(row + 1, str(fault), text))
                continue
            for record in records:
                try:
                    values = {number: scalar(get(record, name)) for number, name in wanted.items()}
                    if any(isinstance(get(record, wanted[number]), Fraction) for number in keys):
                        raise TypeError
                except TypeError:
                    rejects.append(Reject(row + 1, _WRONG, text))
                    continue
                for number, value in values.items():
                    columns[number].append(value)
                kept.append(row)
        arrays = {number: pa.array(column, pa.binary()) for number, column in columns.items()}
        return Parsed(
            rows=done,
            lines=len(lines.start),
            consumed=len(block.data),
            line=np.array(kept, np.int64) + 1,
            time=layout.time_of(arrays.__getitem__, len(kept)),
            key=layout.key_of(arrays.__getitem__),
            **layout.optional_of(arrays.__getitem__),
            text=lambda entry: raw[slice(*bounds[kept[entry]])],
            rejects=rejects,
            filtered={"blank": blank} if blank else {},
        )
