"""`ingest spark`: makes a trace of whatever Spark loads."""

import time
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import typer

from streamgroup.cli.console import Console
from streamgroup.cli.ingest_flags import IngestFlags, values_of
from streamgroup.cli.ingest_output import print_preview, report_trace
from streamgroup.cli.typer_command import as_command

__all__ = ["Options", "make", "run"]


@dataclass(frozen=True, kw_only=True)
class Options(IngestFlags):
    """The flags of `ingest spark`."""

    paths: Annotated[
        list[str], typer.Argument(metavar="PATH...", help="Paths or URLs that Spark opens.", show_default=False)
    ] = ()  # type: ignore[assignment]
    # Named otherwise first: the variable and the key in a file of `--format` are those of the printed result.
    source_format: Annotated[
        str | None,
        typer.Option("--source-format", "--format", metavar="NAME", help="Format of the paths; else Spark's own."),
    ] = None
    option: Annotated[
        list[str], typer.Option("--option", metavar="K=V", help="An option of the format; repeatable.")
    ] = ()  # type: ignore[assignment]
    table: Annotated[str | None, typer.Option("--table", metavar="NAME", help="A table or view of the catalog.")] = None
    sql: Annotated[str | None, typer.Option("--sql", metavar="QUERY", help="A query of Spark SQL.")] = None
    where: Annotated[
        str | None, typer.Option("--where", metavar="CONDITION", help="Rows to take: a condition in Spark SQL.")
    ] = None
    time: Annotated[
        str, typer.Option("--time", metavar="EXPR", help="Time: a column or an expression.", show_default=False)
    ]
    key: Annotated[
        list[str],
        typer.Option(
            "--key", metavar="EXPR", help="Key: a column or an expression; several make a composite key.",
            show_default=False,
        ),
    ]  # fmt: skip
    cost: Annotated[str | None, typer.Option("--cost", metavar="EXPR", help="Cost in us.")] = None
    value: Annotated[str | None, typer.Option("--value", metavar="EXPR", help="Value of a tuple.")] = None
    weight: Annotated[str | None, typer.Option("--weight", metavar="EXPR", help="Weight of a tuple.")] = None
    form: Annotated[
        Literal["table", "json", "jsonl", "csv", "markdown", "latex"],
        typer.Option("--result-format", envvar="STREAMGROUP_FORMAT", help="How to print the result."),
    ] = "table"
    json: Annotated[bool, typer.Option("--json", help="Short for --result-format json.")] = False


def make() -> Any:
    """Make the function that Typer takes for the command."""
    return as_command(run, Options)


def run(console: Console, options: Options) -> None:
    """Make a trace of whatever Spark loads: files, a table or a query.

    --time, --key, --cost, --value and --weight are expressions of Spark SQL, a column's name being the simplest.
    """
    from streamgroup.ingest.sources.table_options import make_source_options

    values = values_of(options)
    asked = make_source_options(format=values.pop("source_format"), **values)
    # Not before the options are checked: it loads Spark.
    from streamgroup.ingest.sources.table_to_trace import ingest_spark, preview_spark

    begun = time.perf_counter()
    if options.dry_run:
        with console.bar("tasks") as bar:
            found = preview_spark(asked, bar)
        _show(console, found)
        return
    with console.bar("tasks") as bar:
        result = ingest_spark(asked, bar)
    report_trace(console, result, begun)


def _show(console: Console, found: Any) -> None:
    for column in found.schema:
        console.note(f"column {column.name}: {column.type}")
    for what, text in found.used.items():
        console.note(f"{what}: {', '.join(text)}" + (f" ({found.time_format})" if what == "time" else ""))
    schema = [column._asdict() for column in found.schema]
    print_preview(console, found, lambda reject: f"{reject.reason}: {reject.text}", schema=schema)
