"""The dry run of `ingest spark`: the tuples that it would make of some rows of a table."""

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from streamgroup.base.errors import DataError
from streamgroup.ingest.explain_rejected_rows import reject_text
from streamgroup.ingest.pipeline.check_and_filter_rows import Contract
from streamgroup.ingest.preview import ROWS, PreviewRow, head_rows
from streamgroup.ingest.sources.canonical_columns import prepare
from streamgroup.ingest.sources.table_batches import Column, batches
from streamgroup.ingest.sources.table_options import SparkSourceOptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["TablePreview", "TableReject", "preview_table"]

# Rows of the table that are read.
_HEAD_ROWS = 1000


class TableReject(NamedTuple):
    """A rejected row: why, and the row as JSON."""

    reason: str
    text: str


class TablePreview(NamedTuple):
    """The columns of a table with their types, the expressions used, how times were read, and what some rows become."""

    source: str
    schema: list[Column]
    used: dict[str, list[str]]
    time_format: str
    tuples: list[PreviewRow]
    rejects: list[TableReject]
    rows_read: int
    rows_rejected: int
    filtered: dict[str, int]


def preview_table(frame: "DataFrame", options: SparkSourceOptions) -> TablePreview:
    """Read 1,000 rows as an ingest would, whichever Spark finds first; DataError when there are none."""
    prepared = prepare(frame, options)
    contract, table = Contract(options), prepared.table
    rows = prepared.frame.limit(_HEAD_ROWS).toArrow()
    if not rows.num_rows:
        raise DataError(f"{options.source}: no rows in it", "give a table or a --where that has some")
    tuples: list[PreviewRow] = []
    rejects: list[TableReject] = []
    rejected, filtered = 0, Counter[str]()
    for parsed in batches(rows.combine_chunks().to_batches(), options):
        found = contract.apply(parsed, table.layout)
        tuples += head_rows(found, ROWS - len(tuples))
        rejects += [
            TableReject(reject.reason, reject_text(reject.text)) for reject in found.rejects[: ROWS - len(rejects)]
        ]
        rejected += len(found.rejects)
        filtered.update(found.filtered)
    form = table.layout.time_format
    used = {"time": [options.time], "key": list(options.key)}
    used |= {name: [text] for name in ("cost", "value", "weight") if (text := getattr(options, name)) is not None}
    return TablePreview(
        source=options.source,
        schema=[Column(field.name, field.dataType.simpleString()) for field in frame.schema.fields],
        used=used,
        time_format=form.name if form else "",
        tuples=tuples,
        rejects=rejects,
        rows_read=rows.num_rows,
        rows_rejected=rejected,
        filtered=dict(filtered),
    )
