"""`plot`: one chart as a picture."""

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

from streamgroup.base.errors import UsageError
from streamgroup.base.output_formats import PEOPLE, render
from streamgroup.base.storage.atomic_files import check_free, write_files
from streamgroup.cli.console import Console
from streamgroup.cli.shared_flags import Where, XAxis
from streamgroup.cli.typer_command import Formatted, utf8_path

__all__ = ["Options", "picture_files", "run"]

_KINDS = (".svg", ".png", ".csv")


@dataclass(frozen=True, kw_only=True)
class Options(Formatted):
    """The flags of `plot`."""

    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="The chart; without one, all are listed.", show_default=False)
    ] = None
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="[RUN|TRACE...]",
            help="Run directories, sweeps, or directories that hold runs; for charts of traces also traces.",
            show_default=False,
            callback=utf8_path,
        ),
    ] = ()  # type: ignore[assignment]
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", callback=utf8_path,
            help="FILE.svg or FILE.png, each with FILE.csv beside; without an ending all three.",
        ),
    ] = None  # fmt: skip
    where: Where = None
    x: XAxis = None
    theme: Annotated[Literal["light", "dark"], typer.Option("--theme", help="On light or on dark ground.")] = "light"
    list: Annotated[bool, typer.Option("--list", help="List the charts.")] = False
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace existing files.")] = False


def run(console: Console, options: Options) -> None:
    """Draw one chart of runs as SVG and PNG, with its numbers as CSV beside. Charts of traces need no run.

    Prints what the chart shows in words; without a name it lists the charts.
    """
    if options.list or options.name is None:
        _list(console)
        return
    if options.output is None:
        raise UsageError("plot needs a file to write to", "add -o FILE")
    if not options.runs:
        raise UsageError("no run to read", "name run directories, as replay -o makes them, or traces")
    places = picture_files(options.output)
    for place in places.values():
        check_free(place, overwrite=options.overwrite)
    from streamgroup.report.charts_over_workers import CURVES
    from streamgroup.report.render_chart import Drawn, load_chart, png, specification, svg
    from streamgroup.report.report_data import gather
    from streamgroup.report.theme import Look
    from streamgroup.report.trace_chart_data import all_traces, gather_traces
    from streamgroup.report.x_axis import WORKERS

    name = options.name.replace("-", "_")
    chart = load_chart(name)
    if all_traces(options.runs):
        if chart.SECTION != "trace":
            raise UsageError(
                f"{options.name} is about runs, and {options.runs[0]} is a trace", "replay it first, with -o"
            )
        if options.where is not None:
            raise UsageError("--where chooses runs, and there are traces alone", "leave it out")
        data = gather_traces(options.runs)
    else:
        if options.x is not None and name not in CURVES:
            raise UsageError(f"{options.name} has no --x", f"{', '.join(CURVES)} have")
        data = gather(options.runs, where=options.where, x=options.x or WORKERS)
    drawn = Drawn.of(name, data)
    if drawn is None:
        raise UsageError(f"{options.name} has nothing to show of these", "name more runs or traces, or another chart")
    # A picture has room for some of them, its numbers for all.
    numbers = drawn.chart.frame(dataclasses.replace(data, whole=True)) if data.left_out else drawn.frame
    look = Look(options.theme, data.groupings)
    spec = specification(drawn, look)
    makers = {
        ".svg": lambda: svg(spec, look).encode(),
        ".png": lambda: png(spec, look),
        ".csv": lambda: render(numbers.to_dicts(), "csv", columns=numbers.columns).encode(),
    }
    write_files({place: makers[kind]() for kind, place in places.items()}, overwrite=options.overwrite)
    for text in (*data.notes, *(f"{sign}: {text}" for sign, text in data.letters.items())):
        console.note(text)
    if data.left_out:
        console.warn(f"the picture shows {data.left_out}; the CSV has all, and --where chooses others")
    for place in places.values():
        console.note(f"wrote {place}")
    if console.form in PEOPLE:
        console.text(drawn.chart.caption(drawn.frame))
    else:
        console.rows(drawn.frame.to_dicts(), drawn.frame.columns)


def _list(console: Console) -> None:
    from streamgroup.report.render_chart import chart_names, load_chart

    charts = {name: load_chart(name) for name in chart_names()}
    console.rows([{"name": name, "section": one.SECTION, "shows": one.TITLE} for name, one in charts.items()])


def picture_files(output: Path) -> dict[str, Path]:
    """Return the files to write: what the ending asks for, and the numbers in any case."""
    kinds = (output.suffix, ".csv") if output.suffix in _KINDS else _KINDS
    stem = output.name.removesuffix(output.suffix) if output.suffix in _KINDS else output.name
    return {kind: output.with_name(f"{stem}{kind}") for kind in dict.fromkeys(kinds)}
