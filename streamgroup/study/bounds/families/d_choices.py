"""D-Choices: the size of the head, d, and the tolerated imbalance of all sources (001, sections III-A and IV-A)."""

from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from streamgroup.kernels.compiling.call_kernel import call
from streamgroup.kernels.optimal_choices import Variant, choices_needed, make_powers
from streamgroup.study.bounds.question import Question
from streamgroup.study.bounds.statement import Statement

__all__ = ["Head", "head_of", "statements"]

_DETECTING = ("d_choices", "w_choices", "rr", "greedy_d", "greedy_freq")


class Head(NamedTuple):
    """The hot keys, those with at least the share theta: how many, their share, and d of D-Choices; n means all."""

    theta: Fraction
    keys: int
    share: float
    d: int


def head_of(question: Question) -> Head:
    """Find the head by theta of the grouping asked for, and d from its shares as D-Choices does from estimates."""
    params, stream, n = question.params("d_choices"), question.stream, question.workers
    asked = question.selection
    own = asked.params if asked is not None and asked.name in _DETECTING else params
    # A detector without a threshold has none; then the paper's.
    theta = own.hot_share(n) or Fraction(1, 5 * n)
    hot = stream.hot(theta)
    # Without a hot key D-Choices is PKG.
    d = min(2, n)
    if hot:
        variant = Variant(
            every=params.prefixes == "all", rounded=params.start == "round", plain=params.slack == "plain"
        )
        top = np.ascontiguousarray(stream.weight[:hot])
        d = int(call(choices_needed, top, hot, stream.total, params.eps, make_powers(n), variant))
    return Head(theta, hot, stream.share(hot), d)


def statements(question: Question) -> Iterator[Statement]:
    """Yield what concerns groupings with a head; d and what follows from it for D-Choices alone."""
    if not question.concerns(*_DETECTING):
        return
    n = question.workers
    head = head_of(question)
    theta = f"theta = {head.theta}"
    yield Statement(
        name="head_keys", formula=f"keys with at least the share {theta}", value=head.keys, unit="keys",
        source="001, section III-A, fig. 3",
    )  # fmt: skip
    yield Statement(
        name="head_share", formula=f"share of the tuples that keys with at least {theta} have", value=head.share,
        unit="share", source="001, section III-A",
    )  # fmt: skip
    if not question.concerns("d_choices"):
        return
    eps = question.params("d_choices").eps
    where = "001, proposition 4.1, fig. 4"
    none = "" if head.keys else "no key is hot: as PKG"
    measured = question.measured("choices_mean", "d_choices")
    yield Statement(
        name="d_choices_d",
        formula=f"least d at which the hot keys' workers can be within eps = {eps:g} of their share",
        value=head.d, unit="workers", source=where, relation=">=", measured=measured, tolerance=1.0,
        note=none or ("" if measured is None else "measured as the mean of d over hot tuples"),
    )  # fmt: skip
    for name, keys, which in (("b_1", 1, "the hottest key"), ("b_head", head.keys, "all hot keys")):
        if head.keys:
            yield Statement(
                name=f"d_choices_{name}",
                formula=f"n - n ((n - 1)/n)^(h d), h = {keys}: expected distinct workers of {which}",
                value=n - n * ((n - 1) / n) ** (keys * head.d), unit="workers", source="001, eq. 10",
                note="W-Choices takes all instead" if head.d >= n else "",
            )  # fmt: skip
    yield Statement(
        name="d_choices_use_w_choices", formula="d >= n: use W-Choices", value=head.d >= n, source="001, section IV-A"
    )
    s, tuples = question.sources_of("d_choices"), question.stream.tuples
    yield Statement(
        name="d_choices_imbalance",
        formula=f"s eps, s = {s} sources: the imbalance to expect in the worst case",
        value=s * eps, unit="share", source="001, section V-B, fig. 11", relation="<=",
        measured=question.measured("imbalance", "d_choices"),
        # A source that is balanced to a tuple is off by one.
        tolerance=s / tuples,
        note="no guarantee: d is the least that might do, and hashes of hot keys may collide",
    )  # fmt: skip
