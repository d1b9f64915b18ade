"""`reproduce`: a verdict on every claim of five papers."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

import streamgroup as sg
from streamgroup.base.errors import RunError
from streamgroup.base.output_formats import PEOPLE, for_people
from streamgroup.cli.console import Console
from streamgroup.cli.typer_command import Formatted, utf8_path

__all__ = ["Options", "run"]


@dataclass(frozen=True, kw_only=True)
class Options(Formatted):
    """The flags of `reproduce`."""

    claims: Annotated[
        list[str],
        typer.Argument(
            metavar="[ID|PAPER|all]...", help="Claims (001-03), papers (001 or choices), or all.", show_default=False
        ),
    ] = ()  # type: ignore[assignment]
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="DIR", show_default=False, callback=utf8_path,
            help="Directory for the runs, the page and its figures; an existing one is resumed.",
        ),
    ]  # fmt: skip
    scale: Annotated[
        Literal["quick", "paper"],
        typer.Option("--scale", help="quick: all in minutes; paper: the papers' numbers of tuples, hours."),
    ] = "quick"
    jobs: Annotated[
        int | None, typer.Option("--jobs", min=1, help="Runs at once (default: as many as there are cores).")
    ] = None


def run(console: Console, options: Options) -> None:
    """Run what the claims of the papers need, read their numbers off, and say which of them hold.

    Writes claims.md, a page with all numbers and figures, and claims.json. Run again, it resumes where it was stopped.
    """
    with console.bar("tuples") as bar:
        made = sg.reproduce(options.claims, output=options.output, scale=options.scale, jobs=options.jobs, progress=bar)
    rows = [finding.to_json() for finding in made.findings]
    if console.form in PEOPLE:
        console.rows([
            {
                "claim": row["id"], "where": row["where"], "verdict": row["verdict"] or "-",
                "measured": "; ".join(
                    f"{one['name']} {for_people(one['measured'])}"
                    + (f" ({for_people(one['paper'])})" if one["paper"] is not None else "")
                    for one in row["numbers"]
                ),
                "why": row["why"] or row["error"],
            }
            for row in rows
        ])  # fmt: skip
    else:
        console.rows(rows)
    for finding in made.findings:
        if finding.is_changed and finding.verdict is not None and options.scale == "quick":
            console.warn(f"{finding.claim.id}: {finding.verdict}; it was {finding.claim.found} when it was looked at")
    console.note(f"{len(rows)} claims in {made.seconds:.0f} s")
    console.note(f"wrote {options.output / 'claims.md'}")
    if lost := sum(finding.verdict is None for finding in made.findings):
        raise RunError(f"{lost} of {len(rows)} claims have no verdict", "column why says what failed")
