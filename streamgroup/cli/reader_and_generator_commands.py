"""Readers, generators and groupings on the command line: found by file name, imported only when used."""

import inspect
from collections.abc import Callable, Collection, Mapping
from decimal import Decimal
from functools import partial
from types import MappingProxyType, NoneType, UnionType
from typing import Annotated, Any, Literal, get_args, get_origin

import typer

from streamgroup.base import modules_by_name
from streamgroup.cli.typer_command import DiscoveredGroup, LazyCommand, as_command

__all__ = ["Own", "complete_grouping", "family_group", "flags_of"]

_WORD = 1 << 62

Own = dict[str, tuple[Any, Any]]


def complete_grouping(incomplete: str) -> list[str]:
    """Complete a grouping's name, as long as it has no parameters yet."""
    return [name for name in modules_by_name.names(modules_by_name.GROUPINGS) if name.startswith(incomplete)]


def flags_of(model: Any) -> Own:
    """Make a flag of every field of a pydantic model; the model itself checks the values."""
    return {name: _flag(name, field) for name, field in model.model_fields.items()}


def _flag(name: str, field: Any) -> tuple[Any, Any]:
    flag = f"--{name.replace('_', '-')}"
    text = field.description or name
    notes = ["required"] if field.is_required() else []
    if field.default is not None and not field.is_required():
        notes = [f"default: {str(field.default).lower() if field.annotation is bool else field.default}"]
    notes += [bound for bound in map(_bound, field.metadata) if bound]
    text = f"{text[0].upper()}{text[1:]}." + (f"  [{'; '.join(notes)}]" if notes else "")
    if field.annotation is bool:
        return Annotated[bool | None, typer.Option(f"{flag}/--no-{flag[2:]}", help=text)], None
    return Annotated[str | None, typer.Option(flag, metavar=_metavar(field.annotation), help=text)], None


def _metavar(annotation: Any) -> str:
    """Return the placeholder of a flag's value: its choices, a number, or several with commas between."""
    kinds = [kind for kind in get_args(annotation) if kind is not NoneType]
    if get_origin(annotation) is Literal:
        return "|".join(map(str, kinds))
    if get_origin(annotation) is tuple:
        return f"{_metavar(kinds[0])},..."
    if get_origin(annotation) is UnionType:
        return _metavar(kinds[0]) if len(kinds) == 1 else "VALUE"
    return {int: "INTEGER", float: "NUMBER", Decimal: "NUMBER"}.get(annotation, "VALUE")


def _bound(limit: Any) -> str:
    """Write a bound, unless it is only that of a 64-bit integer."""
    signs = (("ge", ">="), ("gt", ">"), ("le", "<="), ("lt", "<"))
    found = [(sign, getattr(limit, name)) for name, sign in signs if hasattr(limit, name)]
    return ", ".join(f"{sign}{value}" for sign, value in found if abs(value) < _WORD)


class _Family(DiscoveredGroup):
    """A group with a command for each member of a family, found by file name, and those of `more`."""

    package: str
    make: Callable[[str], Callable[..., None]]
    more: Mapping[str, Callable[[], LazyCommand]]

    def list_commands(self, ctx: Any) -> list[str]:
        del ctx
        return [*(name.replace("_", "-") for name in modules_by_name.names(self.package)), *self.more]

    def find(self, name: str) -> Any:
        if name in self.more:
            return self.more[name]()
        return LazyCommand.of(name, modules_by_name.summary(self.package, name), partial(type(self).make, name))


def family_group(
    name: str,
    package: str,
    kind: str,
    run: Callable[..., None],
    options: type[Any],
    own: Callable[[str], Own],
    unused: Callable[[str], Collection[str]] = lambda _: (),
    more: Mapping[str, Callable[[], LazyCommand]] = MappingProxyType({}),
) -> typer.Typer:
    """Make a command that takes a member of a family first: `run(member, console, options, own values)`.

    `own` and `unused` tell, for a member's name, the flags that it has besides, and which of `options` are not shown
    as they mean nothing to it. `more` makes further commands of the group, by name.
    """

    def make(member: str) -> Callable[..., None]:
        name = member.replace("-", "_")
        return as_command(partial(run, member), options, own(name), unused(name))

    def begin(context: typer.Context) -> None:
        if context.invoked_subcommand is None:
            typer.echo(context.get_help())
            raise typer.Exit(2)

    members = type("Family", (_Family,), {"package": package, "kind": kind, "make": staticmethod(make), "more": more})
    return typer.Typer(
        name=name,
        cls=members,
        callback=begin,
        help=inspect.getdoc(run),
        invoke_without_command=True,
        rich_markup_mode=None,
        add_completion=False,
        pretty_exceptions_enable=False,
        subcommand_metavar=f"{kind.upper()} [ARGS]...",
    )
