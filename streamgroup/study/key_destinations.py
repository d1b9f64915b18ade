"""Where keys go, without a trace: by the hashes and rules of a replay."""

import contextlib
import json
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgroup.base.errors import DataError, RunError, StreamgroupError, UsageError
from streamgroup.base.limits import MOST_WORKERS
from streamgroup.engines.keys.typed_key_arrays import Keys as TypedKeys
from streamgroup.engines.keys.typed_key_arrays import make_keys, pack
from streamgroup.engines.keys.typed_key_values import check_kind, parts_of
from streamgroup.groupings.protocol import Context, Destinations
from streamgroup.kernels import hash_placement, random_draws
from streamgroup.replay.scenario.grouping_selection import Selection, select
from streamgroup.replay.scenario.user_code_errors import describe_error
from streamgroup.traces.hash_and_show_keys import hash_keys

__all__ = ["HashDestinations", "HashedKeys", "composed", "hash_destinations", "hashed", "keys_at_once"]

# Cells of a table with a row a key and a column a worker.
_CELLS = 1 << 24
_MOST_AT_ONCE = 1 << 16


class HashedKeys(NamedTuple):
    """Keys as they are asked for, repeats included: their hashes, int64[keys], and themselves as keys of a type."""

    hash_lo: NDArray[np.int64]
    hash_hi: NDArray[np.int64]
    typed: Callable[[str], TypedKeys]


class HashDestinations(NamedTuple):
    """A grouping that is asked for keys: `workers` 1..65536, seeds 0..2^63-1, and the type of keys as in a replay."""

    selection: Selection
    workers: int
    hash_seed: int
    seed: int
    key_type: str

    def destinations(self, keys: HashedKeys) -> Destinations:
        """Return where keys go.

        DataError for a key that is not of the type, where the grouping looks at it. RunError when a grouping of the
        user's fails or returns what cannot be.
        """
        selection = self.selection
        try:
            # What a file of the user's prints is no result.
            with contextlib.redirect_stdout(sys.stderr):
                found = selection.params.destinations(self._context(keys))
        except StreamgroupError:
            raise
        except Exception as error:
            if not selection.outside_digest:
                raise
            what = describe_error(error, selection.module)
            raise RunError(f"{selection.name}: destinations() failed: {what}") from error
        self._check(found, len(keys.hash_lo))
        return found

    def _check(self, found: Any, keys: int) -> None:
        workers = getattr(found, "workers", None)
        if (
            isinstance(workers, np.ndarray)
            and np.issubdtype(workers.dtype, np.integer)
            and workers.ndim == 2
            and len(workers) == keys
            and (keys == 0 or (workers.shape[1] > 0 and workers.min() >= 0 and workers.max() < self.workers))
        ):
            return
        raise RunError(
            f"{self.selection.name}: destinations() must give integers [keys, d] from 0 to {self.workers - 1}",
            "see the guide on adding a grouping",
        )

    def _context(self, keys: HashedKeys) -> Context:
        live, modulo = np.arange(self.workers, dtype=np.int64), self.selection.params.modulo()

        def candidates(d: int) -> NDArray[np.uint16]:
            return hash_placement.candidates(keys.hash_lo, keys.hash_hi, d, live, self.hash_seed, modulo=modulo)

        return Context(
            workers=self.workers,
            sources=1,
            keys=len(keys.hash_lo),
            hash_lo=keys.hash_lo,
            hash_hi=keys.hash_hi,
            hash_seed=self.hash_seed,
            seed=self.seed,
            network_delay=0,
            control_delay=0,
            candidates=candidates,
            draw_stream=lambda purpose: random_draws.stream(self.seed, purpose),
            live=live,
            params=self.selection.params,
            typed_keys=keys.typed,
            key_type=self.key_type,
        )


def hash_destinations(
    grouping: str, workers: int, *, hash_seed: int | None = None, seed: int = 0, key_type: str = "string"
) -> HashDestinations:
    """Read what is asked: `grouping` as in `-g`, `hash_seed` as the seed if not given, as in a replay.

    UsageError for what is wrong or out of range.
    """
    hash_seed = seed if hash_seed is None else hash_seed
    if not 1 <= workers <= MOST_WORKERS:
        raise UsageError(f"-n {workers} is not between 1 and {MOST_WORKERS}")
    for name, value in (("--seed", seed), ("--hash-seed", hash_seed)):
        if not 0 <= value < 1 << 63:
            raise UsageError(f"{name} {value} is not between 0 and 2^63 - 1")
    return HashDestinations(select(grouping), workers, hash_seed, seed, check_kind(key_type))


def hashed(values: Sequence[bytes]) -> HashedKeys:
    """Hash the bytes of keys as a trace's dictionary does."""
    return HashedKeys(*hash_keys(values), lambda kind: make_keys(kind, *pack(values)))


def composed(values: Sequence[bytes], key_type: str) -> Sequence[bytes]:
    """Write composite keys as a trace holds them, whatever blanks and escapes they came with; others stay as they are.

    DataError for a key that is no JSON array of as many parts as the type has.
    """
    parts = parts_of(key_type)
    return [_composed(value, len(parts)) for value in values] if parts else values


def _composed(value: bytes, parts: int) -> bytes:
    try:
        found = json.loads(value)
        if isinstance(found, list) and len(found) == parts:
            return json.dumps(found, ensure_ascii=False, separators=(",", ":")).encode()
    except (ValueError, RecursionError):
        pass
    raise DataError(
        f"key {value.decode(errors='replace')!r} is no JSON array of {parts} parts",
        'such a key is written as ["de",42]',
    )


def keys_at_once(workers: int) -> int:
    """Return how many keys to look up at a time, so that a list of all workers for each fits well into memory."""
    return max(1 << 10, min(_MOST_AT_ONCE, _CELLS // workers))
