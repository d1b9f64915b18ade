"""Finds the least number of workers that each of several groupings needs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from streamgroup.base.errors import RunError
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.study.advise.bisection import MOST, Search, least_enough, together
from streamgroup.study.advise.candidate_groupings import KEY_GROUPING
from streamgroup.study.advise.measure_candidates import MeasuredCandidate
from streamgroup.study.advise.offered_load import OfferedLoad
from streamgroup.study.advise.recommendation import Row, Targets, meets

__all__ = ["MORE_WORKERS", "LeastWorkers", "chosen_workers", "search_workers"]

# So many times the least workers of any grouping are few enough to choose the grouping by its state.
MORE_WORKERS = 1.1


@dataclass(frozen=True)
class LeastWorkers:
    """The least number of `workers` with which a grouping keeps up and meets the targets, and its figures there.

    None if no number up to `most` does, or it was not found out; `reason` says why, where that is known.
    """

    grouping: str
    workers: int | None
    row: Row | None
    most: int
    reason: str | None = None


def search_workers(
    offered: OfferedLoad,
    targets: Targets,
    texts: Mapping[str, str],
    known: Mapping[str, Row],
    replay: Callable[[Sequence[ReplayOptions]], Sequence[MeasuredCandidate]],
    *,
    whole: bool,
) -> list[LeastWorkers]:
    """Search for groupings side by side; `texts` are their texts for `-g`, by name.

    `known` are the rows, by name, of those that were replayed with the number of workers of the offered load. `replay`
    measures runs, of the `whole` trace or a sample.
    """
    # More workers are more replicas: only time is searched for.
    timed = Targets(max_p99_ms=targets.max_p99_ms)
    workers = offered.options.workers
    found = {(name, workers): row for name, row in known.items()}
    reasons: dict[str, str] = {}
    searches: dict[str, Search] = {}
    for name in texts:
        reason = _hopeless(offered, name)
        if reason is not None:
            reasons[name] = reason
            continue
        asked, enough = workers, name in known and meets(known[name], timed)
        least = offered.sustainable or MOST + 1
        searches[name] = least_enough(asked if name in known else least - 1, enough=enough, least=least)

    def tries(wanted: dict[str, int]) -> Mapping[str, bool]:
        runs = [offered.run(texts[name], number, whole=whole) for name, number in wanted.items()]
        for (name, number), one in zip(wanted.items(), replay(runs), strict=True):
            if one.row is None:
                reasons.setdefault(name, one.error or "")
            else:
                found[name, number] = one.row
        return {name: (name, number) in found and meets(found[name, number], timed) for name, number in wanted.items()}

    answers = together(searches, tries)
    return [_outcome(name, answers.get(name), found, reasons, offered, targets) for name in texts]


def chosen_workers(found: Sequence[LeastWorkers]) -> int:
    """Choose a number of workers: that of the least state among groupings that need few.

    Few are at most MORE_WORKERS times the least that any needs. RunError where none meets the targets.
    """
    able = [(one.workers, one.row) for one in found if one.workers is not None and one.row is not None]
    if not able:
        why = next((f": {one.grouping}: {one.reason}" for one in found if one.reason), "")
        raise RunError(f"no grouping meets the target with up to {MOST:,} workers{why}", "allow a longer --max-p99")
    most = MORE_WORKERS * min(workers for workers, _ in able)
    few = [(workers, row) for workers, row in able if workers <= most]
    return min(few, key=lambda one: (one[1].replication_factor, one[0], one[1].compared_ms))[0]


def _hopeless(offered: OfferedLoad, name: str) -> str | None:
    if name == KEY_GROUPING and offered.alone is not None and offered.alone > 1:
        return f"the most frequent key alone is {offered.alone:.3g} times what a worker can do"
    if offered.sustainable is None:
        return "the load is more than any number of workers can do, or these speeds are for these workers only"
    return None


def _outcome(
    name: str,
    workers: int | None,
    found: Mapping[tuple[str, int], Row],
    reasons: Mapping[str, str],
    offered: OfferedLoad,
    targets: Targets,
) -> LeastWorkers:
    most = max(MOST, offered.options.workers)
    if name in reasons or workers is None:
        return LeastWorkers(name, None, None, most, reasons.get(name))
    row, limit = found[name, workers], targets.max_replication
    if limit is not None and row.replication_factor > limit:
        reason = f"with {workers}, the least that are fast enough, a key has {row.replication_factor:.3g} pieces"
        return LeastWorkers(name, None, None, most, reason)
    return LeastWorkers(name, workers, row, most)
