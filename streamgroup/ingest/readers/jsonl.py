"""JSON Lines: one object a line; columns are fields, or paths such as `user.name` into nested objects."""

from typing import ClassVar

import numpy as np
import pyarrow as pa

from streamgroup.base.errors import DataError
from streamgroup.ingest import fields
from streamgroup.ingest.json_text import Fault, Fraction, decode, get, scalar
from streamgroup.ingest.lines import HEAD_ROWS, Block, LineReader
from streamgroup.ingest.readers.protocol import Defaults, Layout, Parsed, Reject, find_columns

__all__ = ["Reader"]


class Reader(LineReader):
    """JSON Lines: integers keep their digits, however many; a field that is null or missing is a null key."""

    about = "one JSON object a line; nested fields by path (user.name)"
    defaults: ClassVar = Defaults(time=("timestamp", "time", "ts"), key=("key",))

    def look(self, head: Block, path: str) -> Layout:
        """Collect the fields of the first 1,000 rows."""
        lines = fields.find_lines(head.data)
        names: dict[str, None] = {}
        opts = self.options
        wanted = {name for name in (opts.time, opts.key, opts.cost, opts.value, opts.weight) if name}
        for start, end in zip(lines.start[:HEAD_ROWS].tolist(), lines.end[:HEAD_ROWS].tolist(), strict=True):
            record = decode(head.data[start:end].tobytes())
            if isinstance(record, dict):
                names.update(dict.fromkeys(record))
                names.update(dict.fromkeys(name for name in wanted if get(record, name) is not None))
        if not names:
            raise DataError(f"{path}: no JSON objects in it", "give a file with one object a line")
        found = tuple(names)
        return Layout(
            names=found,
            **find_columns(opts, self.defaults, found, path),
        )

    def parse(self, block: Block, layout: Layout, rows: int | None) -> Parsed:
        """Decode the lines of a block."""
        data = block.data
        lines = fields.find_lines(data)
        raw = data.tobytes()
        numbers = (layout.time, layout.key, layout.cost, layout.value, layout.weight)
        wanted = [layout.names[number] if number >= 0 else None for number in numbers]
        columns: list[list[bytes | None]] = [[] for _ in wanted]
        kept: list[int] = []
        rejects: list[Reject] = []
        blank = 0
        bounds = list(zip(lines.start.tolist(), lines.end.tolist(), strict=True))[:rows]
        for row, (start, end) in enumerate(bounds):
            text = raw[start:end]
            record = decode(text)
            if not isinstance(record, dict):
                if not text.strip():
                    blank += 1
                else:
                    rejects.append(
                        Reject(row + 1, str(record) if isinstance(record, Fault) else "not a JSON object", text)
                    )
                continue
            try:
                values = [scalar(get(record, name)) if name is not None else None for name in wanted]
                if wanted[1] is not None and isinstance(get(record, wanted[1]), Fraction):
                    raise TypeError
            except TypeError:
                rejects.append(Reject(row + 1, "key, time, cost, value or weight is of a type that cannot serve", text))
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
            weight=arrays[4] if layout.weight >= 0 else None,
        )
