"""`report`: runs as one page."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from streamgroup.base.storage.atomic_files import check_free, write_files
from streamgroup.cli.console import Console
from streamgroup.cli.shared_flags import Where, XAxis
from streamgroup.cli.typer_command import utf8_path

__all__ = ["Options", "run"]


@dataclass(frozen=True, kw_only=True)
class Options:
    """The flags of `report`."""

    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN...",
            help="Run directories, sweeps, or directories that hold runs.",
            show_default=False,
            callback=utf8_path,
        ),
    ]
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FILE", help="The HTML file.", show_default=False, callback=utf8_path),
    ]
    where: Where = None
    x: XAxis = None
    title: Annotated[
        str | None, typer.Option("--title", metavar="TEXT", help="Title of the page (default: what was compared).")
    ] = None
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")] = False


def run(console: Console, options: Options) -> None:
    """Put runs side by side on one page with charts and tables.

    The page is one file and works offline, in light and dark. All its numbers can be saved from it as CSV.
    """
    check_free(options.output, overwrite=options.overwrite)
    from streamgroup.report.page import page
    from streamgroup.report.report_data import gather

    data = gather(options.runs, where=options.where)
    for note in data.notes:
        console.note(note)
    curves = None
    if options.x is not None:
        curves = gather(options.runs, where=options.where, x=options.x)
        for note in set(curves.notes) - set(data.notes):
            console.note(note)
    content = page(data, options.title, curves=curves).encode("utf-8", "backslashreplace")
    write_files({options.output: content}, overwrite=options.overwrite)
    console.note(f"wrote {options.output}")
