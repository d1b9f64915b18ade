"""`readers`: the list of readers."""

from dataclasses import dataclass

from streamgroup.base import modules_by_name
from streamgroup.cli.console import Console
from streamgroup.cli.typer_command import Formatted

__all__ = ["Options", "run"]


@dataclass(frozen=True, kw_only=True)
class Options(Formatted):
    """The flags of `readers`."""


def run(console: Console, options: Options) -> None:
    """List the readers, and what each takes as time, key and cost by default."""
    del options
    rows = []
    for name in modules_by_name.names(modules_by_name.READERS):
        reader = modules_by_name.load(modules_by_name.READERS, name, "reader").Reader
        taken = reader.defaults._asdict()
        columns = {what: " or ".join(taken[what]) or None for what in ("time", "key", "cost")}
        rows.append({"reader": name.replace("_", "-"), **columns, "about": reader.about})
    console.rows(rows)
