"""From a command's file to a Typer command: common flags, environment variables, errors as exit codes.

Written once for all commands: `Options` is a dataclass whose annotated fields are the flags, `run(console, options)`
does the work, and its docstring is the help.
"""

import contextlib
import copy
import dataclasses
import errno
import inspect
import os
import re
import sys
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import typer
from typer.core import TyperCommand, TyperGroup
from typer.models import OptionInfo

from streamgroup.base.errors import UsageError
from streamgroup.base.spelling_hint import suggest
from streamgroup.cli.config_file import read_defaults
from streamgroup.cli.console import Console
from streamgroup.cli.error_output import report_error
from streamgroup.cli.help_sections import section_of, sections_in_order

__all__ = [
    "ENVIRONMENT",
    "Common",
    "Debug",
    "DiscoveredGroup",
    "Format",
    "Formatted",
    "Json",
    "LazyCommand",
    "Parameter",
    "Quiet",
    "Verbose",
    "as_command",
    "utf8_path",
    "variable",
]

ENVIRONMENT = "STREAMGROUP_"

Parameter = inspect.Parameter

# A path of pathlib has lost one of two slashes.
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://?")

# Where a value came from, strongest first.
_SOURCES = ("COMMANDLINE", "ENVIRONMENT", "DEFAULT_MAP", "DEFAULT")


# Flags before and after the command.
Quiet = Annotated[bool, typer.Option("--quiet", help="Results and errors only.")]
Verbose = Annotated[bool, typer.Option("--verbose", help="Print timings too.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show a traceback on errors.")]
Json = Annotated[bool, typer.Option("--json", help="Short for --format json.")]

# How a table is printed.
Format = Literal["table", "json", "jsonl", "csv", "markdown", "latex"]


def _use_file(context: typer.Context, value: Path | None) -> Path | None:
    value = (context.obj or {}).get("config") if value is None else value
    if value is not None and not context.resilient_parsing:
        context.default_map = read_defaults(value, context)
        context.meta["config"] = str(value)
    return value


def utf8_path(value: Any) -> Any:
    """Refuse paths (the callback of an option) that are not UTF-8: Parquet libraries cannot open them by name.

    Refuses URLs, too, where the option takes paths.
    """
    for path in value if isinstance(value, list) else [value]:
        if isinstance(path, Path) and _URL.match(str(path)):
            raise UsageError(f"{str(path).replace(':/', '://', 1)} is a URL, and this is written to a local path")
        if path is not None and not _URL.match(str(path)):
            full = os.path.abspath(path)  # noqa: PTH100 (resolve() would follow a symbolic link)
            try:
                full.encode()
            except UnicodeEncodeError:
                raise UsageError(f"the path {full!r} is not UTF-8", "rename the directory") from None
    return value


@dataclass(frozen=True, kw_only=True)
class Common:
    """Flags of every command."""

    config: Annotated[
        Path | None,
        typer.Option("--config", metavar="FILE", help="TOML file with options.", is_eager=True, callback=_use_file),
    ] = None
    quiet: Quiet = False
    verbose: Verbose = False
    debug: Debug = False


@dataclass(frozen=True, kw_only=True)
class Formatted:
    """Flags of every command that prints a table."""

    form: Annotated[Format, typer.Option("--format", help="How to print the result.")] = "table"
    json: Json = False


def variable(flag: str) -> str:
    """Name the environment variable of a flag."""
    return ENVIRONMENT + flag.removeprefix("--").split("/")[0].replace("-", "_").upper()


def _with_variable(name: str, annotation: Any, *, hidden: bool) -> Any:
    """Add the environment variable that the long flag of an option names; a hidden option has none."""
    kind, *infos = get_args(annotation) if hasattr(annotation, "__metadata__") else (annotation,)
    if not infos or not isinstance(infos[0], OptionInfo):
        return annotation
    info = copy.copy(infos[0])
    # Within Annotated the first flag stands where the default would.
    flags = [flag for flag in (info.default, *(info.param_decls or ())) if isinstance(flag, str)]
    if hidden:
        info.hidden = True
    else:
        info.envvar = info.envvar or variable(next((flag for flag in flags if flag.startswith("--")), name))
    info.show_envvar = False
    return Annotated[kind, info]


def _parameters(kind: type[Any], hidden: Collection[str] = ()) -> list[Parameter]:
    return [_parameter(field.name, field.type, _default(field), hidden=field.name in hidden) for field in _fields(kind)]


def _depth(kind: type[Any], name: str) -> int:
    """Return how far up the classes of options a flag is declared: a command's own flags come first."""
    return next(depth for depth, base in enumerate(kind.__mro__) if name in inspect.get_annotations(base))


def _fields(kind: Any) -> Sequence[dataclasses.Field[Any]]:
    return dataclasses.fields(kind)


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return Parameter.empty if field.default is dataclasses.MISSING else field.default


def _parameter(name: str, annotation: Any, default: Any, *, hidden: bool = False) -> Parameter:
    annotation = _with_variable(name, annotation, hidden=hidden)
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


class LazyCommand(TyperCommand):
    """A command whose flags are made when they are first needed, so that listing commands is fast."""

    make: Callable[[], Callable[..., None]]
    _whole: Any = None

    @classmethod
    def of(cls, name: str, about: str | Callable[..., None], make: Callable[[], Callable[..., None]]) -> "LazyCommand":
        """Name a command, with its help (or the function whose docstring that is) and what makes its function."""
        text = about if isinstance(about, str) else inspect.getdoc(about)
        command = cls(name, help=text, rich_markup_mode=None)
        command.make = make
        return command

    def whole(self) -> Any:
        """Return the command with all its flags."""
        if self._whole is None:
            single = typer.Typer(rich_markup_mode=None, add_completion=False, pretty_exceptions_enable=False)
            single.command(name=self.name)(self.make())
            self._whole = typer.main.get_command(single)
        return self._whole

    def get_params(self, ctx: Any) -> Any:
        """Return the flags and arguments."""
        return self.whole().get_params(ctx)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """List arguments, and options by what they are about."""
        sections: dict[str, list[tuple[str, str]]] = {}
        arguments: list[tuple[str, str]] = []
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and parameter.param_type_name == "argument":
                arguments.append(record)
            elif record is not None:
                sections.setdefault(section_of(parameter.name), []).append(record)
        if arguments:
            with formatter.section("Arguments"):
                formatter.write_dl(arguments)
        for section in sections_in_order(sections):
            with formatter.section(section):
                formatter.write_dl(sections[section])

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        return self.whole().invoke(ctx)


class DiscoveredGroup(TyperGroup):
    """A group whose commands are found by file name, and imported only when one is used."""

    kind = "command"

    def find(self, name: str) -> Any:
        """Return the command of one of the names that `list_commands` gives."""
        raise NotImplementedError

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command; UsageError for an unknown one, with the nearest."""
        if cmd_name not in self.commands:
            known = self.list_commands(ctx)
            if cmd_name not in known:
                if ctx.resilient_parsing:
                    return None
                raise UsageError(f"there is no {self.kind} {cmd_name!r}", suggest(cmd_name, known))
            self.commands[cmd_name] = self.find(cmd_name)
        return self.commands[cmd_name]


def as_command(
    run: Callable[..., None],
    options: type[Any],
    own: Mapping[str, tuple[Any, Any]] | None = None,
    hidden: Collection[str] = (),
) -> Callable[..., None]:
    """Make the function that Typer takes for a command.

    `options` are its flags, as a dataclass. `own` are flags known only by name, each an annotation and a default;
    what was given of them goes to `run(console, options, own)` as a dict. Those `hidden` are taken as flags, to say why
    they cannot be; help, environment and files with options do not know them.
    """
    inherited = {field.name for field in _fields(Formatted)}
    flags = sorted(_parameters(options, hidden), key=lambda flag: _depth(options, flag.name))
    more = [_parameter(name, annotation, default) for name, (annotation, default) in (own or {}).items()]
    common = _parameters(Common)
    listed = [*(flag for flag in flags if flag.name not in inherited), *more]
    listed += [flag for flag in flags if flag.name in inherited]

    def call(**values: Any) -> None:
        context = values.pop("context")
        outer = context.obj or {}
        common_values = {flag.name: values.pop(flag.name) or outer.get(flag.name) for flag in common}
        extra = {parameter.name: values.pop(parameter.name) for parameter in more}
        with _errors(debug=bool(common_values["debug"])):
            form = _form(context, values, outer.get("form"))
            asked = frozenset(name for name in values if _source(context, name) != "DEFAULT")
            console = Console(form, bool(common_values["quiet"]), bool(common_values["verbose"]), asked)
            given = {name: value for name, value in extra.items() if value is not None}
            run(console, options(**values), *([given] if own is not None else []))
            sys.stdout.flush()

    place = Parameter("context", Parameter.KEYWORD_ONLY, annotation=typer.Context)
    call.__doc__ = inspect.getdoc(run)
    call.__annotations__ = {}
    call.__signature__ = inspect.Signature([place, *listed, *common])  # type: ignore[attr-defined]
    return call


def _form(context: typer.Context, values: Mapping[str, Any], before: str | None) -> Any:
    """Choose the format: of --json and --format, what came from the stronger source.

    `before` is the format that was given before the command. One behind it wins, and it wins over all else.
    """
    form = values.get("form", "table")
    by_json, by_form = (_SOURCES.index(_source(context, name)) for name in ("json", "form"))
    if before is not None and min(by_json, by_form) > 0:
        if "form" not in values:
            raise UsageError(f"--format {before}: {context.info_name} prints no table", "leave it out")
        return before
    if not values.get("json") or form == "json":
        return form
    if by_json == by_form:
        raise UsageError(f"--json and --format {form} exclude each other", "give one of them")
    return "json" if by_json < by_form else form


def _source(context: typer.Context, name: str) -> str:
    source = context.get_parameter_source(name)
    return source.name if source is not None else "DEFAULT"


def _forget_output() -> None:
    """Keep what is still buffered from failing once more when Python ends."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextlib.contextmanager
def _errors(*, debug: bool) -> Iterator[None]:
    """Turn what goes wrong into a line on stderr and an exit code; a reader that went away is no error."""
    try:
        with warnings.catch_warnings():
            if not debug:
                warnings.simplefilter("ignore")
            yield
    except typer.Exit:
        raise
    except BrokenPipeError:
        _forget_output()
        raise typer.Exit(0) from None
    except typer.TyperException:
        raise
    except BaseException as error:  # noqa: BLE001 (the end of the line: a grouping of the user's may raise anything)
        if isinstance(error, OSError) and error.errno == errno.EBADF:
            _forget_output()
        raise typer.Exit(report_error(error, debug=debug)) from None
