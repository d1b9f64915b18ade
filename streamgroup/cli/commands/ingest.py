"""`ingest`: raw data to a trace, on Spark."""

import time
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal

import typer

import streamgroup as sg
from streamgroup.api.option_types import IngestKeywords
from streamgroup.api.traces import ingest_options
from streamgroup.base.modules_by_name import READERS, load
from streamgroup.cli import ingest_spark
from streamgroup.cli.console import Console
from streamgroup.cli.ingest_flags import IngestFlags, default_of
from streamgroup.cli.ingest_output import print_preview, report_trace, report_traces
from streamgroup.cli.reader_and_generator_commands import Own, family_group, flags_of
from streamgroup.cli.typer_command import LazyCommand

__all__ = ["Options", "group", "run"]


@dataclass(frozen=True, kw_only=True)
class Options(IngestFlags):
    """The flags of every reader."""

    inputs: Annotated[
        list[str],
        typer.Argument(
            metavar="INPUT...",
            help="Files, globs, directories or URLs; .gz, .bz2, .xz, .zst, .lz4, .zip, .tar too.",
            show_default=False,
        ),
    ]
    time: Annotated[
        str | None,
        typer.Option("--time", metavar="COLUMN,...", help="Column of the time: a name, or a number from 1; or none."),
    ] = None
    key: Annotated[
        str | None, typer.Option("--key", metavar="COLUMN,...", help="Column of the key; several: a composite key.")
    ] = None
    cost: Annotated[str | None, typer.Option("--cost", metavar="COLUMN", help="Column of the cost.")] = None
    value: Annotated[str | None, typer.Option("--value", metavar="COLUMN", help="Column of the value.")] = None
    weight: Annotated[str | None, typer.Option("--weight", metavar="COLUMN", help="Column of the weight.")] = None
    where: Annotated[
        str | None,
        typer.Option(
            "--where", metavar="CONDITIONS", help="Keep the rows that meet all of these, as in event=click,bytes>0."
        ),
    ] = None
    delimiter: Annotated[
        str | None,
        typer.Option(
            "--delimiter", metavar="TEXT", help="What separates fields: one character or several; \\t, \\x01."
        ),
    ] = None
    header: Annotated[
        bool | None, typer.Option("--header/--no-header", help="Whether the first line names the columns.")
    ] = None
    encoding: Annotated[str, typer.Option("--encoding", metavar="NAME", help="utf-8, latin-1, cp1252, utf-16, ...")] = (
        default_of("encoding", "IngestOptions")
    )
    multiline: Annotated[bool, typer.Option("--multiline", help="Quoted fields may hold line breaks.")] = False
    engine: Annotated[
        Literal["spark", "local"],
        typer.Option(
            "--engine",
            help="Where to make it: on Spark, or in this process (local), without Java and in its memory: for small "
            "inputs. The same bytes.",
        ),
    ] = default_of("engine", "IngestOptions")
    each: Annotated[
        bool, typer.Option("--each", help="Make a trace of each input, in the folder --output, by the file's name.")
    ] = False
    if_missing: Annotated[
        bool,
        typer.Option(
            "--if-missing", help="Keep a trace that is there if it was made of these inputs with these options."
        ),
    ] = False
    checksum: Annotated[bool, typer.Option("--checksum/--no-checksum", help="Record the sha256 of each input.")] = (
        default_of("checksum", "IngestOptions")
    )


def group(name: str) -> typer.Typer:
    """Make the command, with a command below it for each reader, and `spark` for what has none."""
    more = {"spark": partial(LazyCommand.of, "spark", ingest_spark.run, ingest_spark.make)}
    return family_group(name, READERS, "reader", run, Options, _own, _unused, more)


def _model(reader: str) -> Any:
    """Return the model of a reader's options; a reader is imported only where it has a model of its own."""
    from streamgroup.ingest.readers.options import OPTIONS

    return OPTIONS.get(reader) or load(READERS, reader, "reader").Reader.Options


def _own(reader: str) -> Own:
    return flags_of(_model(reader))


def _unused(reader: str) -> tuple[str, ...]:
    return tuple(_model(reader).unused)


def run(reader: str, console: Console, options: Options, own: dict[str, Any]) -> None:
    """Make a trace of raw data, on Spark. `ingest READER --help` lists the options of a reader.

    `ingest spark` takes whatever Spark loads.
    """
    given = {name: getattr(options, name) for name in IngestKeywords.__annotations__}
    if options.dry_run:
        _preview(console, ingest_options(reader, options.inputs, options.output, own, {**given, "dry_run": True}))
        return
    begun = time.perf_counter()
    if options.each:
        with console.bar("tasks") as bar:
            made = sg.ingest_each(reader, options.inputs, options.output, reader_options=own, progress=bar, **given)
            report_traces(console, made)
        return
    with console.bar("tasks") as bar:
        result = sg.ingest(reader, options.inputs, options.output, reader_options=own, progress=bar, **given)
    report_trace(console, result, begun)


def _preview(console: Console, options: Any) -> None:
    from streamgroup.ingest.preview import preview

    found = preview(options)
    console.note(f"{found.path}: columns {', '.join(found.columns)}")
    console.note(
        f"compression: {found.compression or 'none'}, header: {f'line {found.header}' if found.header else 'none'}"
    )
    if found.delimiter is not None:
        console.note(f"delimiter: {found.delimiter!r}")
    used = {name: getattr(found, name) for name in ("key", "cost", "value", "weight")}
    named = [f"{name}: {column}" for name, column in used.items() if column is not None]
    console.note(", ".join([f"time: {found.time or 'none'} ({found.time_format})", *named]))
    for text in found.inferred:
        console.note(f"inferred: {text}")
    print_preview(console, found, lambda reject: f"{reject.file}:{reject.line}: {reject.reason}: {reject.text!r}")
