"""A claim as data, and the files that hold them."""

from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from streamgroup.base.errors import UsageError
from streamgroup.base.pydantic_errors import first_problem
from streamgroup.base.spelling_hint import suggest
from streamgroup.base.toml import read_toml

__all__ = ["VERDICTS", "Claim", "Figure", "Number", "Paper", "Scale", "Verdict", "chosen", "papers"]

Scale = Literal["quick", "paper"]
Verdict = Literal["holds", "holds in shape", "does not hold", "not testable here"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
_DATA = "data"
# What to run and the name of the paper, what to draw, what it says.
_FILES = ("runs.toml", "figures.toml", "claims.toml")


class _Entry(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Number(_Entry):
    """A number: the expression that reads it, and what the paper has.

    It agrees if it is the paper's (`~`), at most or at least that, give or take the share `within` of the paper's. With
    `judged` off the paper's is shown beside it alone, as a number of another machine is.
    """

    name: str
    read: str
    paper: float | None = None
    relation: Literal["~", "<=", ">="] = "~"
    within: float = Field(0.0, ge=0)
    judged: bool = True
    unit: str = ""

    def agrees(self, measured: float) -> bool | None:
        """Compare with the paper's; None where there is nothing to compare."""
        if self.paper is None or not self.judged:
            return None
        slack = abs(self.paper) * self.within
        beyond = measured - self.paper
        return {"~": abs(beyond), "<=": beyond, ">=": -beyond}[self.relation] <= slack


class Claim(_Entry):
    """A claim: what the paper says, how it is read, and what was found at the quick scale.

    `let` names expressions, in order, for those after them. The claim `holds` if all judged numbers agree and the
    expression `holds`, if there is one, is true; else it holds in `shape` if that is. `untestable` is the reason where
    nothing can be run. `found` is the verdict of the last look at the quick scale, and `why` the sentence written then.
    """

    id: str
    where: str
    setting: str = ""
    claim: str
    let: dict[str, str] = {}
    numbers: list[Number] = []
    holds: str | None = None
    shape: str | None = None
    untestable: str | None = None
    figures: list[str] = []
    found: Verdict | None = None
    why: str | None = None

    @property
    def expressions(self) -> list[str]:
        """Return all expressions, in the order in which they are evaluated."""
        conditions = (one for one in (self.holds, self.shape) if one is not None)
        return [*self.let.values(), *(number.read for number in self.numbers), *conditions]


class Figure(_Entry):
    """A figure: `y` against the column `x`, with panels by another column; the others tell lines apart."""

    where: str
    title: str
    y: str
    x: str
    panel: str | None = None
    x_title: str
    y_title: str
    log_x: bool = False
    log_y: bool = False


class Paper(_Entry):
    """A paper: `number` as in docs/references.md; sweeps by name, as files of `sweep` have them.

    A sweep's table `paper` holds what differs at the scale of the paper.
    """

    number: str
    name: str
    title: str
    sweeps: dict[str, dict[str, Any]] = {}
    figures: dict[str, Figure] = {}
    claims: list[Claim]

    def sweep(self, name: str, scale: Scale) -> dict[str, Any]:
        """Return a sweep, as a file of `sweep` has it; UsageError for an unknown one."""
        if name not in self.sweeps:
            raise UsageError(f"paper {self.number} has no sweep {name!r}", suggest(name, self.sweeps))
        whole = dict(self.sweeps[name])
        more = whole.pop("paper", {})
        return {**whole, **more} if scale == "paper" else whole


@cache
def papers() -> tuple[Paper, ...]:
    """Read all papers, in the order of their numbers."""
    with resources.as_file(resources.files(__package__) / _DATA) as data:
        found = [_read(directory) for directory in data.iterdir() if directory.is_dir()]
    return tuple(sorted(found, key=lambda paper: paper.number))


def _read(directory: Path) -> Paper:
    content: dict[str, Any] = {}
    for name in _FILES:
        path = directory / name
        content |= read_toml(path, str(path), "the installation is damaged")[1]
    try:
        return Paper.model_validate(content)
    except ValidationError as error:
        place, reason, _ = first_problem(error)
        raise UsageError(f"{directory.name}: {place}: {reason}") from None


def chosen(names: list[str]) -> list[tuple[Paper, Claim]]:
    """Return the claims that ids (`001-03`) and papers (`001`, `choices`) name, `all` or nothing all of them.

    UsageError for what is neither.
    """
    pairs = [(paper, claim) for paper in papers() for claim in paper.claims]
    if not names or "all" in names:
        return pairs
    known = {"all", *(name for paper, claim in pairs for name in (paper.number, paper.name, claim.id))}
    for name in names:
        if name not in known:
            raise UsageError(f"there is no claim or paper {name!r}", suggest(name, known))
    return [(paper, claim) for paper, claim in pairs if {paper.number, paper.name, claim.id} & set(names)]
