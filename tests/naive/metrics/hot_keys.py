"""Which keys a grouping treated as hot, which are, and how soon it found them: over accepted tuples, by seq."""

from collections import Counter
from fractions import Fraction
from typing import Any, NamedTuple

from tests.naive.metrics.metric_formulas import as_float, mean, ratio
from tests.naive.metrics.what_is_counted import windows_of
from tests.naive.replay.options import Key, Span
from tests.naive.replay.tuple_records import Record, Run

__all__ = [
    "Heads",
    "Waits",
    "choices_of_keys",
    "hot_metrics",
    "hot_of",
    "keys_of_head",
    "memory_estimate",
    "treated_by_window",
    "true_by_window",
    "waits",
]

MILLISECOND = 1_000_000


class Heads(NamedTuple):
    """A grouping with a detector: from which share on a key is hot in truth (None: 1/(5n)), and where a cold one may go
    (None: nobody knows)."""

    theta: Fraction | None
    cold: int | None


class Waits(NamedTuple):
    """From a key becoming hot to its first treatment as hot."""

    tuples: int
    ns: int


def accepted(records: list[Record]) -> list[Record]:
    return [r for r in records if r.status != "dropped"]


def allowed_of(run: Run) -> dict[int, int]:
    """By seq; of a tuple that was chosen for again the last."""
    return {choice.seq: choice.allowed for choice in run.choices}


def hot_of(run: Run, records: list[Record]) -> list[Record]:
    """Those that were treated as hot."""
    allowed = allowed_of(run)
    return [r for r in accepted(records) if allowed[r.seq] > 0]


def treated_by_window(run: Run, measured: list[Record], window: Span) -> list[set[Key]]:
    return [{r.key for r in hot_of(run, content)} for content in windows_of(measured, window).values()]


def theta_of(run: Run, heads: Heads | None) -> Fraction:
    if heads is None or heads.theta is None:
        return Fraction(1, 5 * run.options.workers)
    return heads.theta


def keys_of_head(run: Run, heads: Heads | None) -> set[Key]:
    """The keys with the share theta of the whole trace, whatever became of the tuples."""
    counts = Counter(r.key for r in run.records)
    return {key for key, count in counts.items() if Fraction(count, counts.total()) >= theta_of(run, heads)}


def true_by_window(run: Run, measured: list[Record], window: Span, heads: Heads) -> list[set[Key]]:
    theta = theta_of(run, heads)
    found = []
    for content in windows_of(measured, window).values():
        counts = Counter(r.key for r in accepted(content))
        found.append({key for key, count in counts.items() if Fraction(count, counts.total()) >= theta})
    return found


def waits(run: Run, measured: list[Record], window: Span, heads: Heads) -> list[Waits]:
    """For each time that a key became hot and was treated so, then or later."""
    found = []
    before: set[Key] = set()
    hot = hot_of(run, measured)
    for content, true in zip(
        windows_of(measured, window).values(), true_by_window(run, measured, window, heads), strict=True
    ):
        first = content[0]
        for key in true - before:
            earlier = [r for r in accepted(run.records) if r.key == key and r.seq < first.seq]
            later = [r for r in hot if r.key == key and r.seq >= first.seq]
            if earlier and hot_of(run, earlier[-1:]):
                found.append(Waits(0, 0))
            elif later:
                found.append(Waits(later[0].seq - first.seq, later[0].arrival_ns - first.arrival_ns))
        before = true
    return found


def mean_ratio(parts: list[set[Key]], wholes: list[set[Key]]) -> float | None:
    """Mean of |part and whole| / |whole|, where there is a whole."""
    shares = [Fraction(len(part & whole), len(whole)) for part, whole in zip(parts, wholes, strict=True) if whole]
    return as_float(mean(shares)) if shares else None


def hot_metrics(run: Run, measured: list[Record], window: Span, heads: Heads) -> dict[str, Any]:
    treated = treated_by_window(run, measured, window)
    true = true_by_window(run, measured, window, heads)
    found = waits(run, measured, window, heads)
    allowed = [allowed_of(run)[r.seq] for r in hot_of(run, measured)]
    return {
        "hot_keys_mean": as_float(ratio(sum(len(keys) for keys in treated), len(treated))),
        "choices_max": max(allowed, default=None),
        "choices_mean": as_float(ratio(sum(allowed), len(allowed))),
        "hot_precision": mean_ratio(true, treated),
        "hot_recall": mean_ratio(treated, true),
        "hot_detection_delay_tuples": as_float(ratio(sum(wait.tuples for wait in found), len(found))),
        "hot_detection_delay_ms": as_float(ratio(sum(wait.ns for wait in found), len(found)), MILLISECOND),
    }


def choices_of_keys(run: Run, measured: list[Record], heads: Heads | None) -> dict[Key, int]:
    """The workers that each key was given at the end, by its last tuple, hot or cold; empty where nobody knows."""
    given: dict[Key, int] = {}
    if heads is not None and heads.cold is not None:
        allowed = allowed_of(run)
        for r in accepted(measured):
            given[r.key] = allowed[r.seq] if allowed[r.seq] > 0 else heads.cold
    return given


def memory_estimate(run: Run, measured: list[Record], heads: Heads) -> int | None:
    """Sum of min(f_k, c_k): c_k is how many workers the last tuple of the key was given (the head and d at the end)."""
    if heads.cold is None:
        return None
    given = choices_of_keys(run, measured, heads)
    return sum(min(count, given.get(key, 0)) for key, count in Counter(r.key for r in measured).items())
