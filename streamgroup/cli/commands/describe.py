"""`describe`: statistics of a trace."""

from dataclasses import dataclass
from typing import Annotated

import typer

from streamgroup.cli.command import Formatted
from streamgroup.cli.console import Console
from streamgroup.cli.shared_flags import Trace

__all__ = ["Options", "run"]


@dataclass(frozen=True, kw_only=True)
class Options(Formatted):
    """The flags of `describe`."""

    trace: Trace
    top: Annotated[int, typer.Option("--top-keys", min=0, help="Keys to list.")] = 10


def run(console: Console, options: Options) -> None:
    """Describe a trace: tuples, keys, span, rate, skew, drift of the hot keys, order and ties."""
    from streamgroup.traces.describe import describe
    from streamgroup.traces.trace import open_trace

    facts = describe(open_trace(options.trace), options.top).to_json()
    if console.form not in ("table", "markdown"):
        console.record(facts)
        return
    top = facts.pop("top_keys")
    for name in ("first_timestamp", "last_timestamp"):
        facts[name] = _moment(facts[name])
    console.record(facts)
    if top:
        console.text("")
        console.rows(top, ("key", "count", "share"))


def _moment(us: int | None) -> str | None:
    """Write us since 1970 as people read it, where the calendar reaches."""
    if us is None:
        return None
    from streamgroup.traces.timestamps import iso_time

    when = iso_time(us)
    return f"{us} us" if when is None else f"{us} us ({when})"
