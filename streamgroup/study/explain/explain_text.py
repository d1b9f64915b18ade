"""The sentences of an explanation, and its JSON object."""

from collections.abc import Iterator
from math import ceil
from typing import Any

from streamgroup.base.output_formats import Format, wrapped
from streamgroup.study.explain.explain_loads import Explanation
from streamgroup.study.explain.load_composition import HOT_LOAD, KeyLoad, Period, WorkerLoad
from streamgroup.study.explain.remedies import Remedies
from streamgroup.study.explain.verdict import has_drift, is_usual
from streamgroup.study.run_option_columns import readable
from streamgroup.traces.timestamps import moment

__all__ = ["as_json", "as_text", "headline", "helps", "reason", "worker_lines"]

_WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_MOST_SPLIT = 3
_ENOUGH = (
    "With equal service times, the most loaded worker keeps up while its multiple of the mean, times the mean "
    "utilization, is below 1: at 80 %, below 1.25 x mean."
)
_NAMES = {"hash_seed": "--hash-seed", "workers": "-n"}
_SETTINGS = {
    "hash_seed": "hash seed",
    "workers": "number of workers",
    "max_parallelism": "max parallelism",
    "partitions": "number of partitions",
    "partition_count": "number of partitions",
}


def as_text(found: Explanation, keys: int = 5, form: Format = "table") -> str:
    """Return the whole explanation for people, which ends in a newline, with so many hot keys on each worker."""
    lines = [*worker_lines(found, keys), "", headline(found)]
    remedies = list(helps(found))
    if remedies:
        lines += ["What would help:", *(f"- {line}" for line in remedies)]
    return "".join(f"{wrapped(line, form)}\n" for line in lines)


def headline(found: Explanation) -> str:
    """Return the verdict in a line."""
    text = f"Verdict: {found.verdict}. {reason(found)}"
    if found.window is None or found.verdict in ("drift", "balanced"):
        return text
    if not has_drift(found.whole, found.window, found.windows):
        return text
    return f"{text} Besides, the stream drifts: {_in_window(found, found.window.top[0])}"


def _what(found: Explanation) -> str:
    return found.parts.name if found.parts else "key groups or partitions"


def reason(found: Explanation) -> str:
    """Return why, in one sentence or two, with the figures that the verdict rests on."""
    worker, workers = found.focus.top[0], found.options.workers
    mean = f"the mean of {workers} workers"
    if found.verdict == "balanced":
        return f"The most loaded worker gets {_x(found.whole.peak)} times {mean}" + _within_chance(found)
    if found.verdict == "choices of the grouping":
        return (
            f"No key explains the {_x(worker.load)} times the mean of worker {worker.worker}: {found.grouping} sends "
            "it more by its own rule, as by feedback, speeds or sources."
        )
    if found.verdict == "drift":
        return _drift(found, worker)
    if found.verdict == "hot key":
        key = worker.hot[0]
        text = f"{_name(found, key.key_id)} alone gives worker {worker.worker} {_x(key.load)} times {mean}."
        return text + _elsewhere(found, key)
    if found.verdict == "collision of hot keys":
        hot = len(worker.hot)
        together = sum(key.load for key in worker.hot)
        return (
            f"{_word(hot).capitalize()} hot keys are on worker {worker.worker}, together {_x(together)} times {mean}."
        )
    if found.verdict == "too few keys":
        return (
            f"{_count(found.focus.keys, 'key')} of similar frequency for {workers} workers: worker {worker.worker} has "
            f"{len(worker.hot) + worker.other_keys} of them by chance, {_x(worker.load)} times the mean, and "
            f"{_count(int((found.focus.tuples == 0).sum()), 'worker')} none."
        )
    parts = found.parts
    assert parts is not None
    most, least = int(parts.of_worker.max()), int(parts.of_worker.min())
    total = int(parts.of_worker.sum())
    return (
        f"{total:,} {parts.name} for {workers} workers: some have {most:,} and some {least:,}, so that even equal keys "
        f"would give the most loaded worker {_x(most * workers / total)} times the mean."
    )


def _within_chance(found: Explanation) -> str:
    if found.window is None or found.window.peak <= found.whole.peak:
        return "."
    why = ", which chance alone can give" if is_usual(found.whole, found.window, found.windows) else ""
    return f", and {_x(found.window.peak)} times in the worst window{why}."


def _elsewhere(found: Explanation, key: KeyLoad) -> str:
    """Say where a key has the rest, if any."""
    if key.tuples == int(found.focus.count[key.key_id]):
        return f" A key has one worker under {found.grouping}, so nothing but splitting it goes below that."
    load = found.focus.load_of(key.key_id)
    return f" It has {_x(load)} in all: {found.grouping} does not spread it over enough workers."


def _drift(found: Explanation, worker: WorkerLoad) -> str:
    return (
        f"The most loaded worker gets {_x(found.whole.peak)} times the mean over the whole trace, but "
        f"{_in_window(found, worker)}"
    )


def _in_window(found: Explanation, worker: WorkerLoad) -> str:
    text = f"worker {worker.worker} gets {_x(worker.load)} times the mean in the worst window: "
    if not worker.hot:
        return text + f"{worker.other_keys:,} keys, none of them hot, come there more often than elsewhere."
    key = worker.hot[0]
    usual = found.whole.load_of(key.key_id)
    return text + f"{_name(found, key.key_id)} has {_x(key.load)} of it there, and {_x(usual)} over the whole trace."


def worker_lines(found: Explanation, keys: int) -> Iterator[str]:
    """Yield a line for each of the most loaded workers, of the whole stream and of the worst window."""
    yield f"Whole trace, {_count(int(found.whole.tuples.sum()), 'tuple')}, {found.whole.keys:,} keys:"
    yield from (_worker(found, worker, keys) for worker in found.whole.top)
    if found.window is not None:
        yield f"Worst of {found.windows:,} windows, {_when(found.window)}:"
        yield from (_worker(found, worker, keys) for worker in found.window.top)


def _when(window: Period) -> str:
    text = f"tuples {window.first:,} to {window.end - 1:,}"
    if window.from_us is None or window.to_us is None:
        return text
    begin, end = moment(window.from_us), moment(window.to_us)
    return f"{text}, {begin}" if begin == end else f"{text}, {begin} to {end}"


def _worker(found: Explanation, worker: WorkerLoad, keys: int) -> str:
    shown = [key for key in worker.hot if key.load >= HOT_LOAD][:keys]
    pieces = [f"{_name(found, key.key_id)} {_x(key.load)}" for key in shown]
    if more := worker.hot[len(shown) :]:
        what = "more hot key" if shown else "hot key"
        pieces.append(f"{_count(len(more), what)} {_x(sum(key.load for key in more))}")
    if worker.other_keys:
        other = "other key" if worker.hot else "key"
        pieces.append(f"{_count(worker.other_keys, other)} {_x(worker.other_load)}")
    text = f"worker {worker.worker}: {_x(worker.load)} x mean = {' + '.join(pieces) or 'nothing'}"
    if worker.parts is not None:
        text += f"; {_what(found)} alone {_x(worker.parts)}"
    return f"{text}: {_cause(found, worker)}"


def _cause(found: Explanation, worker: WorkerLoad) -> str:
    cause, hot = worker.cause, sum(key.load >= HOT_LOAD for key in worker.hot)
    if cause == "balanced":
        return "balanced"
    if cause == "parts":
        return f"it is the {_what(found)}"
    if cause == "few keys":
        return "it is chance, with so few keys" if found.by_key else "it is no key"
    if hot < 2:
        return "it is the keys: one hot key"
    return f"it is the keys, and {_word(hot)} hot ones collide"


def helps(found: Explanation) -> Iterator[str]:
    """Yield what would help, a line each, with the load of the most loaded worker then; the last, what is enough."""
    lines = list(_remedies(found))
    yield from lines
    if lines:
        yield _ENOUGH


def _remedies(found: Explanation) -> Iterator[str]:
    remedies = found.remedies
    if remedies is None:
        return
    hot = found.focus.hot
    largest = found.focus.load_of(int(hot[0])) if len(hot) else 0.0
    where = " in that window" if found.verdict == "drift" else ""
    if remedies.setting is not None and remedies.peak is not None:
        name, value = remedies.setting.name, remedies.setting.value
        mean = f"the mean of {found.options.workers} workers" if name == "workers" else "mean"
        how = f"-g {remedies.setting.place.selection.text}" if name not in _NAMES else f"{_NAMES[name]} {value}"
        yield (
            f"{how}: {_x(remedies.peak)} x {mean} instead of {_x(found.focus.peak)}{where}, counted over all keys; the "
            f"best of {remedies.tried} tried."
        )
    elif remedies.tried:
        what = f"Another {_SETTINGS[remedies.name]}"
        yield f"{what} does not help: none of {remedies.tried} tried is better by more than 5 %{where}."
    if remedies.split is not None:
        yield _split(found, remedies, where)
    if largest > 0:
        yield _groupings(largest)
    if found.verdict == "too few keys":
        yield _few(found)


def _split(found: Explanation, remedies: Remedies, where: str) -> str:
    assert remedies.split is not None
    pieces = remedies.split.pieces
    named = [f"{_name(found, key)} into {parts}" for key, parts in list(pieces.items())[:_MOST_SPLIT]]
    if len(pieces) > _MOST_SPLIT:
        named.append(f"{_count(len(pieces) - _MOST_SPLIT, 'more key')} of over half a worker's mean load")
    text = f"Splitting {', '.join(named)} (append #0, #1, ... to the key, and merge in a second aggregation)"
    if remedies.split.peak is None:
        return f"{text}."
    return f"{text}: {_x(remedies.split.peak)} x mean{where}, counted over all keys."


def _groupings(largest: float) -> str:
    if largest <= 2:
        return (
            f"A grouping that splits keys: pkg sends each to one of two workers, at least {_x(largest / 2)} x mean of "
            "the hottest on each; d_choices and w_choices split hot keys alone."
        )
    return (
        f"A grouping that splits hot keys over many workers, as d_choices or w_choices: the hottest needs "
        f"{ceil(largest)} workers at least, so the two of pkg are not enough."
    )


def _few(found: Explanation) -> str:
    keys, workers = found.focus.keys, found.options.workers
    if keys < workers:
        return f"No more than {keys} workers, as so many keys keep at most so many busy; or a finer key."
    return "Fewer workers, of which each then has more keys; or a finer key."


def _name(found: Explanation, key_id: int) -> str:
    name = found.names[key_id]
    return "(no key)" if name is None else name or "(empty)"


def _x(value: float) -> str:
    return f"{value:.2f}"


def _word(number: int) -> str:
    return _WORDS[number] if number < len(_WORDS) else f"{number:,}"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def as_json(found: Explanation) -> dict[str, Any]:
    """Return everything as one JSON object; loads are in units of the mean load of a worker."""
    return {
        "trace": readable(found.trace.name),
        "grouping": readable(found.grouping),
        "workers": found.options.workers,
        "how": found.how,
        "verdict": found.verdict,
        "reason": reason(found),
        "peak_to_mean": found.whole.peak,
        "window_peak_to_mean": None if found.window is None else found.window.peak,
        "windows": found.windows,
        "parts": _parts(found),
        "whole": _period(found, found.whole),
        "window": None if found.window is None else _period(found, found.window),
        "helps": list(helps(found)),
        "setting": _setting(found.remedies),
        "split": _pieces(found),
    }


def _parts(found: Explanation) -> dict[str, Any] | None:
    if found.parts is None:
        return None
    counts = found.parts.of_worker
    return {
        "name": found.parts.name,
        "total": int(counts.sum()),
        "fewest": int(counts.min()),
        "most": int(counts.max()),
        "peak_to_mean": float(counts.max() * len(counts) / counts.sum()),
    }


def _period(found: Explanation, period: Period) -> dict[str, Any]:
    return {
        "first_tuple": period.first,
        "tuples": int(period.tuples.sum()),
        "keys": period.keys,
        "from_timestamp": period.from_us,
        "to_timestamp": period.to_us,
        "peak_to_mean": period.peak,
        "workers": [
            {
                "worker": worker.worker,
                "tuples": worker.tuples,
                "load": worker.load,
                "hot_keys": [
                    {"key": found.names[key.key_id], "tuples": key.tuples, "load": key.load} for key in worker.hot
                ],
                "other_keys": worker.other_keys,
                "other_load": worker.other_load,
                "parts_alone": worker.parts,
                "excess": worker.excess,
                "cause": worker.cause,
            }
            for worker in period.top
        ],
    }


def _setting(remedies: Remedies | None) -> dict[str, Any] | None:
    if remedies is None or remedies.setting is None:
        return None
    return {**remedies.setting.options, "peak_to_mean": remedies.peak, "tried": remedies.tried}


def _pieces(found: Explanation) -> dict[str, Any] | None:
    split = found.remedies.split if found.remedies else None
    if split is None:
        return None
    pieces = [{"key": found.names[key], "pieces": parts} for key, parts in split.pieces.items()]
    return {"keys": pieces, "peak_to_mean": split.peak}
