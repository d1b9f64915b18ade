"""Gives verdicts on claims: runs the sweeps they need, reads the numbers, and compares them with the papers'."""

import contextlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from streamgroup.base.errors import RunError, StreamgroupError, UsageError
from streamgroup.base.progress import Watcher
from streamgroup.study.claims.claim import Claim, Figure, Number, Paper, Scale, Verdict, chosen
from streamgroup.study.claims.evidence_runs import EvidenceRuns
from streamgroup.study.claims.expression import evaluate, sweeps_in
from streamgroup.study.claims.values_of_runs import Series

__all__ = ["Drawing", "Finding", "MeasuredNumber", "Reproduction", "look", "reproduce"]


@dataclass(frozen=True)
class MeasuredNumber:
    """A number as it was read, and whether it agrees with the paper's; None where there is nothing to compare."""

    number: Number
    value: float
    agrees: bool | None


@dataclass(frozen=True, eq=False)
class Drawing:
    """The numbers of a figure."""

    name: str
    figure: Figure
    series: Series


@dataclass(frozen=True, eq=False)
class Finding:
    """What was found of a claim. `verdict` is None where `error` says what went wrong.

    `why` is the sentence of the claim if the verdict is the one that it was written for.
    """

    paper: Paper
    claim: Claim
    numbers: tuple[MeasuredNumber, ...]
    verdict: Verdict | None
    error: str | None = None

    @property
    def why(self) -> str | None:
        """Return the reason that nothing was run, or the sentence written on this verdict."""
        if self.verdict == "not testable here":
            return self.claim.untestable
        return self.claim.why if self.verdict == self.claim.found else None

    @property
    def is_changed(self) -> bool:
        """Return whether another verdict was found when the sentence was written."""
        return self.claim.found is not None and self.verdict != self.claim.found

    def to_json(self) -> dict[str, Any]:
        """Return it as a row."""
        return {
            "id": self.claim.id,
            "paper": self.paper.number,
            "where": self.claim.where,
            "setting": self.claim.setting,
            "claim": self.claim.claim,
            "numbers": [
                {
                    "name": one.number.name, "measured": one.value, "paper": one.number.paper,
                    "relation": one.number.relation if one.agrees is not None else None, "within": one.number.within,
                    "agrees": one.agrees, "unit": one.number.unit, "read": one.number.read,
                }
                for one in self.numbers
            ],
            "verdict": self.verdict,
            "why": self.why,
            "error": self.error,
            "sweeps": list(dict.fromkeys(name for text in self.claim.expressions for name in sweeps_in(text))),
        }  # fmt: skip


@dataclass(frozen=True, eq=False)
class Reproduction:
    """What was found, in the order of the claims; the figures by paper and name; and how long it took."""

    findings: list[Finding]
    drawings: Mapping[str, list[Drawing]]
    scale: Scale
    seconds: float


def reproduce(
    names: Sequence[str], scale: Scale, output: Path, *, jobs: int | None = None, progress: Watcher
) -> Reproduction:
    """Look at the claims that `names` name, see `chosen`; sweeps are kept in `output`, and resumed.

    A claim whose runs fail has an error instead of a verdict, the others go on. UsageError for unknown names.
    """
    pairs = chosen(list(names))
    if output.exists() and not output.is_dir():
        raise UsageError(f"{output} exists and is not a directory", "name another output")
    begun = time.perf_counter()
    evidence_of: dict[str, EvidenceRuns] = {}
    findings, drawings = [], {}
    for paper, claim in pairs:
        evidence = evidence_of.setdefault(paper.number, EvidenceRuns(paper, scale, output, jobs, progress))
        findings.append(look(paper, claim, evidence))
    for number, evidence in evidence_of.items():
        drawings[number] = _drawings([finding for finding in findings if finding.paper.number == number], evidence)
    return Reproduction(findings, drawings, scale, time.perf_counter() - begun)


def look(paper: Paper, claim: Claim, evidence: EvidenceRuns) -> Finding:
    """Look at one claim."""
    if claim.untestable is not None:
        return Finding(paper, claim, (), "not testable here")
    try:
        names: dict[str, Any] = {}
        for name, text in claim.let.items():
            names[name] = evaluate(text, evidence, names)
        numbers = tuple(_measured(number, evaluate(number.read, evidence, names)) for number in claim.numbers)
        verdict = _verdict(claim, numbers, evidence, names)
    except StreamgroupError as error:
        hint = f" ({error.hint})" if error.hint else ""
        return Finding(paper, claim, (), None, f"{error.message}{hint}")
    return Finding(paper, claim, numbers, verdict)


def _measured(number: Number, value: Any) -> MeasuredNumber:
    if isinstance(value, Series):
        raise RunError(f"{number.name} is a series, not a number: it differs in {', '.join(value.columns)}")
    value = float(value)
    return MeasuredNumber(number, value, number.agrees(value))


def _verdict(
    claim: Claim, numbers: Sequence[MeasuredNumber], evidence: EvidenceRuns, names: Mapping[str, Any]
) -> Verdict:
    judged = [one.agrees for one in numbers if one.agrees is not None]
    decided = bool(judged) or claim.holds is not None
    if decided and all(judged) and (claim.holds is None or evaluate(claim.holds, evidence, names)):
        return "holds"
    if claim.shape is not None and evaluate(claim.shape, evidence, names):
        return "holds in shape"
    return "does not hold"


def _drawings(findings: Sequence[Finding], evidence: EvidenceRuns) -> list[Drawing]:
    found = []
    for name in dict.fromkeys(name for finding in findings for name in finding.claim.figures):
        figure = findings[0].paper.figures[name]
        # A figure runs nothing by itself. Where runs failed, the claims say so.
        if not evidence.has_run(sweeps_in(figure.y)):
            continue
        with contextlib.suppress(StreamgroupError):
            series = evaluate(figure.y, evidence, {})
            found.append(Drawing(name, figure, series))
    return found
