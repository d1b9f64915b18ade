"""Dynamic Key Grouping: its ideal load and threshold, and the workers that a key can get (003, section 4.3)."""

from collections.abc import Iterator
from math import floor, isqrt, sqrt

from streamgroup.study.bounds.question import Question
from streamgroup.study.bounds.statement import Statement

__all__ = ["most_machines", "statements"]

_WHERE = "003, section 4.3, table 1"


def most_machines(workers: int) -> int:
    """Return the last column of table 1: 100/L_s, rounded down, and one; 100/L_s is 10 n/(10 + sqrt n)."""
    root = isqrt(workers)
    # Where n is no square, the quotient is irrational, so a float is never on the wrong side by rounding alone.
    whole = 10 * workers // (10 + root) if root * root == workers else floor(10 * workers / (10 + sqrt(workers)))
    return min(whole + 1, workers)


def statements(question: Question) -> Iterator[Statement]:
    """Yield L_i, L_s and the most machines."""
    if not question.concerns("dynamic_kg"):
        return
    ideal = 100 / question.workers
    yield Statement(name="dynamic_kg_ideal_load", formula="L_i = 100/n", value=ideal, unit="%", source="003, eq. 3")
    yield Statement(
        name="dynamic_kg_threshold", formula="L_s = L_i + sqrt(L_i): load from which a key gets another worker",
        value=ideal + sqrt(ideal), unit="%", source="003, eq. 4",
    )  # fmt: skip
    own = question.params("dynamic_kg")
    measured = None
    if question.run is not None and question.run.selection.name == "dynamic_kg" and question.run.whole:
        measured = max(question.run.column("keys", "workers") or [0]) or None
    yield Statement(
        name="dynamic_kg_most_machines",
        formula="100/L_s, rounded down, and one, at most n: the most workers of a key",
        value=max(most_machines(question.workers), min(own.initial, question.workers)), unit="workers", source=_WHERE,
        relation="<=", measured=measured,
        note="" if measured is None else "measured over the top keys of the run",
    )  # fmt: skip
