"""One verdict on why workers have unequal loads."""

from math import inf, log
from typing import Literal, NamedTuple

from streamgroup.study.explain.load_composition import BALANCED, Cause, Period

__all__ = ["Judgement", "Verdict", "has_drift", "is_chance", "is_usual", "judge"]

Verdict = Literal[
    "hot key",
    "collision of hot keys",
    "uneven key groups or partitions",
    "too few keys",
    "drift",
    "balanced",
    "choices of the grouping",
]

_OF_CAUSE: dict[Cause, Verdict] = {
    "hot key": "hot key",
    "collision": "collision of hot keys",
    "parts": "uneven key groups or partitions",
    "few keys": "too few keys",
    "balanced": "balanced",
}
# It is drift that matters most while the whole stream has no worker over this load, and a window has so many times the
# excess over the mean.
_NEARLY_BALANCED = 1.5
_WORSE = 3.0
# How probable a load may be at most if it is not to be called chance.
_CHANCE = 1e-3


class Judgement(NamedTuple):
    """A verdict, and the period whose most loaded worker it is about."""

    verdict: Verdict
    period: Period


def is_chance(got: int, expected: float, tries: int) -> bool:
    """Report whether one of `tries` Poisson counts of that expectation reaches `got` by chance (Chernoff's bound)."""
    if got <= expected:
        return True
    if expected == 0:
        return False
    least = got * log(got / expected) - got + expected
    return least < log(tries / _CHANCE) if least < inf else False


def judge(whole: Period, window: Period | None, windows: int, *, by_key: bool) -> Judgement:
    """Judge the whole stream, and its worst window of `windows` where that is far worse; None where there is but one.

    `by_key` says that a key has one worker; otherwise what no key explains is the grouping's own doing.
    """
    if window is not None and whole.peak <= _NEARLY_BALANCED and has_drift(whole, window, windows):
        return Judgement("drift", window)
    worker = whole.top[0]
    verdict = _OF_CAUSE[worker.cause]
    if verdict == "too few keys" and not by_key:
        workers = len(whole.tuples)
        chance = is_chance(worker.tuples, float(whole.tuples.sum() / workers), workers)
        verdict = "balanced" if chance else "choices of the grouping"
    return Judgement(verdict, whole)


def has_drift(whole: Period, window: Period, windows: int) -> bool:
    """Report whether a window is out of balance by more than chance, and by far more than the whole stream is."""
    worker = window.top[0]
    if worker.load <= BALANCED or (whole.peak > BALANCED and worker.load - 1 < _WORSE * (whole.peak - 1)):
        return False
    return not is_usual(whole, window, windows)


def is_usual(whole: Period, window: Period, windows: int) -> bool:
    """Report whether a window's most loaded worker has no more than chance makes of its part of the whole stream."""
    worker = window.top[0]
    expected = float(whole.tuples[worker.worker] / whole.tuples.sum() * window.tuples.sum())
    return is_chance(worker.tuples, expected, windows * len(whole.tuples))
