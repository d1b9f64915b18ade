"""Writes the command-line reference as a Markdown page, generated from the commands.

`python -m streamgroup.cli.reference > docs/cli.md` writes it.
"""

from collections.abc import Iterator
from typing import Any

import typer
from typer.core import TyperGroup

from streamgroup.cli.app import app

__all__ = ["reference"]

_HEAD = """\
# Command line

This page is made by `python -m streamgroup.cli.reference > docs/cli.md`; a test checks that it is up to date.

Results go to stdout, everything else to stderr. An option can also come from the environment (`--hash-seed` from
`STREAMGROUP_HASH_SEED`) or from a TOML file named by `--config`, with keys at the top for every command that has such
an option and a table for each command:

```toml
seed = 1

[replay]
arrivals = "utilization=0.8"

[ingest.csv]
time-format = "ms"
```

A flag wins over the environment, the environment over the file, the file over the default; within a file `[ingest.csv]`
wins over `[ingest]`, and that over the top. An unknown key is an error.

| exit code | meaning |
|---:|---|
| 0 | done |
| 1 | the run failed |
| 2 | wrong usage, or the output exists |
| 3 | the environment: no Java, no memory, no disk, no permission |
| 4 | bad data |
| 5 | a `--fail-on` gate did not hold |
| 130 | interrupted. A second Ctrl-C a second later, or 5 s in which compiled code does not return, ends it at once |

Completion: `streamgroup --install-completion` for the current shell.
"""


def reference() -> str:
    """Write the page."""
    root = typer.main.get_command(app)
    context = typer.Context(root, info_name="streamgroup")
    return _HEAD + "".join(_sections(root, context))


def _sections(command: Any, context: typer.Context) -> Iterator[str]:
    lines = [f"\n## {context.command_path}\n", f"\n{command.help or ''}\n"]
    usage = " ".join(command.collect_usage_pieces(context))
    lines.append(f"\n```\n{context.command_path} {usage}\n```\n")
    parameters = [parameter for parameter in command.get_params(context) if not getattr(parameter, "hidden", False)]
    rows = [_row(parameter, context) for parameter in parameters]
    lines += ["\n| | | default |\n|---|---|---|\n", *rows]
    yield "".join(lines)
    if isinstance(command, TyperGroup):
        for name in command.list_commands(context):
            member: Any = command.get_command(context, name)
            yield from _sections(member, typer.Context(member, info_name=name, parent=context))


def _row(parameter: Any, context: typer.Context) -> str:
    if parameter.param_type_name == "argument":
        names = f"`{parameter.metavar or parameter.name.upper()}`"
    else:
        flags = [*parameter.opts, *parameter.secondary_opts]
        metavar = "" if parameter.is_flag else parameter.metavar or parameter.display_type(context).strip("<>")
        names = ", ".join(f"`{flag}`" for flag in flags) + (f" `{metavar}`" if metavar else "")
    default = "required" if parameter.required else ""
    if not default and parameter.default not in (None, False, (), []):
        default = f"`{parameter.default}`"
    cells = (names, parameter.help or "", default)
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |\n"


if __name__ == "__main__":
    print(reference(), end="")  # noqa: T201
