"""A statement of theory: its value for a stream, and what a run says of it."""

from dataclasses import dataclass
from typing import Any, Literal

__all__ = ["DEVIATIONS", "Relation", "Statement", "Verdict"]

# Standard deviations by which a run may miss an expectation: by chance alone 1 in 16,000 runs misses by more.
DEVIATIONS = 4.0

# How a measured value stands to that of the statement, if the statement holds.
Relation = Literal[">=", "<=", "~"]
Verdict = Literal["holds", "violated", "not measured", "does not apply"]


@dataclass(frozen=True, kw_only=True)
class Statement:
    """One statement. `formula` is in words, `source` the paper and its section or theorem.

    `value` is None where it cannot be known from key counts. `relation` is None for a quantity that no run can disagree
    with. `applies` is False where an assumption of the statement does not hold for the stream. `measured` is
    that of a run, `tolerance` (>= 0) by how much it may miss the value by chance alone.
    """

    name: str
    formula: str
    value: float | int | bool | None
    source: str
    unit: str = ""
    relation: Relation | None = None
    applies: bool = True
    measured: float | int | None = None
    tolerance: float = 0.0
    note: str = ""

    @property
    def verdict(self) -> Verdict:
        """Compare what was measured with the value."""
        if not self.applies:
            return "does not apply"
        if self.measured is None or self.value is None or self.relation is None:
            return "not measured"
        beyond = self.measured - self.value
        missed = {">=": -beyond, "<=": beyond, "~": abs(beyond)}[self.relation]
        return "violated" if missed > self.tolerance else "holds"

    def to_json(self) -> dict[str, Any]:
        """Return all of it by name."""
        return {
            "name": self.name,
            "formula": self.formula,
            "value": self.value,
            "unit": self.unit,
            "relation": self.relation,
            "measured": self.measured,
            "tolerance": None if self.measured is None else self.tolerance,
            "verdict": self.verdict,
            "source": self.source,
            "note": self.note,
        }
