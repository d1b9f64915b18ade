"""Memory by the estimates of 001, section IV-B: state entries if a key uses all the workers that it may."""

from collections.abc import Iterator
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from streamgroup.study.bounds.families.d_choices import head_of
from streamgroup.study.bounds.question import Question
from streamgroup.study.bounds.statement import DEVIATIONS, Statement

__all__ = ["estimate", "statements"]

_WHERE = "001, section IV-B"


def estimate(question: Question, head: int, choices: int, others: int) -> int | float:
    """Sum min(f_k, c_k) over the keys: c_k is `choices` of the `head` most frequent keys and `others` of the rest."""
    total = _capped(question, head, choices, others).sum()
    return int(total) if question.stream.exact else float(total)


def _capped(question: Question, head: int, choices: int, others: int) -> NDArray[np.int64] | NDArray[np.float64]:
    limit = np.full(question.stream.keys, others, dtype=np.int64)
    limit[:head] = choices
    return np.minimum(question.stream.counts, limit)


def statements(question: Question) -> Iterator[Statement]:
    """Yield the estimates of the groupings asked for, and how they compare with those of PKG and SG."""
    n = question.workers
    two = min(2, n)
    cases = {}
    if question.concerns("pkg", "d_choices", "w_choices"):
        cases["pkg"] = (0, two, "min(f_k, 2)")
    if question.concerns("d_choices", "w_choices"):
        head = head_of(question)
        cases["d_choices"] = (head.keys, head.d, f"min(f_k, d = {head.d}) for hot keys, min(f_k, 2) for others")
        cases["w_choices"] = (head.keys, n, "min(f_k, n) for hot keys, min(f_k, 2) for others")
    if question.concerns("sg", "d_choices", "w_choices"):
        cases["sg"] = (question.stream.keys, n, "min(f_k, n)")
    found = {name: estimate(question, keys, choices, two) for name, (keys, choices, _) in cases.items()}
    for name, (keys, choices, words) in cases.items():
        yield Statement(
            name=f"memory_{name}",
            formula=f"sum over keys of {words}",
            value=found[name],
            unit="pairs",
            source=_WHERE,
            relation="<=",
            measured=question.measured("replicas", name),
            tolerance=_chance(question, keys, choices, two),
            note="replicas can be more: a key that was hot once keeps its workers" if name.endswith("choices") else "",
        )
    for base, figure in (("pkg", "fig. 5"), ("sg", "fig. 6")):
        for name in ("d_choices", "w_choices"):
            if name in found and base in found:
                yield Statement(
                    name=f"memory_{name}_vs_{base}",
                    formula=f"how much more than the estimate of {base} that of {name} is",
                    value=100 * (found[name] / found[base] - 1), unit="%", source=f"001, {figure}",
                )  # fmt: skip


def _chance(question: Question, head: int, choices: int, others: int) -> float:
    """Return what drawn counts may add: a capped count varies by at most its mean, and by at most c^2/4."""
    if question.stream.exact:
        return 0.0
    limit = np.full(question.stream.keys, others, dtype=np.float64)
    limit[:head] = choices
    return DEVIATIONS * sqrt(np.minimum(question.stream.counts, limit * limit / 4).sum())
