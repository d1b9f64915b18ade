"""Flags that several commands share."""

from typing import Annotated

import typer

from streamgroup.cli.typer_command import utf8_path

__all__ = ["DriverMemory", "MadeTrace", "SparkConf", "Trace", "Where", "Workers", "XAxis"]

Trace = Annotated[str, typer.Argument(metavar="TRACE", help="A trace: a directory or its URL.", show_default=False)]

MadeTrace = Annotated[
    str,
    typer.Option(
        "--output", "-o", metavar="TRACE", help="Trace to make: a directory or its URL.",
        show_default=False, callback=utf8_path,
    ),
]  # fmt: skip

Workers = Annotated[int, typer.Option("--workers", "-n", help="Number of workers.", show_default=False)]

Where = Annotated[
    str | None, typer.Option("--where", metavar="CONDITIONS", help="Only these runs, as in workers>=16,seed=0.")
]

XAxis = Annotated[
    str | None,
    typer.Option(
        "--x", metavar="NAME", show_default=False,
        help="What curves are over in place of workers: an option, or a parameter of traces or groupings.",
    ),
]  # fmt: skip

SparkConf = Annotated[list[str], typer.Option("--spark-conf", metavar="K=V", help="A setting of Spark's; repeatable.")]

DriverMemory = Annotated[
    str | None,
    typer.Option("--driver-memory", metavar="SIZE", help="Heap of Spark's driver (default: 2g).", show_default=False),
]
