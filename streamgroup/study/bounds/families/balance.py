"""What imbalance the hottest key forces where each key has one worker (KG), two (PKG) or any number."""

from collections.abc import Iterator
from math import ceil, sqrt

from streamgroup.metrics.least_imbalance import split_floor
from streamgroup.study.bounds.question import Question
from streamgroup.study.bounds.statement import DEVIATIONS, Statement

__all__ = ["statements"]

_WHERE = "001, section III-A"


def statements(question: Question) -> Iterator[Statement]:
    """Yield the floors of the groupings asked for, and from how many workers on they are above 0."""
    p1, n, choices = question.stream.p1, question.workers, question.choices
    every = question.selection is None
    if every or choices == 1:
        yield _floor(question, "kg_floor", 1, "001, section II")
        yield Statement(
            name="kg_largest_n", formula="1/p1: up to so many workers key grouping can be balanced",
            value=float(1 / p1), unit="workers", source="001, section II",
        )  # fmt: skip
    if every or choices == 2:
        yield _floor(question, "pkg_floor", 2, _WHERE)
        yield Statement(
            name="pkg_largest_n", formula="2/p1: up to so many workers PKG can be balanced",
            value=float(2 / p1), unit="workers", source=_WHERE,
        )  # fmt: skip
        yield Statement(
            name="pkg_bounded_n",
            formula="1/(5 p1): up to so many workers PKG's imbalance is bounded with probability 1 - 1/n",
            value=float(1 / (5 * p1)), unit="workers", source=_WHERE,
        )  # fmt: skip
    if choices is not None and 2 < choices < n:
        yield _floor(question, "split_floor", choices, _WHERE)
    yield Statement(
        name="least_choices", formula="p1 n, rounded up: the least workers that the most frequent key needs",
        value=min(ceil(p1 * n), n), unit="workers", source="001, section IV-A",
    )  # fmt: skip


def _floor(question: Question, name: str, choices: int, source: str) -> Statement:
    stream, n = question.stream, question.workers
    p1 = stream.p1
    part = "p1" if choices == 1 else f"p1/{choices}"
    applies = p1 * n > choices
    # Of counted keys the bound holds for each run, of a law for its expectation: p1 is that of m draws.
    chance = 0.0 if stream.exact else DEVIATIONS * sqrt(p1 * (1 - p1) / stream.tuples) / choices
    measured = question.measured("imbalance") if question.choices == choices else None
    return Statement(
        name=name,
        formula=f"{part} - 1/n: the imbalance cannot be smaller if a key has "
        + ("one worker" if choices == 1 else f"{choices} workers"),
        value=float(split_floor(stream.top, stream.total, choices, n)),
        unit="share",
        source=source,
        relation=">=",
        applies=applies,
        measured=measured,
        tolerance=chance,
        note="" if applies else f"p1 is {float(p1):.4g}, not above {choices}/n: the most frequent key forces nothing",
    )
