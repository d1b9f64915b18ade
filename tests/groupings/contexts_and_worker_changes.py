"""Workers that come and go without a loop: contexts as the loop makes them, and changes one after another."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgroup.engines.keys.typed_key_arrays import make_keys, pack
from streamgroup.groupings.protocol import Context, GroupingParams, WorkersChange
from streamgroup.kernels import hash_placement, random_draws
from streamgroup.replay.scenario.grouping_selection import select

KEYS = 500
_NONE = GroupingParams()


class Workers(NamedTuple):
    """The loop's live arrays, for as many workers as there ever were."""

    cost: NDArray[np.float64]
    free: NDArray[np.int64]
    slowdown: NDArray[np.float64]


def workers(count: int, slowdown: tuple[float, ...] = (1.0,)) -> Workers:
    factors = [slowdown[worker % len(slowdown)] for worker in range(count)]
    return Workers(np.array([1e6]), np.zeros(count, dtype=np.int64), np.array(factors))


def context(
    live: list[int],
    sources: int = 3,
    *,
    seed: int = 0,
    seen: Workers | None = None,
    params: GroupingParams = _NONE,
) -> Context:
    rng = np.random.default_rng(11)
    hash_lo, hash_hi = rng.integers(-(2**63), 2**63, (2, KEYS))
    ids = np.array(live, dtype=np.int64)

    def candidates(d: int) -> NDArray[np.uint16]:
        places = [
            hash_placement.candidate(hash_lo, hash_hi, j, len(live), modulo=params.modulo()) for j in range(1, d + 1)
        ]
        return np.ascontiguousarray(ids[np.array(places).T].astype(np.uint16))

    seen = workers(max(live) + 1) if seen is None else seen
    return Context(
        workers=len(live),
        sources=sources,
        keys=KEYS,
        hash_lo=hash_lo,
        hash_hi=hash_hi,
        hash_seed=0,
        seed=seed,
        network_delay=0,
        control_delay=0,
        candidates=candidates,
        draw_stream=lambda purpose: random_draws.stream(seed, purpose),
        live=ids,
        params=params,
        typed_keys=lambda kind: make_keys(kind, *pack([b"%d" % key for key in range(KEYS)])),
        key_type="string",
        cost=seen.cost,
        free=seen.free,
        slowdown=seen.slowdown,
        # Neither the first key is the most frequent one, nor are all counts different.
        counts=(np.arange(KEYS, dtype=np.int64) * 7) % 250,
    )


def started(text: str, count: int, sources: int = 3, *, seen: Workers | None = None) -> Any:
    """Start a grouping for workers 0..count-1."""
    selection = select(text)
    params = selection.params
    return selection.module.start(params, context(list(range(count)), sources, seen=seen, params=params))


def changed(state: Any, live: list[int], joined: tuple[int, ...] = (), left: tuple[int, ...] = (), **how: Any) -> Any:
    """Tell a grouping of a change."""
    change = WorkersChange(0, np.array(live, dtype=np.int64), joined, left)
    return state.workers_changed(change, context(live, **how))


def chosen(state: Any, source: int, count: int, key: int = 0) -> list[int]:
    """Choose for some tuples of one source."""
    return [int(state.choose(source, key, 0)) for _ in range(count)]
