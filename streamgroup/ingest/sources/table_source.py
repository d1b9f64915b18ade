"""Tables as a source: partitions of a DataFrame, without order."""

import re
from collections.abc import Iterator
from functools import partial
from typing import Any, ClassVar

import pyarrow as pa

from streamgroup.base.redaction import shown_url, without_secrets
from streamgroup.ingest.pipeline.arrow_blocks import Row
from streamgroup.ingest.pipeline.check_and_filter_rows import Contract
from streamgroup.ingest.pipeline.read_splits import blocks_of
from streamgroup.ingest.runners.protocol import Frame, Runner
from streamgroup.ingest.runners.spark_runner import SparkRunner
from streamgroup.ingest.sources.canonical_columns import Prepared
from streamgroup.ingest.sources.protocol import Source
from streamgroup.ingest.sources.table_batches import Table, batches, partition_of
from streamgroup.ingest.sources.table_options import SparkSourceOptions
from streamgroup.traces.manifest import Input

__all__ = ["TableSource"]

# Options that do not change the trace.
_NOT_IN_TRACE = {
    "paths",
    "output",
    "master",
    "remote",
    "spark_conf",
    "driver_memory",
    "overwrite",
    "dry_run",
    "max_rejects",
}
# Names of options with secret values, as in Spark's own spark.redaction.regex.
_SECRET = re.compile(
    r"(?i)secret|passw|passphrase|pwd|token|credential|\bkey\b|(api|private|account|access).?key|sasl|jaas"
)
# Of URLs and connection strings: what follows the address, and passwords before it.
_PARAMETERS = re.compile(r"[?;].*", re.DOTALL)
_LOGIN = re.compile(r"(//[^/:@]*):.*@|(:[^/:@]+)/[^/].*@")


class TableSource(Source):
    """A prepared DataFrame. Rows have no order: tuples of one time are ordered by their content."""

    ordered: ClassVar = False

    def __init__(self, prepared: Prepared, options: SparkSourceOptions) -> None:
        """Take a DataFrame of canonical columns."""
        self._prepared = prepared
        self._options = options

    @property
    def tasks(self) -> int:
        """Return 1: how many partitions Spark makes of a table is not known beforehand."""
        return 1

    def read(self, runner: Runner) -> Frame:
        """Read each partition as a split of its own."""
        assert isinstance(runner, SparkRunner)
        return runner.source(self._prepared.frame, partial(_read_partition, self._prepared.table))

    def origin(self, split: int) -> tuple[int, str]:
        """Return the name of what was loaded; its rows are counted through the partitions."""
        del split
        return 0, self._options.source

    def inputs(self, found: list[Row]) -> list[Input]:
        """Return the paths as they were given, of which nothing more is known."""
        del found
        return [Input(path=shown_url(path)) for path in self._options.paths]

    def describe(self) -> dict[str, Any]:
        """Return what was loaded, without passwords, and the parts of composite keys."""
        own = self._options.model_dump(mode="json", exclude=_NOT_IN_TRACE, exclude_defaults=True)
        if "option" in own:
            own["option"] = [_redacted(pair) for pair in own["option"]]
        for name in ("table", "sql"):
            if name in own:
                own[name] = without_secrets(own[name])
        parts = [column._asdict() for column in self._prepared.table.keys]
        return {"reader": "spark", "reader_options": own, "key_parts": parts if len(parts) > 1 else None}


def _redacted(pair: str) -> str:
    """Hide the value of an option that is a secret, and all of a URL but its address."""
    name, _, value = pair.partition("=")
    if _SECRET.search(name):
        return f"{name}=***"
    if value.startswith("jdbc:") or re.search("(?i)ur[il]$", name):
        value = _PARAMETERS.sub(lambda found: f"{found[0][0]}***", value)
        # In Oracle's form, user/password@address.
        value = _LOGIN.sub(lambda found: f"{found[1]}:***@" if found[1] else f"{found[2]}/***@", value)
    return f"{name}={without_secrets(value)}"


def _read_partition(table: Table, record_batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    first = next((batch for batch in record_batches if batch.num_rows), None)
    if first is None:
        return
    contract = Contract(table.options)

    def whole() -> Iterator[pa.RecordBatch]:
        yield first
        yield from record_batches

    yield from blocks_of(batches(whole(), table.options), contract, table.layout, partition_of(first))
