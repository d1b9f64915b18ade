"""`groupings`: the list of groupings, the parameters of one, and the papers to cite."""

import inspect
import re
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args, get_origin

import typer

from streamgroup.base import modules_by_name
from streamgroup.base.limits import DEFAULT_SOURCES
from streamgroup.base.modules_by_name import GROUPINGS
from streamgroup.base.output_formats import PEOPLE
from streamgroup.base.version import VERSION
from streamgroup.cli.console import Console
from streamgroup.cli.reader_and_generator_commands import complete_grouping
from streamgroup.cli.typer_command import Formatted

__all__ = ["Options", "run"]


@dataclass(frozen=True, kw_only=True)
class Options(Formatted):
    """The flags of `groupings`."""

    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]",
            help="One grouping, or a file with one; with a detector, also its parameters: w_choices:detector=exact.",
            autocompletion=complete_grouping,
            show_default=False,
        ),
    ] = None
    cite: Annotated[
        bool, typer.Option("--cite", help="Print what to cite, in BibTeX: this program, and the grouping's paper.")
    ] = False


def run(console: Console, options: Options) -> None:
    """List the groupings; with a name, print its parameters, their defaults and ranges, and where it comes from."""
    if options.cite:
        _print_citations(console, options.name)
        return
    if options.name is None:
        names = modules_by_name.names(GROUPINGS)
        console.rows([{"grouping": name, "about": modules_by_name.summary(GROUPINGS, name)} for name in names])
        return
    # Not before they are needed: `--help` imports nothing heavy.
    from streamgroup.replay.scenario.grouping_selection import listed

    module, kind, params = listed(options.name)
    name = options.name.partition(":")[0]
    # Its own come before those that it shares with others.
    fields = kind.model_fields
    own = [field for field in fields if field in module.Params.__annotations__]
    parameters = [_parameter(field, fields[field]) for field in dict.fromkeys([*own, *fields])]
    # Unknown where the parameters are not complete.
    sources = None if params is None else params.default_sources()
    if console.form not in PEOPLE:
        console.record({
            "grouping": name, "about": _about(module), "parameters": parameters, "sources": sources,
        })  # fmt: skip
        return
    about = _about(module)
    console.text(f"{name}: {about}\n")
    for line in _papers_named(f"{about} {parameters}"):
        console.text(line)
    if sources not in (None, DEFAULT_SOURCES):
        console.text(f"sources, if --sources is not given: {sources}\n")
    if parameters:
        console.rows([
            {**row, "default": "required"} if fields[row["parameter"]].is_required() else row for row in parameters
        ])  # fmt: skip
    else:
        console.text("no parameters")


def _print_citations(console: Console, name: str | None) -> None:
    """Print the entries of the program and, with a name, of the papers that the grouping is from."""
    from streamgroup.groupings._papers import PAPERS, Paper
    from streamgroup.replay.scenario.grouping_selection import find_module

    program = "streamgroup: replay recorded streams through any stream grouping"
    found = [Paper("streamgroup", program, ("{The streamgroup authors}",), f"Version {VERSION}", None)]
    if name is not None:
        module, _ = find_module(name)
        found += [PAPERS[number] for number in getattr(module, "CITE", ())]
    if console.form in PEOPLE:
        console.text("\n\n".join(paper.bibtex() for paper in found))
    else:
        console.rows([{**paper._asdict(), "authors": list(paper.authors), "bibtex": paper.bibtex()} for paper in found])


def _papers_named(text: str) -> list[str]:
    """Say which papers the numbers in a text stand for, and end with an empty line if there are some."""
    from streamgroup.groupings._papers import PAPERS

    found = [
        f"{number}: {paper.title}" + (f" ({paper.year})" if paper.year else "")
        for number, paper in PAPERS.items()
        if number.isdecimal() and re.search(rf"\b{number}\b", text)
    ]
    return [*found, ""] if found else []


def _about(module: Any) -> str:
    """Join what the module and its state say of themselves: the latter names the paper."""
    texts = [inspect.getdoc(module) or ""]
    states = [
        state
        for state in vars(module).values()
        if isinstance(state, type) and state.__module__ == module.__name__ and hasattr(state, "choose")
    ]
    texts += [inspect.getdoc(state) or "" for state in states]
    return "\n\n".join(text for text in texts if text)


def _choices(name: str, field: Any) -> str | None:
    """Name what a parameter may be, where it is one of a few words, a share or a time."""
    from streamgroup.groupings._detector_parameter import DETECTORS
    from streamgroup.groupings.protocol import Described

    if name == "detector":
        return ", ".join(modules_by_name.names(DETECTORS))
    if field.annotation is bool:
        return "true, false"
    if get_origin(field.annotation) is Literal:
        return ", ".join(str(word) for word in get_args(field.annotation))
    return next((limit.text for limit in field.metadata if isinstance(limit, Described)), None)


def _parameter(name: str, field: Any) -> dict[str, Any]:
    limits = {side: getattr(limit, side) for limit in field.metadata for side in ("ge", "gt", "le", "lt")
              if hasattr(limit, side)}  # fmt: skip
    signs = {"ge": ">=", "gt": ">", "le": "<=", "lt": "<"}
    return {
        "parameter": name,
        "default": None if field.is_required() else field.default,
        "range": " and ".join(f"{signs[side]} {limit}" for side, limit in limits.items()) or _choices(name, field),
        "about": field.description,
    }
