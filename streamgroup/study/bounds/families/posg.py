"""POSG: the makespan of greedy scheduling, messages, and the estimate of an execution time (004, sections III, IV)."""

from collections.abc import Iterator
from math import log2

import numpy as np

from streamgroup.study.bounds.question import Question
from streamgroup.study.bounds.statement import Statement
from streamgroup.traces.trace import Trace

__all__ = ["expected_estimate", "statements"]

# The stream of section V-A: items, and execution times of 1 to 64 ms, each of as many items.
_ITEMS, _LEAST, _MOST = 4096, 1.0, 64.0
_NS_PER_S = 1e9


def expected_estimate(total: float, cost: float, items: int, columns: int) -> float:
    """Return E[W/F] of an item that takes `cost`, among `items` equally frequent ones that take `total` together.

    004 section IV-B, for one row of `columns` columns.
    """
    if items == 1:
        return cost
    alone = 1 - (1 - 1 / columns) ** items
    return (total - cost) / (items - 1) - columns * (total - items * cost) / (items * (items - 1)) * alone


def statements(question: Question) -> Iterator[Statement]:
    """Yield the bounds of the schedule for POSG and Full Knowledge, the others for POSG."""
    if not question.concerns("posg", "full_knowledge"):
        return
    k = question.workers
    yield _ratio(question)
    yield _makespan(question)
    if not question.concerns("posg"):
        return
    params, stream = question.params("posg"), question.stream
    rows, columns = params.size()
    sources = question.sources if question.run is not None or question.selection is not None else 1
    m, per_batch = stream.tuples, stream.tuples / params.batch
    run_messages = question.measured("control_messages", "posg") if params.resync_windows == 0 else None
    yield Statement(
        name="posg_messages",
        formula=f"(k + 1) m/N for each source: m/N sketches and k replies to each, N = {params.batch}",
        value=sources * (k + 1) * per_batch, unit="messages", source="004, theorem 3.3, O(k m/N)", relation="<=",
        measured=run_messages,
    )  # fmt: skip
    yield Statement(
        name="posg_message_bits",
        formula=f"m/N (c r (log2 m + log2 n) + k log2 m), r = {rows}, c = {columns}, n items: what O() of the bits has",
        value=per_batch * (rows * columns * (log2(m) + log2(stream.keys)) + k * log2(m)), unit="bits",
        source="004, theorem 3.3",
    )  # fmt: skip
    total = _ITEMS * (_LEAST + _MOST) / 2
    for name, cost in (("posg_estimate_least", _LEAST), ("posg_estimate_most", _MOST)):
        yield Statement(
            name=name,
            formula=f"E[W/F] of an item of {cost:g} ms, of {_ITEMS:,} equally frequent of 1 to 64 ms, c = {columns}",
            value=expected_estimate(total, cost, _ITEMS, columns), unit="ms", source="004, sections IV-B and V-A",
        )  # fmt: skip
    expected = expected_estimate(total, _LEAST, _ITEMS, columns)
    yield Statement(
        name="posg_markov",
        formula=f"(E[W/F]/x)^r, x = 64 ms, r = {rows}: probability that all rows take an item of 1 ms for one of x",
        value=min(expected / _MOST, 1.0) ** rows, unit="probability", source="004, section IV-B, by Markov",
    )  # fmt: skip


def _ratio(question: Question) -> Statement:
    k, run = question.workers, question.run
    measured, note = None, ""
    lower = _run_bound(question)
    if run is not None and run.selection.name == "full_knowledge" and lower:
        busy = run.column("workers", "busy_s")
        same = run.row.get("slowdown") is None and run.row.get("speed_jitter") is None
        if busy and same and not question.params("full_knowledge").backlog:
            measured = max(busy) / lower
            note = "measured as the work of the busiest worker, its makespan if all tuples are there at once"
    return Statement(
        name="posg_greedy_ratio", formula="2 - 1/k: makespan of greedy scheduling over the least possible one",
        value=2 - 1 / k, unit="ratio", source="004, theorem 4.2", relation="<=", measured=measured,
        # Seconds of tables are rounded.
        tolerance=1e-9, note=note,
    )  # fmt: skip


def _run_bound(question: Question) -> float | None:
    """Return the lower bound of the run's makespan in s, from the metric that divides by it."""
    makespan, ratio = question.measured("makespan_s"), question.measured("makespan_vs_lower_bound")
    return makespan / ratio if makespan is not None and ratio else None


def _makespan(question: Question) -> Statement:
    stream, k = question.stream, question.workers
    value: float = max(stream.tuples / k, 1.0)
    unit, note = "service times", "for tuples that take equally long"
    bound = _run_bound(question)
    if bound is not None:
        value, unit, note = bound, "s", "of the run"
    elif stream.trace is not None and stream.trace.has_cost and question.run is None:
        value, unit, note = _of_costs(stream.trace, k), "s", "of workers as fast as the trace's costs"
    return Statement(
        name="posg_makespan_floor", formula="max(sum of w / k, max w): no schedule has a smaller makespan",
        value=value, unit=unit, source="004, section IV-A, eqs. 3 and 4", relation=">=",
        measured=None if bound is None else question.measured("makespan_s"), tolerance=1e-9 * value, note=note,
    )  # fmt: skip


def _of_costs(trace: Trace, k: int) -> float:
    longest = 0.0
    for batch in trace.batches(("cost",)):
        assert batch.cost is not None
        longest = max(longest, float(np.max(batch.cost)))
    return max((trace.total_cost_ns or 0) / _NS_PER_S / k, longest / 1e6)
