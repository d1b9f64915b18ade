"""`export`: a trace for other tools."""

import sys
from dataclasses import dataclass
from typing import Annotated, Literal

import typer

from streamgroup.base.errors import UsageError
from streamgroup.cli.console import Console
from streamgroup.cli.shared_flags import Trace

__all__ = ["Options", "run"]


@dataclass(frozen=True, kw_only=True)
class Options:
    """The flags of `export`."""

    trace: Trace
    to: Annotated[
        Literal["csv", "jsonl", "slb", "parquet"],
        typer.Option("--to", help="The format; slb is `<seconds> TAB <key>` lines.", show_default=False),
    ]
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="File or URL to write (default, or -: stdout)."),
    ] = None
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")] = False


def run(console: Console, options: Options) -> None:
    """Write the tuples of a trace as one file for other tools. Only csv holds every key; it comes back the same with
    `ingest csv --time timestamp --key key --time-format us --multiline --null-keys keep --empty-is-null`.
    """
    from streamgroup.base.storage.storage_path import locate
    from streamgroup.traces.export import export
    from streamgroup.traces.trace import open_trace

    to_file = options.output is not None and options.output != "-"
    if not to_file and options.to == "parquet":
        raise UsageError("Parquet does not go to stdout", "name a file with -o")
    trace = open_trace(options.trace)
    if to_file and options.output is not None:
        place = locate(options.output)
        rows = export(trace, options.to, place, overwrite=options.overwrite)
        console.note(f"wrote {rows} tuples to {place}")
    else:
        export(trace, options.to, sys.stdout.buffer)
        sys.stdout.buffer.flush()
