"""The page of claims: what five papers say, what was measured, what holds and why; its figures beside it."""

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from streamgroup.base.output_formats import for_people, render
from streamgroup.study.claims.claim import VERDICTS, Paper
from streamgroup.study.claims.reproduce import Drawing, Finding, MeasuredNumber, Reproduction

__all__ = ["FIGURES", "claims_page", "section"]

# The directory of the figures, beside the page.
FIGURES = "claims"
_INTRODUCTION = """\
# Claims of the papers

What five papers say, and what comes out here. `streamgroup reproduce all -o claims` makes this page: a claim is an
entry of data that names the runs, how numbers are read off them, and the tolerance.

- *holds*: all numbers that are compared agree, and so do orderings.
- *holds in shape*: the direction or the ordering is as in the paper, the numbers are not, or are of a cluster.
- *does not hold*: not even that.
- *not testable here*: nothing can be run, for the reason given.

Where a data set is not public, a [stand-in](generators.md#stand-in) takes its place. Papers go by the numbers of [the
references](references.md).
"""
_SCALES = {
    "quick": "These are runs at the quick scale, with fewer tuples than in the papers; `--scale paper` has theirs.",
    "paper": "These are runs at the scale of the papers.",
}
_SWEPT = {"synth": "--synth", "groupings": "-g", "workers": "-n"}


def claims_page(made: Reproduction) -> str:
    """Write the page as Markdown."""
    papers = list(dict.fromkeys(finding.paper.number for finding in made.findings))
    parts = [_INTRODUCTION, f"{_SCALES[made.scale]}\n", _counts(made.findings)]
    for number in papers:
        found = [finding for finding in made.findings if finding.paper.number == number]
        parts.append(_paper(found, made.drawings.get(number, ()), made.scale))
    return "\n".join(parts)


def _counts(findings: Sequence[Finding]) -> str:
    rows: list[dict[str, Any]] = []
    for name in dict.fromkeys(_heading(finding.paper) for finding in findings):
        verdicts = Counter(finding.verdict for finding in findings if _heading(finding.paper) == name)
        rows.append({"paper": name, **{verdict: verdicts[verdict] for verdict in VERDICTS}})
    rows.append({"paper": "all", **{verdict: sum(row[verdict] for row in rows) for verdict in VERDICTS}})
    return render(rows, "markdown")


def _heading(paper: Paper) -> str:
    return f"{paper.number}: {paper.title}"


def _paper(findings: Sequence[Finding], drawings: Sequence[Drawing], scale: str) -> str:
    paper = findings[0].paper
    parts = [f"## {_heading(paper)}\n"]
    parts += [section(finding) for finding in findings]
    if drawings:
        parts.append("### Figures\n")
        parts += [
            f"![{drawing.figure.where}: {drawing.figure.title}]({_place(paper, drawing)})\n" for drawing in drawings
        ]
    used = {name for finding in findings for name in finding.to_json()["sweeps"]}
    if used:
        parts.append("### Runs\n\n```")
        parts += [_command(paper.name, name, paper.sweep(name, scale)) for name in paper.sweeps if name in used]  # type: ignore[arg-type]
        parts.append("```\n")
    return "\n".join(parts)


def _place(paper: Paper, drawing: Drawing) -> str:
    return f"{FIGURES}/{paper.name}-{drawing.name}.svg"


def section(finding: Finding) -> str:
    """Write what was found of a claim."""
    claim = finding.claim
    verdict = finding.verdict or "no verdict"
    setting = f" ({claim.setting})" if claim.setting else ""
    parts = [f"**{claim.id}**, {claim.where}: {claim.claim}{setting}. *{_upper(verdict)}.*"]
    if finding.why is not None:
        parts[0] += f" {finding.why}"
    if finding.error is not None:
        parts[0] += f" {finding.error}."
    if finding.numbers:
        parts.append(render([_row(one) for one in finding.numbers], "markdown").rstrip("\n"))
    return "\n\n".join(parts) + "\n"


def _upper(text: str) -> str:
    return text[0].upper() + text[1:]


def _row(one: MeasuredNumber) -> Mapping[str, str]:
    number = one.number
    unit = f" {number.unit}" if number.unit else ""
    paper = ""
    if number.paper is not None:
        sign = {"~": "", "<=": "at most ", ">=": "at least "}[number.relation]
        paper = f"{sign}{for_people(number.paper)}{unit}"
    agrees = {True: "yes", False: "no", None: ""}[one.agrees]
    measured = f"{for_people(float(f'{one.value:.4g}'))}{unit}"
    return {"": number.name, "here": measured, "paper": paper, "agrees": agrees}


def _command(paper: str, name: str, spec: Mapping[str, Any]) -> str:
    """Write the command of a sweep."""
    words = ["streamgroup", "sweep"]
    for key, value in spec.items():
        flag = _SWEPT.get(key, f"--{key.replace('_', '-')}")
        for one in value if isinstance(value, list) else [value]:
            words += [flag, shlex.quote(str(one))]
    return " ".join([*words, "-o", f"{paper}-{name}"])
