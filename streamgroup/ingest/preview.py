"""What an ingest would make of the head of its first input, without Spark."""

from contextlib import closing
from typing import Any, NamedTuple, cast

from streamgroup.base.errors import DataError
from streamgroup.ingest import inputs
from streamgroup.ingest.contract import Contract
from streamgroup.ingest.options import IngestOptions
from streamgroup.ingest.read import make_reader, shown
from streamgroup.ingest.readers.protocol import Layout

__all__ = ["Preview", "PreviewRow", "preview"]

ROWS = 10
# Stretches (about 8 MiB each) looked at for so many rows.
_STRETCHES = 8


class PreviewRow(NamedTuple):
    """A tuple as it would be: time in us since 1970, key (None: the null key), cost in us, value."""

    timestamp: int
    key: str | None
    cost: float | None
    value: float | None


class Preview(NamedTuple):
    """The first tuples and rejects (line, reason, text), how many rows that took, and what was found.

    `columns` names the columns of the input, `time`, `key`, `cost` and `value` those used (None: none).
    """

    path: str
    columns: list[str]
    time: str
    key: str
    cost: str | None
    value: str | None
    time_format: str
    inferred: list[str]
    tuples: list[PreviewRow]
    rejects: list[tuple[int, str, str]]
    rows_read: int
    rows_rejected: int
    filtered: dict[str, int]


def preview(options: IngestOptions) -> Preview:
    """Read the head of the first input as an ingest would; the same errors as there, but for those of Spark."""
    reader, contract = make_reader(options), Contract(options)
    files = inputs.resolve(options.inputs)
    split = inputs.plan_splits(reader, files)[0]._replace(rows=options.limit)
    layout = reader.layout(split.path)
    tuples: list[PreviewRow] = []
    rejects: list[tuple[int, str, str]] = []
    rows, rejected = 0, 0
    filtered: dict[str, int] = {}
    with closing(cast(Any, reader.batches(split, layout))) as stream:
        for number, parsed in enumerate(stream):
            found = contract.apply(parsed, layout)
            rows += parsed.rows
            rejected += len(found.rejects)
            for reason, count in found.filtered.items():
                filtered[reason] = filtered.get(reason, 0) + count
            rejects += [(reject.line, reject.reason, shown(reject.text)) for reject in found.rejects[:ROWS]]
            keys = found.key.slice(0, ROWS).to_pylist()
            for row, key in enumerate(keys):
                tuples.append(
                    PreviewRow(
                        int(found.timestamp[row]),
                        None if key is None else key.decode(errors="replace"),
                        None if found.cost is None else float(found.cost[row]),
                        None if found.value is None else float(found.value[row]),
                    )
                )
            if (len(tuples) >= ROWS and len(rejects) >= ROWS) or number + 1 >= _STRETCHES:
                break
    if not rows:
        raise DataError(f"{files[split.file].given}: no rows in it", "give a file that has some")
    return _made(files[split.file].given, layout, tuples[:ROWS], rejects[:ROWS], (rows, rejected, filtered))


def _made(
    path: str,
    layout: Layout,
    tuples: list[PreviewRow],
    rejects: list[tuple[int, str, str]],
    counts: tuple[int, int, dict[str, int]],
) -> Preview:
    def name(number: int) -> str | None:
        return layout.names[number] if number >= 0 else None

    return Preview(
        path=path,
        columns=list(layout.names),
        time=layout.names[layout.time],
        key=layout.names[layout.key],
        cost=name(layout.cost),
        value=name(layout.value),
        time_format=layout.time_format.name if layout.time_format else "",
        inferred=list(layout.inferred),
        tuples=tuples,
        rejects=rejects,
        rows_read=counts[0],
        rows_rejected=counts[1],
        filtered=counts[2],
    )
