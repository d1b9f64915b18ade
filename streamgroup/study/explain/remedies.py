"""What would help against unequal loads, found by counting and verified over all keys."""

from collections.abc import Iterator
from math import ceil
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgroup.base.errors import StreamgroupError
from streamgroup.engines.keys.typed_key_arrays import Keys as TypedKeys
from streamgroup.engines.keys.typed_key_arrays import make_keys, pack
from streamgroup.replay.scenario.grouping_selection import select
from streamgroup.study.explain.load_composition import Period
from streamgroup.study.key_destinations import HashDestinations, HashedKeys, hashed
from streamgroup.traces.trace import Trace

__all__ = ["Remedies", "Setting", "Split", "find_remedies"]

I64 = NDArray[np.int64]

# Parameters that place keys anew, in whole multiples of the workers so that all get the same.
_COUNTED_IN = ("max_parallelism", "partitions", "partition_count")
_MOST_TRIED = 64
_MORE_WORKERS = 8
# The most frequent keys decide which settings are tried with all keys.
_FREQUENT = 1024
_FINALISTS = 4
# A setting that gains less than this is not worth a change.
_GAIN = 0.05
# Keys over this load are split, into pieces of at most that load.
_LARGE, _PIECE = 0.5, 0.25


class Setting(NamedTuple):
    """Another way to place the keys: what to change, its new value, and the grouping so changed."""

    name: str
    value: int
    place: HashDestinations

    @property
    def options(self) -> dict[str, str | int]:
        """Return what to give a replay, by the names of its options."""
        if self.name in ("hash_seed", "workers"):
            return {self.name: self.value}
        return {"grouping": self.place.selection.text}


class Split(NamedTuple):
    """Keys by id and into how many each is to be split, with the load of the most loaded worker then, if known."""

    pieces: dict[int, int]
    peak: float | None


class Remedies(NamedTuple):
    """What would help: another `setting` of so many `tried`, None if none is clearly better, and the peak with it.

    The peak is in units of the present mean load, also with more workers.
    `name` is what the settings change, empty where none were tried.
    """

    name: str
    tried: int
    setting: Setting | None
    peak: float | None
    split: Split | None


def find_remedies(trace: Trace, place: HashDestinations | None, keys: HashedKeys | None, period: Period) -> Remedies:
    """Look for what would help the loads of a period.

    There is no `place` where a key has several workers; without `keys` no other settings are tried.
    """
    split = _find_split(trace, place, period)
    if place is None or keys is None:
        return Remedies("", 0, None, None, split)
    settings = _other_settings(place)
    found = _find_setting(trace, keys, period, settings)
    name = settings[0].name if settings else ""
    if found is None:
        return Remedies(name, len(settings), None, None, split)
    setting, tuples = found
    return Remedies(name, len(settings), setting, float(tuples.max() * place.workers / tuples.sum()), split)


def _other_settings(place: HashDestinations) -> list[Setting]:
    """Return other values of what places the keys: partitions or key groups, else the hash seed, else workers."""
    selection, workers = place.selection, place.workers
    for name in _COUNTED_IN:
        if name in type(selection.params).model_fields:
            now = getattr(selection.params, name)
            steps = (workers * step for step in range(1, _MOST_TRIED + 1))
            return [found for value in steps if value != now for found in _with_parameter(place, name, value)]
    if "hash_seed" in selection.params.seeds_used():
        seeds = (seed for seed in range(_MOST_TRIED + 1) if seed != place.hash_seed)
        return [Setting("hash_seed", seed, place._replace(hash_seed=seed)) for seed in seeds]
    more = range(workers + 1, workers + _MORE_WORKERS + 1)
    return [Setting("workers", number, place._replace(workers=number)) for number in more]


def _with_parameter(place: HashDestinations, name: str, value: int) -> Iterator[Setting]:
    given = {
        field: getattr(place.selection.params, field)
        for field, info in type(place.selection.params).model_fields.items()
        if getattr(place.selection.params, field) != info.default
    }
    values = ",".join(f"{field}={_text(one)}" for field, one in {**given, name: value}.items())
    try:
        yield Setting(name, value, place._replace(selection=select(f"{place.selection.name}:{values}")))
    except StreamgroupError:
        # More than the engine takes.
        return


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _find_setting(
    trace: Trace, keys: HashedKeys, period: Period, settings: list[Setting]
) -> tuple[Setting, I64] | None:
    """Return the setting with the least load of the most loaded worker, and the tuples of each worker, int64[n].

    Settings are ranked by the most frequent keys, the others taken to be spread evenly over key groups; the best are
    counted over all keys. None where none is clearly better than what there is.
    """
    count = period.count
    frequent = np.argsort(-count, kind="stable")[:_FREQUENT]
    some = _some_keys(trace, keys, frequent)
    rest = int(count.sum() - count[frequent].sum())

    def roughly(setting: Setting) -> float:
        parts = setting.place.selection.params.parts_by_worker(setting.place.workers)
        share = np.ones(setting.place.workers) if parts is None else parts.of_worker.astype(np.float64)
        return float((_loads(setting.place, some, count[frequent]) + rest * share / share.sum()).max())

    best = sorted(settings, key=roughly)[:_FINALISTS]
    if not best:
        return None
    counted = [(setting, _loads(setting.place, keys, count)) for setting in best]
    setting, loads = min(counted, key=lambda one: int(one[1].max()))
    return (setting, loads) if loads.max() < (1 - _GAIN) * period.tuples.max() else None


def _some_keys(trace: Trace, keys: HashedKeys, ids: I64) -> HashedKeys:
    values = trace.key_bytes(ids.tolist())

    def typed(kind: str) -> TypedKeys:
        return make_keys(keys.typed(kind).kind, *pack(values))

    return HashedKeys(keys.hash_lo[ids], keys.hash_hi[ids], typed)


def _loads(place: HashDestinations, keys: HashedKeys, count: I64) -> I64:
    workers = place.destinations(keys).workers[:, 0]
    return np.bincount(workers, count, minlength=place.workers).astype(np.int64)


def _find_split(trace: Trace, place: HashDestinations | None, period: Period) -> Split | None:
    """Return into how many each large key is to be split; None where no key is large.

    The pieces of a key are its text with #0, #1, ... behind it, and each has one worker by `place`. What they give is
    not known without a place, or where keys are not text.
    """
    workers = len(period.tuples)
    large = {int(key): period.load_of(int(key)) for key in period.hot if period.load_of(int(key)) > _LARGE}
    if not large or workers < 2:
        return None
    pieces = {key: min(workers, ceil(load / _PIECE)) for key, load in large.items()}
    return Split(pieces, None if place is None else _peak_after(trace, place, period, pieces))


def _peak_after(trace: Trace, place: HashDestinations, period: Period, pieces: dict[int, int]) -> float | None:
    ids = list(pieces)
    names = [name for name in trace.key_bytes(ids) if name is not None]
    if len(names) < len(ids) or place.key_type != "string" or trace.manifest.key_parts:
        return None
    salted = [name + b"#%d" % piece for key, name in zip(ids, names, strict=True) for piece in range(pieces[key])]
    now = place.destinations(hashed(names)).workers[:, 0]
    then = place.destinations(hashed(salted)).workers[:, 0]
    tuples = period.tuples.astype(np.float64)
    np.subtract.at(tuples, now, period.count[ids])
    np.add.at(
        tuples, then, np.concatenate([np.full(parts, period.count[key] / parts) for key, parts in pieces.items()])
    )
    return float(tuples.max() * len(tuples) / tuples.sum())
