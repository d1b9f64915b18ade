"""The root command: finds the commands by file name, reads the common flags, turns errors into exit codes."""

import errno
import importlib
import io
import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from streamgroup.base import modules_by_name
from streamgroup.base.errors import UsageError
from streamgroup.cli.error_output import report_error
from streamgroup.cli.typer_command import (
    ENVIRONMENT,
    Debug,
    DiscoveredGroup,
    Format,
    Json,
    LazyCommand,
    Quiet,
    Verbose,
    as_command,
)

__all__ = ["PACKAGE", "app", "main"]

PACKAGE = "streamgroup.cli.commands"
_NAME = "streamgroup"

_EPILOG = (
    f"Options can also come from {ENVIRONMENT}<OPTION> variables and from a TOML file (--config); a flag wins over the "
    "environment, and that over the file. Exit codes: 0 done, 1 the run failed, 2 wrong usage or the output exists, "
    "3 the environment, 4 bad data, 5 a --fail-on gate did not hold, 130 interrupted."
)


class Program(DiscoveredGroup):
    """The group of all commands; every error ends here as one line and an exit code."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command line and exit; with `standalone_mode` off, return the exit code."""
        del prog_name
        for stream in (sys.stdout, sys.stderr):
            # An encoding that lacks a character must not end a run.
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")
        try:
            code = super().main(args, _NAME, complete_var, False, windows_expand_args, **extra) or 0
        except SystemExit as stop:
            code = 0 if _is_broken_pipe(stop.__context__) else stop.code
        except Exception as error:  # noqa: BLE001 (the end of the line for all errors)
            code = report_error(error, debug="--debug" in (sys.argv if args is None else args))
        if standalone_mode:
            sys.exit(code)
        return code

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the program's own flags; where a command comes first, none are there."""
        if args and not args[0].startswith("-"):
            # Typer reads every flag that is absent by way of pydantic, a third of what a command's --help takes.
            self.add_help_option = False
            self.params = [param for param in self.params if "completion" not in str(param.name)]
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: Any) -> list[str]:
        """Name the commands: their files."""
        del ctx
        return modules_by_name.names(PACKAGE)

    def find(self, name: str) -> Any:
        """Import the file of a command, and no other."""
        module = importlib.import_module(f"{PACKAGE}.{name}")
        if hasattr(module, "group"):
            return typer.main.get_command(module.group(name))
        return LazyCommand.of(name, module.run, partial(as_command, module.run, module.Options))


def _is_broken_pipe(error: BaseException | None) -> bool:
    return isinstance(error, OSError) and error.errno == errno.EPIPE


def _version(wanted: bool) -> None:
    if wanted:
        import streamgroup

        typer.echo(f"streamgroup {streamgroup.__version__}")
        raise typer.Exit


def _program(
    context: typer.Context,
    config: Annotated[Path | None, typer.Option("--config", metavar="FILE", help="TOML file with options.")] = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
    debug: Debug = False,
    form: Annotated[Format | None, typer.Option("--format", help="How to print the result.")] = None,
    json: Json = False,
    version: Annotated[  # noqa: ARG001 (the callback has done all)
        bool, typer.Option("--version", help="Show the version.", is_eager=True, callback=_version)
    ] = False,
) -> None:
    """Replay recorded streams through any stream grouping: imbalance, latency and state cost, before you build it."""
    if json and form not in (None, "json"):
        raise UsageError(f"--json and --format {form} exclude each other", "give one of them")
    form = "json" if json else form
    context.obj = {"config": config, "quiet": quiet, "verbose": verbose, "debug": debug, "form": form}
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(2)


app = typer.Typer(
    name=_NAME,
    cls=Program,
    callback=_program,
    invoke_without_command=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"], "max_content_width": 100},
    epilog=_EPILOG,
)


def _fill_closed_streams() -> None:
    """Reopen closed streams, so that no file gets their number: to read or write one fails, but for stderr."""
    for number, (name, mode, way) in enumerate(
        (("stdin", "r", os.O_WRONLY), ("stdout", "w", os.O_RDONLY), ("stderr", "w", os.O_WRONLY))
    ):
        if getattr(sys, name) is None:
            handle = os.open(os.devnull, way)
            if handle != number:
                os.dup2(handle, number)
                os.close(handle)
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115 (a number)


def main() -> NoReturn:
    """Run the command line of this process."""
    _fill_closed_streams()
    app()
    raise SystemExit
