"""Writes an advice as one object for programs, and in sentences for people."""

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from streamgroup.base.output_formats import Format, for_people, render, wrapped
from streamgroup.base.run_tables_version import SCHEMA_VERSION
from streamgroup.ingest.parsing.times import iso
from streamgroup.replay.scenario.grouping_selection import select
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.study.advise.advise import Advice
from streamgroup.study.advise.grouping_sentences import (
    busy,
    costs,
    count,
    merits,
    percent,
    short,
    take,
    times,
    values_range,
)
from streamgroup.study.advise.least_workers import MORE_WORKERS, LeastWorkers
from streamgroup.study.advise.measure_candidates import SEGMENTS, WARMUP, Sample
from streamgroup.study.advise.offered_load import ASSUMED, Peak
from streamgroup.study.advise.recommendation import NEAR, NEAR_LOAD, Row, Rule, Targets, meets
from streamgroup.study.run_cost import TUPLES_PER_S, receives_feedback
from streamgroup.study.run_option_columns import readable

__all__ = ["as_json", "as_text", "compared", "headline", "remarks", "why"]

# Options that runs have in common; the others mean nothing to an advice.
_SHARED = [
    field.name for field in dataclasses.fields(ReplayOptions)
    if field.name not in {
        "grouping", "workers", "window", "warmup", "hot_threshold", "top_keys", "max_pending",
        "slowdown_at", "join", "leave", "crash", "redeliver",
    }
]  # fmt: skip
# Hot keys that people see.
_SHOWN_KEYS = 3
# An offered load that is hardly one.
_IDLE = 0.01
# A most loaded worker that has hardly more than the others.
_EVEN = 1.05


def as_json(advice: Advice) -> dict[str, Any]:
    """Return all of an advice by stable names; see docs/advice.md."""
    offered, targets, trace = advice.offered, advice.question.targets, advice.trace
    choice = advice.choice
    return {
        "schema_version": SCHEMA_VERSION,
        "trace": readable(trace.name),
        "tuples": trace.tuples,
        "keys": trace.keys,
        "workers": offered.options.workers,
        "max_p99_ms": targets.max_p99_ms,
        "max_replication": targets.max_replication,
        "targets_met": choice.met,
        "rule": choice.rule,
        "recommended": _row(choice.recommended),
        "runner_up": None if choice.runner_up is None else _row(choice.runner_up),
        "kg": _row(advice.kg),
        "kg_combined": advice.combined and {"combine": advice.combined.size, **_row(advice.combined.row)},
        "why": why(advice),
        "hot_keys": [
            {**dataclasses.asdict(key), "key": None if key.key is None else readable(key.key)}
            for key in advice.hot_keys.keys
        ],
        "hot_keys_total": advice.hot_keys.hot,
        "keys_over_a_fair_share": advice.hot_keys.over,
        "bounds": {name: one.value for name, one in advice.floors.items()},
        "hot_keys_together": [
            {"key": None if key is None else readable(key), "share": share} for key, share in advice.hot_keys.together
        ],
        "least_workers": [_least(one) for one in advice.least],
        "least_workers_of_all": None if advice.by_workers is None else [_least(one) for one in advice.by_workers],
        "sustainable_workers": offered.sustainable,
        "offered_load": offered.load,
        "load_assumed": offered.assumed,
        "peak_rate_tps": None if offered.peak is None else offered.peak.rate,
        "peak_offered_load": None if offered.peak is None else offered.peak.load,
        "service": offered.description["service"],
        "arrival_rate_tps": offered.description["arrival_rate_tps"],
        "budget_s": advice.question.budget,
        "sample": _sample(advice.sample),
        "first_sample": _sample(advice.first_sample),
        "workers_sample": _sample(advice.workers_sample),
        "groupings": [_row(row) for row in advice.rows],
        "first_pass": [_row(row) for row in advice.roughly],
        "failed": [{"grouping": readable(name), "error": error} for name, error in advice.failed],
        "warnings": list(advice.warnings),
        "options": {name: readable(getattr(offered.options, name)) for name in _SHARED},
    }


def _row(row: Row) -> dict[str, Any]:
    values = {name: value for name, value in dataclasses.asdict(row).items() if name != "order"}
    return {**values, "grouping": readable(row.grouping), "keeps_up": row.keeps_up}


def _least(one: LeastWorkers) -> dict[str, Any]:
    return {
        "grouping": readable(one.grouping),
        "workers": one.workers,
        "searched_up_to": one.most,
        "reason": one.reason,
        "figures": None if one.row is None else _row(one.row),
    }


def _sample(sample: Sample) -> dict[str, Any]:
    return {"whole": sample.whole, "tuples": sample.tuples, "segments": [list(one) for one in sample.segments]}


def as_text(advice: Advice, form: Format = "table", width: int | None = None, encoding: str = "utf-8") -> str:
    """Return the whole advice for people, which ends in a newline: sentences, and a table as `render` makes it.

    Sentences are wrapped, except in Markdown.
    """

    def lines(texts: Iterable[str]) -> str:
        return "".join(f"{wrapped(text, form)}\n" for text in texts)

    first = lines([headline(advice), *(f"- {line}" for line in why(advice))])
    table = render(compared(advice), form, width=width, encoding=encoding)
    if advice.by_workers is not None:
        table += "\nLeast workers that meet the target:\n"
        table += render(_by_workers(advice.by_workers), form, width=width, encoding=encoding)
    return f"{first}\n{table}\n{lines(remarks(advice))}"


def _by_workers(found: Sequence[LeastWorkers]) -> list[dict[str, Any]]:
    """Return rows for people, the least workers first."""
    rows = sorted(found, key=lambda one: one.workers or one.most + 1)
    return [
        {
            "grouping": one.grouping,
            "workers": f"over {one.most:,}" if one.workers is None else one.workers,
            "p99_ms": None if one.row is None else one.row.latency_p99_high_ms,
            "state_per_key": None if one.row is None else one.row.replication_factor,
        }
        for one in rows
    ]


def headline(advice: Advice) -> str:
    """Return the recommendation in a line."""
    choice, workers = advice.choice, advice.offered.options.workers
    name = choice.recommended.grouping
    if choice.rule == "throughput":
        enough = advice.offered.sustainable
        load = advice.offered.load or 0
        if load > 1:
            what = f"{count(workers)} get {percent(load)} of what they can do" + (
                f"; {enough} are needed at least" if enough else ""
            )
        else:
            who = "a worker" if advice.offered.options.aggregators is None else "a worker or an aggregator"
            what = f"each leaves {who} with more than it can do, at {percent(load)} of what all workers can"
        return f"No grouping keeps up: {what}. The best of them is {name}."
    if choice.rule == "nearest":
        return f"No grouping meets the target with {count(workers)}. The nearest is {name}."
    text = f"{take(name, workers)}."
    peak = advice.offered.peak
    if peak is not None and peak.load > 1:
        text += (
            f" The peak of {peak.rate:,.6g} tuples/s is {percent(peak.load)} of what they can do: "
            "no grouping keeps up then."
        )
    return text


def why(advice: Advice) -> list[str]:
    """Return the reasons in three lines: what key grouping does, what the recommended one does, and what it costs."""
    best, kg = advice.choice.recommended, advice.kg
    if best.grouping == kg.grouping:
        return [_skew(advice), merits(best, kg), _no_need(advice)]
    return [_skew(advice), merits(best, kg), f"{costs(best, kg)} {_rule(advice)}"]


def _skew(advice: Advice) -> str:
    kg, top = advice.kg, advice.hot_keys.keys[0]
    text = f"{kg.grouping}: the most loaded worker gets {times(kg.peak_to_mean)} the mean"
    text += f"{values_range(kg, 'peak_to_mean')}{busy(kg)}"
    text += f": the key {_key(top.key)} has {percent(top.share)} of the tuples, {_fair(top.fair_shares)}"
    others = [f"{_key(key)} ({percent(share)})" for key, share in advice.hot_keys.together if key != top.key]
    if others and len(others) < len(advice.hot_keys.together):
        text += f", and shares its worker with {' and '.join(others)}"
    elif others:
        text += f"; the most loaded worker has the hot keys {' and '.join(others)}"
    if top.fair_shares > 1:
        return f"{text}, and no hash can split it.{_forced(advice)}"
    return (
        f"{text}." if kg.peak_to_mean < _EVEN else f"{text}; hash collisions of keys on a worker cause the imbalance."
    )


def _forced(advice: Advice) -> str:
    """Say that two workers for each key are not enough either, where the hottest key forces that."""
    floor, workers = advice.floors["pkg_floor"], advice.offered.options.workers
    if not floor.applies or floor.value is None:
        return ""
    least = advice.floors["least_choices"].value
    forced = times(1 + workers * floor.value)
    return f" It needs at least {least} workers; with two, as under pkg, one gets at least {forced} the mean."


def _no_need(advice: Advice) -> str:
    kg, best = advice.kg, advice.best
    if best is None or best.grouping == kg.grouping:
        return f"It keeps {kg.replicas:,} state entries, one a key, and nothing has to be merged. {_rule(advice)}"
    least = _what_is_compared(advice)
    return (
        f"It keeps {kg.replicas:,} state entries, one a key; {best.grouping}, with the least {least} "
        f"({short(best.latency_p99_ms)} ms, maximum {short(best.latency_max_ms)} ms), {best.replicas:,}. "
        f"{_rule(advice)}"
    )


def _rule(advice: Advice) -> str:
    best = advice.best
    p99 = _what_is_compared(advice)
    where = " in its worst segment" if advice.offered.options.aggregators is None else ""
    least = "" if best is None else f"{best.grouping}, {short(best.compared_ms)} ms{where}"
    even = f"of the groupings within {NEAR_LOAD} times the smallest maximum load"
    return {
        "compromise": f"Rule: {even} and {NEAR} times the smallest {p99}, the one with the least state. "
        f"Smallest {p99}: {least}.",
        "least state": "Rule: the least state of those that meet the target.",
        "least latency": f"Rule: the least {p99} of those that meet the target.",
        "nearest": f"Rule: the grouping that misses the target by the least factor. Smallest {p99}: {least}.",
        "throughput": f"Rule: {even}, the one with the least state.",
    }[advice.choice.rule]


def _what_is_compared(advice: Advice) -> str:
    return "p99" if advice.offered.options.aggregators is None else "p99 of the results' delay"


def compared(advice: Advice) -> list[dict[str, Any]]:
    """Return rows for people: the recommended grouping, the runner-up, key grouping, and the least latency."""
    choice = advice.choice
    roles: dict[str, list[str]] = {}
    rows = {row.grouping: row for row in advice.rows}
    # Those asked of which all is known that is known of the others: the first pass may have found too much to go on.
    asked = {select(text).text for text in advice.question.groupings}
    least = "least p99" if advice.offered.options.aggregators is None else "least delay"
    for role, row in (
        ("recommended", choice.recommended), ("runner-up", choice.runner_up), (least, advice.best),
        ("key grouping", advice.kg), *(("asked", row) for row in advice.rows if row.grouping in asked),
    ):  # fmt: skip
        if row is not None:
            roles.setdefault(row.grouping, []).append(role)
    return [
        {"grouping": name, "role": ", ".join(parts), **_figures(rows[name], choice.rule)}
        for name, parts in roles.items()
    ]


def _figures(row: Row, rule: Rule) -> dict[str, Any]:
    latencies = {
        "p99_ms": row.latency_p99_ms,
        "by_segment": f"{short(row.latency_p99_low_ms)}..{short(row.latency_p99_high_ms)}",
        "max_ms": row.latency_max_ms,
    }
    if row.result_delay_p99_ms is not None:
        latencies["result_p99_ms"] = row.result_delay_p99_ms
    aggregators = row.aggregator_load_max
    return {
        # Of queues that only grow they would be compared in vain.
        **({} if rule == "throughput" else latencies),
        "peak_to_mean": row.peak_to_mean,
        "fullest_busy": None if row.worker_load_max is None else percent(row.worker_load_max),
        **({} if aggregators is None else {"aggregator_busy": percent(aggregators)}),
        "state_per_key": row.replication_factor,
        "replicas": row.replicas,
    }


def remarks(advice: Advice) -> Iterator[str]:
    """Yield the other remarks, a line each: hot keys, numbers of workers, the load, and what all is based on."""
    what = "meet the target" if advice.question.targets.any else "keep up"
    yield f"Hot keys: {_hot(advice)}"
    if advice.by_workers is None:
        yield f"Least workers that {what}: {'; '.join(map(_enough, advice.least))}."
    else:
        yield (
            f"Rule for the number: the least state of the groupings that need at most {MORE_WORKERS:g} times the least "
            "workers of any."
        )
    if advice.offered.options.aggregators is None and advice.choice.recommended.replication_factor > 1:
        yield (
            "Merging: not simulated; --aggregators A, --aggregator-service TIME and --aggregate-every W say who "
            "merges, how fast, and how often."
        )
    if receives_feedback(select(advice.recommended)):
        yield (
            f"Needs: {advice.recommended} chooses by what workers report of the tuples they finished; a job has to "
            "send that back to its sources."
        )
    if advice.combined is not None:
        merged = "" if advice.offered.options.aggregators else " Nothing has to be merged behind the workers."
        yield f"Instead: {_combined(*advice.combined, advice.question.targets)}{merged}"
    yield f"Load: {_load(advice)}"
    yield f"Based on {_based(advice)}"
    if advice.failed:
        yield "Failed: " + "; ".join(f"{name}: {error}" for name, error in advice.failed)


def _combined(size: int, row: Row, targets: Targets) -> str:
    text = f"kg with a combiner in each source, tuples of one key merged within {size:,} (--combine {size}){busy(row)}"
    if not row.keeps_up:
        return f"{text}; queues only grow."
    text += f"; p99 {short(row.latency_p99_ms)} ms{values_range(row, 'latency_p99', '_ms')}"
    if not meets(row, targets):
        text += ", which misses the target"
    return f"{text}, if a merged tuple costs what one does."


def _hot(advice: Advice) -> str:
    hot = advice.hot_keys
    listed = ", ".join(
        f"{_key(key.key)} {percent(key.share)} (at most {percent(key.share_high)} of a segment)"
        for key in hot.keys[:_SHOWN_KEYS]
    )
    if hot.hot == 0:
        return f"none; the most frequent is {listed}, {_fair(hot.keys[0].fair_shares)}."
    fair = percent(1 / advice.offered.options.workers)
    over = hot.over or "none"
    return f"{listed}; {over} with more than a worker's fair share of {fair}, {hot.hot} with a fifth of that."


def _enough(one: LeastWorkers) -> str:
    if one.row is None:
        return f"{one.grouping} none up to {one.most:,}" + ("" if one.reason is None else f", as {one.reason}")
    row = one.row
    text = f"{one.grouping} {one.workers} (p99 {short(row.latency_p99_ms)} ms{values_range(row, 'latency_p99', '_ms')}"
    return f"{text}, maximum {short(row.latency_max_ms)} ms)"


def _load(advice: Advice) -> str:
    offered = advice.offered
    plan, workers = offered.description, offered.options.workers
    if offered.load is None:
        if advice.trace.first_timestamp == advice.trace.last_timestamp and offered.options.arrivals == "trace":
            return f"all tuples come at one instant, at {plan['service']}: there is no rate."
        return f"{plan['service']}, so no tuple ever waits."
    rate = float(str(plan["arrival_rate_tps"]))
    text = f"{rate:,.6g} tuples/s, {percent(offered.load)} of what {count(workers)} can do at {plan['service']}"
    if offered.assumed:
        instant = advice.trace.first_timestamp == advice.trace.last_timestamp
        what = "all tuples come at one instant" if instant else "nothing says how long a tuple takes"
        text += f": assumed (--arrivals {ASSUMED}), as {what}; --service and --arrivals set it"
    elif offered.peak is not None and offered.peak.rate > _EVEN * rate:
        text += f"; {_peak_text(offered.peak)}"
    if not offered.assumed and offered.load < _IDLE:
        text += ": they are nearly always idle, and any grouping is fast enough"
    return f"{text}."


def _peak_text(peak: Peak) -> str:
    times = f"{iso(peak.first)} to {iso(peak.last)}"
    return f"at the peak, {times}, {peak.rate:,.6g} tuples/s, {percent(peak.load)}"


def _based(advice: Advice) -> str:
    sample, tuples = advice.sample, advice.trace.tuples
    asked = len(advice.roughly) + len(advice.failed)
    if sample.whole:
        text = f"the whole trace, {tuples:,} tuples; a segment is a fifth of it; {asked} groupings"
    else:
        text = (
            f"{SEGMENTS} segments of {sample.tuples // SEGMENTS:,} tuples from begin to end, "
            f"{percent(sample.tuples / tuples)} of the trace, each from empty queues with {WARMUP} of warm-up; "
            f"{asked} groupings, {len(advice.rows)} of them closely. "
            "State is that of the segment with the most of it; a whole trace may have more"
        )
    if not advice.workers_sample.whole:
        text += f"; other numbers of workers on {advice.workers_sample.tuples:,} tuples"
    return f"{text} (--budget {advice.question.budget:g} s, {TUPLES_PER_S['ordered']:,} tuples a second assumed)."


def _fair(times: float) -> str:
    return f"{short(times)} {'times' if times > 1 else 'of'} a worker's fair share"


def _key(key: str | None) -> str:
    return "(null)" if key is None else repr(for_people(key))
