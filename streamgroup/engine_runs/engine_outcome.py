"""What a run inside an engine measured, whatever the engine: checked, and in the form that it is accounted in."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgroup.base.errors import RunError
from streamgroup.engine_runs.machine_fast_enough import Machine
from streamgroup.replay.account_given_times import Measured, Sent
from streamgroup.traces.trace import Trace

__all__ = ["EngineOutcome", "check_complete", "checked_counts", "of_all", "out_of_order", "sent"]

I64 = NDArray[np.int64]


class EngineOutcome(NamedTuple):
    """What happened to all tuples, what sources sent, what workers held, what the machine did, and what else is known
    of the engine, for `run.json`.
    """

    found: Measured
    sent: Sent
    state: dict[str, Any]
    machine: Machine
    more: dict[str, Any]


def sent(reports: Sequence[Mapping[str, Any]], *, listens: bool = False) -> Sent:
    """Sum up what all sources reported.

    Where they listen to workers, each has all workers in its state, with the messages of these to all sources.
    """
    of_all = max if listens else sum
    messages, size = ([one[name] for one in reports] or [0] for name in ("messages", "bytes"))
    return Sent(max((one["state"] for one in reports), default=0), of_all(messages), of_all(size))


def of_all(entries: I64, source: NDArray[Any]) -> I64:
    """Return the size of all detectors at each tuple, from that of its source's."""
    change = entries.copy()
    for each in np.unique(source):
        mine = np.flatnonzero(source == each)
        change[mine[1:]] -= entries[mine[:-1]]
    return np.cumsum(change)


def check_complete(seq: I64, trace: Trace, engine: str) -> None:
    """Raise RunError where the sorted `seq` are not each tuple of a trace once."""
    if not np.array_equal(seq, np.arange(trace.tuples)):
        raise RunError(f"{engine} returned {len(np.unique(seq))} of {trace.tuples} tuples, in {len(seq)} rows")


def checked_counts(trace: Trace, held: Iterable[tuple[int, int]]) -> dict[str, Any]:
    """Compare what workers `held`, keys and counts, with the trace's own counts; RunError where they differ."""
    counts = np.zeros(trace.keys, dtype=np.int64)
    entries = 0
    for key, count in held:
        counts[key] += count
        entries += 1
    if not np.array_equal(counts, trace.dictionary().count):
        raise RunError("the workers counted other tuples than the trace has", "this is a defect: please report it")
    return {"entries": entries, "equals_direct": True}


def out_of_order(worker: NDArray[np.int32], arrival: I64, start: I64) -> float:
    """Return the share of tuples that a worker served right after one that had arrived later."""
    order = np.lexsort((start, worker))
    before, after = order[:-1], order[1:]
    late = (worker[before] == worker[after]) & (arrival[after] < arrival[before])
    return float(late.sum() / len(worker))
