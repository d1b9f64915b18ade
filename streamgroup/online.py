"""A grouping in production: one object in each source decides where its tuples go, as a replay would."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from streamgroup.base.compiling.restore_builtin_print import builtin_print
from streamgroup.base.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Partitioner"]

_NULL = -1


class Partitioner:
    """Decides which worker gets each tuple of one source.

    `grouping` is a name with parameters (`"pkg"`, `"d_choices:eps=0.001"`) or a file; `workers` their number;
    `source` is this source of `sources` (not given: the grouping's default), 0, 1, ... Sources share nothing: each
    process has a partitioner of its own. `options` are those of `streamgroup replay` that a choice can depend on:
    `seed`, `hash_seed`, `key_type`, `network_delay`, `control_delay`.

    Keys are the bytes that the trace has of them: UTF-8 for strings, decimal text for numbers, None for the null key.
    They are kept, with what the grouping holds of each; `keys` is how many to expect, which saves enlargements.
    `interpreted` compiles nothing: it decides 10 to 100 times more slowly.

    Given the keys and times of one source, decisions are those of a replay with these options. UsageError for a
    grouping that cannot decide alone: an oracle, or one whose sources exchange messages.
    """

    def __init__(
        self,
        grouping: str | Path,
        workers: int,
        source: int = 0,
        *,
        sources: int | None = None,
        keys: int = 0,
        interpreted: bool = False,
        **options: Any,
    ) -> None:
        # In PyFlink's processes they cannot be imported otherwise.
        with builtin_print():
            from streamgroup.api.make_options import known_only, made_options
            from streamgroup.replay.online.decider import Decider

        known_only("Partitioner", options, ("seed", "hash_seed", "key_type", "network_delay", "control_delay"))
        given = options if sources is None else {**options, "sources": sources}
        made = made_options(grouping, workers, given)
        self._decider = Decider(made, source, keys=keys, interpreted=interpreted)
        self._place_of = self._decider.known.ids
        self._source = source
        self._begun = time.monotonic_ns()
        decide, self._address = self._decider.fast or (_nothing, 0)
        self._decide = decide

    def choose(self, key: bytes | None, now: int | None = None) -> int:
        """Return the worker for the next tuple.

        `now` is the time in ns since any one moment, which must not go back; by default the time since the partitioner
        was made.
        """
        place = self._place_of.get(key)
        if place is None:
            self._decider.add([key])
            place = self._place_of[key]
        if now is None:
            now = time.monotonic_ns() - self._begun
        worker = self._decide(self._address, None, self._source, place, now)
        return worker if worker >= 0 else self._decider.one(place, now)

    def choose_batch(
        self, keys: "Sequence[bytes | None] | pa.Array", now: NDArray[np.int64] | int | None = None
    ) -> NDArray[np.int32]:
        """Return the workers for tuples in their order, int32: the same as `choose` for each.

        `keys` is a list of bytes or an Arrow array of binaries or strings; `now` a time for each, or one for all.
        """
        return self.choose_known(self.known(keys), now)

    def known(self, keys: "Sequence[bytes | None] | pa.Array") -> NDArray[np.uint32]:
        """Return the ids of keys, uint32, for `choose_known`; new keys get the next ids, in the order they come in."""
        import pyarrow as pa

        from streamgroup.traces.hash_and_show_keys import as_binary

        if isinstance(keys, pa.Array):
            encoded = as_binary(keys).dictionary_encode(null_encoding="encode")
            ids = self._decider.ids(encoded.dictionary.to_pylist())
            found: NDArray[np.uint32] = ids[encoded.indices.to_numpy(zero_copy_only=False)]
            return found
        return self._decider.ids(keys)

    def choose_known(self, ids: NDArray[np.uint32], now: NDArray[np.int64] | int | None = None) -> NDArray[np.int32]:
        """Return the workers for tuples of known keys, as `choose_batch`; UsageError for an unknown id."""
        if now is None:
            now = time.monotonic_ns() - self._begun
        times = np.ascontiguousarray(np.broadcast_to(np.asarray(now, dtype=np.int64), len(ids)))
        if len(ids) and not 0 <= np.min(ids) <= np.max(ids) < len(self._place_of):
            # Compiled code would read and write past its arrays.
            raise UsageError(f"ids of known keys are 0 to {len(self._place_of) - 1}", "take those that known() returns")
        return self._decider.many(np.ascontiguousarray(ids, dtype=np.uint32), times).worker

    def finished(
        self,
        worker: "NDArray[np.int64] | Sequence[int] | int",
        key: "Sequence[bytes | None] | bytes | None",
        arrival: "NDArray[np.int64] | Sequence[int] | int",
        start: "NDArray[np.int64] | Sequence[int] | int",
        finish: "NDArray[np.int64] | Sequence[int] | int",
    ) -> None:
        """Report tuples that workers finished: one, or several in the order of their finishes.

        `arrival` at the worker, `start` and `finish` are in ns on the clock of `now`. It is for groupings that listen
        (`listens`); for others it does nothing. Every partitioner needs the reports of all workers, of the tuples of
        all sources.
        """
        from streamgroup.replay.online.deliver_finished_tuples import Finishes

        if not self.listens:
            return
        one = key is None or isinstance(key, bytes)
        ids = self._decider.ids([key] if one else key).astype(np.int64)  # type: ignore[list-item, arg-type]
        columns = (np.atleast_1d(np.asarray(column, dtype=np.int64)) for column in (arrival, start, finish))
        workers = np.atleast_1d(np.asarray(worker, dtype=np.int64))
        self._decider.finished(Finishes(workers, ids, *columns))

    @property
    def listens(self) -> bool:
        """Return whether the grouping uses what workers report."""
        return self._decider.grouping.has_feedback

    def change_workers(self, live: Sequence[int], now: int | None = None) -> None:
        """Go on with other workers: `live` are their ids. New ones have ids that were never used, ascending.

        UsageError for other ids, and for a grouping with a fixed number of workers.
        """
        self._decider.change(live, time.monotonic_ns() - self._begun if now is None else now)

    @property
    def state(self) -> Mapping[str, int]:
        """Return what the partitioner holds: `keys`, and the grouping's `state_entries` where it reports them."""
        found = {"keys": len(self._place_of)}
        entries = self._decider.largest_state
        return found if entries is None else {**found, "state_entries": entries}


def _nothing(*_: Any) -> int:
    """Decide nothing, so that the decider is asked."""
    return _NULL
