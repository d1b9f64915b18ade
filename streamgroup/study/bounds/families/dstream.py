"""DStream's predictor: theorems 1 to 3, table I, the rate of reports and the size of the synopsis (002, section IV)."""

from collections.abc import Iterator
from fractions import Fraction
from math import exp, log2, sqrt
from statistics import fmean
from typing import Any

from streamgroup.study.bounds.question import Question
from streamgroup.study.bounds.statement import DEVIATIONS, Statement

__all__ = ["precision", "statements"]

# Table I: r, the thresholds 2^c, and the last value as it is printed.
_TABLE_R, _TABLE_C, _PRINTED = 10, (7, 8, 9, 10), 73.53


def precision(c: int, r: int, zeta: int = 2) -> float:
    """Return the least probability that a key with `zeta` different runs above r came 2^c times, in percent.

    (1 + x) e^-x with x = 2^c / 2^(r + zeta - 2): inequality 2 for zeta = 2, else what lemma 1 gives in the same way.
    Inequality 1 says nothing as printed: its lower sum has no bound, so that it is always 100 %.
    """
    x = 2.0 ** (c - r - zeta + 2)
    return 100 * (1 + x) * exp(-x)


def statements(question: Question) -> Iterator[Statement]:
    """Yield the theorems for the predictor's parameters; other detectors of DStream have none."""
    if not question.concerns("dstream"):
        return
    params = question.params("dstream")
    if params.detector != "synopsis":
        return
    yield from _theorem_1(question, params)
    yield from _theorem_2(question, params)
    yield from _theorem_3(question, params)


def _theorem_1(question: Question, params: Any) -> Iterator[Statement]:
    for c in _TABLE_C:
        yield Statement(
            name=f"dstream_table_1_{2**c}",
            formula=f"(1 + 2^(c - r)) e^-2^(c - r), r = {_TABLE_R}, c = {c}: a hot key has come {2**c} times",
            value=precision(c, _TABLE_R), unit="%", source="002, table I",
            note=f"printed as {_PRINTED} %" if c == _TABLE_R else "",
        )  # fmt: skip
    least = precision(params.r, params.r, params.zeta)
    measured, hot = _announced(question, 2**params.r)
    share = least / 100
    yield Statement(
        name="dstream_theorem_1",
        formula=f"(1 + x) e^-x, x = 2^c / 2^(r + zeta - 2), c = r = {params.r}, zeta = {params.zeta}: "
        f"share of the hot keys that came at least {2**params.r} times",
        value=least, unit="%", source="002, theorem 1", relation=">=", measured=measured,
        tolerance=100 * DEVIATIONS * sqrt(share * (1 - share) / hot) if hot else 0.0,
        note="measured if the run lists all keys (--top-keys)" if question.run is not None and not hot else "",
    )  # fmt: skip


def _announced(question: Question, least: int) -> tuple[float | None, int]:
    """Return which part of the keys that were ever hot came often enough, in percent, and how many were hot."""
    run = question.run
    if run is None or run.selection.name != "dstream" or not run.whole:
        return None, 0
    hot, counts = run.column("keys", "hot"), run.column("keys", "count")
    if hot is None or counts is None or sum(counts) != sum(run.column("workers", "tuples") or [0]) or not any(hot):
        return None, 0
    found = [count >= least for count, is_hot in zip(counts, hot, strict=True) if is_hot]
    return 100 * sum(found) / len(found), len(found)


def _theorem_2(question: Question, params: Any) -> Iterator[Statement]:
    runs = params.shortest_run()
    yield Statement(
        name="dstream_report_rate",
        formula=f"probability of a run of {runs} heads or more: reports of a tuple",
        value=2.0**-runs, unit="share", source="002, section IV-A",
        note="" if params.report == "from" else "printed as (1/2)^r; a run longer than r has half of that",
    )  # fmt: skip
    yield Statement(
        name="dstream_hot_rate", formula="2p: a key with a larger share stays in the synopsis",
        value=2 * params.p, unit="share", source="002, theorem 2",
    )  # fmt: skip
    p1 = float(question.stream.p1)
    stays = p1 > 2 * params.p
    yield Statement(
        name="dstream_eviction_updates",
        formula="(1/p) log2(f/p), f = p1: updates after which the hottest key leaves, up to O(1)/p",
        value=log2(p1 / params.p) / params.p if p1 > params.p else 0.0, unit="updates", source="002, theorem 2",
        applies=not stays, note="it has more than 2p and stays" if stays else "printed as a power, meant as a product",
    )  # fmt: skip
    hot = _above(question, params)
    value = question.stream.share(hot)
    yield Statement(
        name="dstream_hot_share", formula="expected share of the tuples that are sent as hot: of keys with over 2p",
        value=value, unit="share", source="002, theorem 2", relation=">=", measured=_head_share(question),
        tolerance=DEVIATIONS * sqrt(value * (1 - value) / question.stream.tuples),
        note="a key is cold until it is announced" if question.run is not None else "",
    )  # fmt: skip


def _above(question: Question, params: Any) -> int:
    """Count the keys with a share over 2p."""
    return question.stream.above(2 * Fraction(str(params.p)))


def _head_share(question: Question) -> float | None:
    run = question.run
    if run is None or run.selection.name != "dstream" or not run.whole:
        return None
    head, tuples = run.column("workers", "head_tuples"), run.column("workers", "tuples")
    return None if head is None or not tuples else sum(head) / sum(tuples)


def _theorem_3(question: Question, params: Any) -> Iterator[Statement]:
    size = _stable_size(question)
    note = "" if size is None else "measured as the mean over the second half of the windows"
    yield Statement(
        name="dstream_synopsis_least", formula="H, the keys with a share over 2p: least size of the stable synopsis",
        value=_above(question, params), unit="keys", source="002, theorem 3", relation=">=", measured=size, note=note,
    )  # fmt: skip
    yield Statement(
        name="dstream_synopsis_most", formula="1/p: most keys in the stable synopsis",
        value=1 / params.p, unit="keys", source="002, theorem 3", relation="<=", measured=size, note=note,
    )  # fmt: skip


def _stable_size(question: Question) -> float | None:
    """Return the mean size over the second half of the run, where neither the start nor one moment decides."""
    run = question.run
    if run is None or run.selection.name != "dstream":
        return None
    sizes = run.column("windows", "detector_entries")
    if sizes is None:
        return None
    return fmean(sizes[len(sizes) // 2 :])
