"""`ingest`: raw data to a trace, on Spark."""

import dataclasses
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from streamgroup.base.discover import READERS
from streamgroup.cli import sources
from streamgroup.cli.command import Formatted, utf8_path
from streamgroup.cli.console import Console
from streamgroup.cli.families import Own, family_group, flags_of

__all__ = ["Options", "group", "run"]


@dataclass(frozen=True, kw_only=True)
class Options(Formatted):
    """The flags of every reader."""

    inputs: Annotated[
        list[str],
        typer.Argument(metavar="INPUT...", help="Files or globs; .gz, .bz2, .zst, .zip too.", show_default=False),
    ]
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="TRACE", help="Trace directory to make.", show_default=False, callback=utf8_path
        ),
    ]
    time: Annotated[
        str | None, typer.Option("--time", metavar="COLUMN", help="Column of the time: a name, or a number from 1.")
    ] = None
    key: Annotated[str | None, typer.Option("--key", metavar="COLUMN", help="Column of the key.")] = None
    cost: Annotated[str | None, typer.Option("--cost", metavar="COLUMN", help="Column of the cost, in us.")] = None
    value: Annotated[str | None, typer.Option("--value", metavar="COLUMN", help="Column of the value.")] = None
    weight: Annotated[str | None, typer.Option("--weight", metavar="COLUMN", help="Column of the weight.")] = None
    time_format: Annotated[
        str, typer.Option("--time-format", metavar="FORMAT", help="auto, s, ms, us, ns, iso8601, or a pattern.")
    ] = "auto"
    timezone: Annotated[
        str | None, typer.Option("--timezone", metavar="ZONE", help="Zone of times that do not tell theirs; else UTC.")
    ] = None
    delimiter: Annotated[
        str | None, typer.Option("--delimiter", metavar="CHARACTER", help="One character, or \\t.")
    ] = None
    header: Annotated[
        bool | None, typer.Option("--header/--no-header", help="Whether the first line names the columns.")
    ] = None
    split_words: Annotated[bool, typer.Option("--split-words", help="Make a tuple of each word of the key.")] = False
    stopwords: Annotated[
        str | None,
        typer.Option("--stopwords", metavar="FILE|english", help="Words to leave out: a file, one a line, or ours."),
    ] = None
    null_keys: Annotated[
        Literal["drop", "keep", "fail"], typer.Option("--null-keys", help="What to do with rows without a key.")
    ] = "drop"
    null_values: Annotated[
        list[str], typer.Option("--null-values", metavar="TEXT,...", help="Texts that mean null, as NA,-; repeatable.")
    ] = ()  # type: ignore[assignment]
    encoding: Annotated[str, typer.Option("--encoding", metavar="NAME", help="utf-8, latin-1 or cp1252.")] = "utf-8"
    multiline: Annotated[bool, typer.Option("--multiline", help="Quoted fields may hold line breaks.")] = False
    checksum: Annotated[bool, typer.Option("--checksum/--no-checksum", help="Record the sha256 of each input.")] = True
    limit: Annotated[int | None, typer.Option("--limit", metavar="ROWS", help="Read no more input rows.")] = None
    since: Annotated[
        str | None, typer.Option("--since", metavar="TIME", help="Keep tuples from this time on (ISO or epoch).")
    ] = None
    until: Annotated[str | None, typer.Option("--until", metavar="TIME", help="Keep tuples before this time.")] = None
    head: Annotated[int | None, typer.Option("--head", metavar="TUPLES", help="Keep the first tuples only.")] = None
    sample_keys: Annotated[
        str | None, typer.Option("--sample-keys", metavar="P", help="Keep this share of the keys, as in 0.1 or 10%.")
    ] = None
    max_rejects: Annotated[
        str, typer.Option("--max-rejects", metavar="N|P%", help="Rows that may be unreadable; past it exit 4.")
    ] = "1%"
    master: Annotated[
        str | None,
        typer.Option("--master", metavar="URL", help="Spark master (default: local[*]).", show_default=False),
    ] = None
    remote: Annotated[
        str | None, typer.Option("--remote", metavar="URL", help="Spark Connect server, as sc://HOST:PORT.")
    ] = None
    spark_conf: Annotated[
        list[str], typer.Option("--spark-conf", metavar="K=V", help="A setting of Spark's; repeatable.")
    ] = ()  # type: ignore[assignment]
    driver_memory: Annotated[
        str | None,
        typer.Option(
            "--driver-memory", metavar="SIZE", help="Heap of Spark's driver (default: 2g).", show_default=False
        ),
    ] = None
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what the first rows become, without Spark; write nothing.")
    ] = False
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing trace.")] = False


def group(name: str) -> typer.Typer:
    """Make the command, with a command below it for each reader."""
    return family_group(name, READERS, "reader", run, Options, _own, sources.reader_unused)


def _own(module: str) -> Own:
    return flags_of(sources.reader_model(module))


def run(reader: str, console: Console, options: Options, own: dict[str, Any]) -> None:
    """Make a trace of raw data, on Spark. `ingest READER --help` tells the options of a reader."""
    from streamgroup.ingest.options import make_options

    values = {field.name: getattr(options, field.name) for field in dataclasses.fields(options)}
    for name in ("form", "json"):
        del values[name]
    for name in ("master", "driver_memory"):
        if values[name] is None:
            del values[name]
    asked = make_options(reader=reader, reader_options=own, **values)
    if options.dry_run:
        _preview(console, asked)
        return
    from streamgroup.ingest.run import ingest

    begun = time.perf_counter()
    with console.bar("tasks") as bar:
        result = ingest(asked, bar)
    manifest, seconds = result.manifest, time.perf_counter() - begun
    console.detail(f"{manifest.rows_read} rows in {seconds:.1f} s, the start of Spark included")
    for note in result.notes:
        console.note(f"note: {note}")
    for warning in result.warnings:
        console.warn(warning)
    names = ("tuples", "keys", "p1", "rows_read", "rows_kept", "rows_rejected", "rows_filtered", "fingerprint")
    console.record({"trace": str(result.trace), **{name: getattr(manifest, name) for name in names}})


def _preview(console: Console, options: Any) -> None:
    from streamgroup.ingest.preview import iso, preview

    found = preview(options)
    console.note(f"{found.path}: columns {', '.join(found.columns)}")
    console.note(
        f"compression: {found.compression or 'none'}, header: {f'line {found.header}' if found.header else 'none'}"
    )
    if found.delimiter is not None:
        console.note(f"delimiter: {found.delimiter!r}")
    used = {name: getattr(found, name) for name in ("key", "cost", "value", "weight")}
    named = [f"{name}: {column}" for name, column in used.items() if column is not None]
    console.note(", ".join([f"time: {found.time} ({found.time_format})", *named]))
    for text in found.inferred:
        console.note(f"inferred: {text}")
    console.note(
        f"of {found.rows_read} rows looked at, {found.rows_rejected} rejected, {sum(found.filtered.values())} filtered"
    )
    for reason, count in found.filtered.items():
        console.note(f"filtered: {count} {reason}")
    for reject in found.rejects:
        console.note(f"rejected: {reject.file}:{reject.line}: {reject.reason}: {reject.text!r}")
    carried = [
        name for name in ("cost", "value", "weight") if any(getattr(row, name) is not None for row in found.tuples)
    ]
    shown = ["timestamp", "key", *carried]
    rows = [{name: value for name, value in row._asdict().items() if name in shown} for row in found.tuples]
    rows = [{**row, "timestamp": iso(row["timestamp"])} for row in rows]
    if console.form in ("table", "markdown"):
        # People see a null key as such, not as one of the text `-`, and every digit of what was read.
        rows = [{**row, "key": "(null)" if row["key"] is None else row["key"]} for row in rows]
    if console.form != "json":
        console.rows(rows, shown, exact=True)
        return
    rejects = [reject._asdict() for reject in found.rejects]
    console.record({**found._asdict(), "tuples": rows, "rejects": rejects})
