"""Output of `ingest`: the trace that it made, or the tuples of a dry run."""

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from streamgroup.base.output_formats import PEOPLE
from streamgroup.cli.console import Console

__all__ = ["print_preview", "report_trace", "report_traces"]

_FACTS = ("tuples", "keys", "p1", "rows_read", "rows_kept", "rows_rejected", "rows_filtered", "fingerprint")


def report_trace(console: Console, result: Any, begun: float) -> None:
    """Print the accounts of a finished ingest (an `IngestResult`) that began at `begun` (`time.perf_counter`)."""
    manifest, seconds = result.manifest, time.perf_counter() - begun
    console.detail(f"{manifest.rows_read} rows in {seconds:.1f} s, the start of Spark included")
    for note in result.notes:
        console.note(f"note: {note}")
    for warning in result.warnings:
        console.warn(warning)
    console.record(_facts(result))


def report_traces(console: Console, results: Iterable[Any]) -> None:
    """Print the accounts of ingests (`IngestResult`), a row each when all are finished, and their notes at once."""
    rows = []
    for result in results:
        for note in result.notes:
            console.note(f"{result.trace}: {note}")
        for warning in result.warnings:
            console.warn(f"{result.trace}: {warning}")
        rows.append(_facts(result))
    console.rows(rows)


def _facts(result: Any) -> dict[str, Any]:
    return {"trace": str(result.trace), **{name: getattr(result.manifest, name) for name in _FACTS}}


def print_preview(console: Console, found: Any, describe_reject: Callable[[Any], str], **fields: Any) -> None:
    """Print the counts and tuples of a dry run, a NamedTuple; in JSON `fields` replace those of its own."""
    console.note(
        f"of {found.rows_read} rows looked at, {found.rows_rejected} rejected, {sum(found.filtered.values())} filtered"
    )
    for reason, count in found.filtered.items():
        console.note(f"filtered: {count} {reason}")
    for reject in found.rejects:
        console.note(f"rejected: {describe_reject(reject)}")
    rows, shown = _preview_rows(console, found.tuples)
    if console.form == "json":
        rejects = [reject._asdict() for reject in found.rejects]
        console.record({**found._asdict(), **fields, "tuples": rows, "rejects": rejects})
    else:
        console.rows(rows, shown, exact=True)


def _preview_rows(console: Console, tuples: Sequence[Any]) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the tuples of a dry run (each a `PreviewRow`) as rows of a table, and its columns."""
    from streamgroup.ingest.preview import iso

    carried = [name for name in ("cost", "value", "weight") if any(getattr(row, name) is not None for row in tuples)]
    shown = ["timestamp", "key", *carried]
    rows = [{name: value for name, value in row._asdict().items() if name in shown} for row in tuples]
    rows = [{**row, "timestamp": iso(row["timestamp"])} for row in rows]
    if console.form in PEOPLE:
        # People see a null key as such, not as one of the text `-`, and every digit of what was read.
        rows = [{**row, "key": "(null)" if row["key"] is None else row["key"]} for row in rows]
    return rows, shown
