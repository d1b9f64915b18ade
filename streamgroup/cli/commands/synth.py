"""`synth`: a synthetic trace."""

import time
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import typer

import streamgroup as sg
from streamgroup.api.option_types import SparkKeywords
from streamgroup.base.modules_by_name import GENERATORS, load
from streamgroup.cli.console import Console
from streamgroup.cli.reader_and_generator_commands import Own, family_group, flags_of
from streamgroup.cli.shared_flags import DriverMemory, MadeTrace, SparkConf
from streamgroup.cli.typer_command import Formatted

__all__ = ["Options", "group", "run"]


@dataclass(frozen=True, kw_only=True)
class Options(Formatted):
    """The flags of every generator."""

    output: MadeTrace
    engine: Annotated[
        Literal["auto", "local", "spark"],
        typer.Option(
            "--engine",
            help="Where to make it: in this process (local) or on Spark, the same bytes; auto takes Spark from "
            "50 million tuples on, where there is Java.",
        ),
    ] = "auto"
    master: Annotated[
        str | None,
        typer.Option("--master", metavar="URL", help="Spark master (default: local[*]); makes it on Spark."),
    ] = None
    remote: Annotated[
        str | None,
        typer.Option("--remote", metavar="URL", help="Spark Connect server, as sc://HOST:PORT; makes it on Spark."),
    ] = None
    spark_conf: SparkConf = ()  # type: ignore[assignment]
    driver_memory: DriverMemory = None
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing trace.")] = False


def group(name: str) -> typer.Typer:
    """Make the command, with a command below it for each generator."""
    return family_group(name, GENERATORS, "generator", run, Options, _own)


def _own(generator: str) -> Own:
    from streamgroup.synth.params_of_all_generators import PARAMS

    return flags_of(PARAMS.get(generator) or load(GENERATORS, generator, "generator").Params)


def run(generator: str, console: Console, options: Options, own: dict[str, Any]) -> None:
    """Make a synthetic trace. `synth GENERATOR --help` lists its parameters."""
    where = {name: getattr(options, name) for name in SparkKeywords.__annotations__}
    begun = time.perf_counter()
    with console.bar("tuples") as bar:
        made = sg.synth(
            generator, options.output, engine=options.engine, overwrite=options.overwrite, progress=bar, **where, **own
        )
    manifest = made.manifest
    seconds, tuples = time.perf_counter() - begun, manifest.tuples or 0
    console.detail(f"made in {seconds:.2f} s, {tuples / seconds:,.0f} tuples/s")
    names = ("tuples", "keys", "p1", "fingerprint")
    console.record({"trace": str(made.trace), **{name: getattr(manifest, name) for name in names}})
