"""`synth`: a synthetic trace."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from streamgroup.cli import sources
from streamgroup.cli.command import Formatted, utf8_path
from streamgroup.cli.console import Console
from streamgroup.cli.families import GENERATORS, Own, family_group, flags_of

__all__ = ["Options", "group", "run"]


@dataclass(frozen=True, kw_only=True)
class Options(Formatted):
    """The flags of every generator."""

    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="TRACE", help="Trace directory to make.", show_default=False, callback=utf8_path
        ),
    ]
    engine: Annotated[
        Literal["auto", "local"], typer.Option("--engine", help="Where to make it: in this process (local).")
    ] = "auto"
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing trace.")] = False


def group(name: str) -> typer.Typer:
    """Make the command, with a command below it for each generator."""
    return family_group(name, GENERATORS, "generator", run, Options, _own)


def _own(module: str) -> Own:
    return flags_of(sources.model_of(module, "Params"))


def run(generator: str, console: Console, options: Options, own: dict[str, Any]) -> None:
    """Make a synthetic trace. `synth GENERATOR --help` tells its parameters."""
    from streamgroup.ingest.synthesis import synthesise

    with console.bar("tuples") as bar:
        bar.start(None, "synth")
        manifest = synthesise(generator, own, options.output, overwrite=options.overwrite)
        console.detail(f"made in {bar.seconds:.2f} s, {(manifest.tuples or 0) / bar.seconds:,.0f} tuples/s")
    made = {"trace": str(options.output), "tuples": manifest.tuples, "keys": manifest.keys}
    console.record(made | {"p1": manifest.p1, "fingerprint": manifest.fingerprint})
