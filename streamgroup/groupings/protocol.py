"""What a grouping is: parameters, a start, and a state whose methods the loop calls.

A grouping is a module, found by its file name, that holds

- `Params`, a subclass of `GroupingParams`: every field with bounds, the paper's symbol and a description;
- `start(params, context)`, which returns the state: an instance of a `typing.NamedTuple` of arrays and numbers that
  has the hooks below as methods. Scalars that change live in arrays, because a NamedTuple cannot change.

Hooks (argument names are fixed; times are int64 nanoseconds since the first arrival; a key is its id):

- `choose(self, source, key, now)` returns the id of a live worker, an int (0..n-1 at the start). Required.
- `observe(self, source, key, worker, now)`: called once after every `choose`, with what was chosen.
- `executed(self, worker, key, arrival, start, finish)`: the worker's own knowledge, never a source's (`arrival` is at
  the worker). Called for all
  tuples that finished up to now, in order of (finish, worker), undelayed. What a worker reports to sources belongs in
  the grouping's own queue of due messages, delayed by `context.control_delay`.
- `tick(self, now)`: timers and due messages. Called with `finish - 1` before each `executed` and with `now` before
  each `choose`, so that everything keeps its place in time.
- `workers_changed(self, change, context)`: see below.

When workers join, leave or crash, the loop calls `workers_changed` between two other hooks, before anything else that
happens at `change.now`, and goes on with the state that it returns. It is plain Python, never compiled, and the one
hook that, with `grown`, may make arrays. Worker ids are never reused, and joiners get the next ones. In a change

- `change.live` are the ids that `choose` may return from now on, ascending, never empty; `change.joined` and
  `change.left` (a crash is a leave) are what is new. `executed` may still report tuples of a worker that left;
- `context` is as at the start, but for its `workers` (how many are live), `live`, `candidates(d)` (ids of live workers:
  F_j is a place in the list of the live), and `cost`, `free` and `slowdown`, which are to be taken anew: arrays that
  have grown are other arrays;
- the new state is of the same class, and each field of the same type: arrays keep their dtype, their number of
  dimensions, and are contiguous and writeable as before. Another type would be compiled anew, at every change. Shapes
  may change: an array that is indexed by worker id needs room for the largest live id, and must not shrink.

A grouping without the hook can be replayed while the workers stay the same. One whose parameters say
`needs_every_delivery` is refused where full queues drop: it follows what it sent by counting, and a tuple that never
finishes would shift the count.

A state that grows with the stream has a field `room`, int64[1]: for how many more tuples it surely has room, each with
its `tick`, `choose`, `observe` and, later, `executed` (a tuple that is delivered again counts again). The grouping
keeps it up to date; it must not go below 0. When there is less room than the loop wants for what it does next, 256
tuples at most, the loop calls

- `grown(self)`: it returns the state with larger arrays, at least twice as large, or with half of them freed, and
  more in `room[0]`. Like
  `workers_changed` it is plain Python, never compiled, and keeps the class and the types of the fields. When it is
  called is not specified: nothing that the grouping does may depend on that.

What a grouping reports, as fields of its state that the loop or the metrics read:

- `choices`: int64[1], set by `choose`: how many workers the key may go to if it is treated as hot, else 0;
- `control_messages`, `control_bytes`: int64[1], running totals;
- `state_entries`: int64[sources] (what each source holds now), or one int that only `workers_changed` changes;
- `state_entry_bytes`: int, the nominal size of an entry;
- `detector_entries`: int64[1];
- `detector_entry_bytes`, `detector_fixed_bytes`: ints, the nominal size of one of these (`state_entry_bytes` if it is
  not there), and of what the detector holds beside them, in all sources.

A grouping that reads its feedback only at certain instants may say in a field `next_read`, int64[1], when the next one
is. `executed` then comes by that instant, before the `tick` that is due at it, in the order of the finishes within each
worker but not across workers; to put them in order across workers is most of what feedback costs.

State leads with the source axis (`load[source, worker]`): a source may only know what it sent itself.
"""

from collections.abc import Callable
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from streamgroup.base.limits import DEFAULT_SOURCES
from streamgroup.engines.keys.typed_key_arrays import Keys

__all__ = ["SEEN", "Context", "Described", "Destinations", "Grouping", "GroupingParams", "Parts", "WorkersChange"]

# The loop's live arrays that a declared exception may read.
SEEN = ("cost", "free", "slowdown")


class Described(NamedTuple):
    """What a parameter may be, in words where bounds do not say it: `Annotated[str, ..., Described("0 to 1")]`."""

    text: str


class Destinations(NamedTuple):
    """Where keys may go: `workers`, integers [keys, d], the candidates of each key in their order, 0..n-1.

    They may coincide where the grouping lets them. `remark` says, in a line, when a key goes elsewhere; empty: never.
    """

    workers: NDArray[np.integer[Any]]
    remark: str = ""


class Parts(NamedTuple):
    """What keys are hashed to before workers get it: its name in the plural, and how many each worker has, int64[n]."""

    name: str
    of_worker: NDArray[np.int64]


class GroupingParams(BaseModel):
    """Parameters of a grouping: frozen, and an unknown name is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    # Groupings whose states are of one and the same class may share compiled code by giving it a name.
    compiled_as: ClassVar[str | None] = None
    # Parameters that name a file which the start reads. The file must be readable, its content is part of a cell's
    # digest and of `run.json`, and in a sweep file it is relative to that file.
    file_parameters: ClassVar[tuple[str, ...]] = ()

    def files(self) -> dict[str, str]:
        """Return the paths of the files that are given, by parameter."""
        given = {name: getattr(self, name) for name in self.file_parameters}
        return {name: path for name, path in given.items() if path is not None}

    def sees(self) -> tuple[str, ...]:
        """Name the live arrays of the loop (`cost`, `free`, `slowdown`) that the grouping reads as an oracle."""
        return ()

    def modulo(self) -> bool:
        """Return whether a candidate's place among the live workers is a remainder (`hash=mod`)."""
        return False

    def choices_per_key(self, workers: int) -> int | None:
        """Return how many workers any key may go to; None when it depends on the key or the time."""
        del workers
        return None

    def hot_share(self, workers: int) -> Fraction | None:
        """Return the share of the stream (0..1] from which on a key ought to be hot; None: the metrics take 1/(5n)."""
        del workers
        return None

    def cold_choices(self, workers: int) -> int | None:
        """Return how many workers a key treated as cold may go to; None when that is not known."""
        del workers
        return None

    def needs_every_delivery(self) -> bool:
        """Return whether the grouping counts on every tuple that it sends being served, so that none may be dropped."""
        return False

    def not_alone(self, sources: int) -> str:
        """Return why one of so many sources cannot decide in a process of its own; empty: it can."""
        if sources > 1 and self.needs_every_delivery():
            return "its workers count what all sources sent them: use one source"
        return ""

    def seeds_used(self) -> tuple[str, ...]:
        """Name what choices depend on, of `seed` (draws) and `hash_seed` (candidates); a sweep runs no copies."""
        return ("seed", "hash_seed")

    def default_sources(self) -> int:
        """Return how many sources a run has if the user does not say (1..65536)."""
        return DEFAULT_SOURCES

    def doubts(self, workers: int, sources: int, keys: int) -> list[str]:
        """Return, one line each, what makes these parameters questionable for so many workers and keys."""
        del workers, sources, keys
        return []

    def doubts_of_keys(self, keys: Callable[..., Keys]) -> list[str]:
        """Return, one line each, what makes these parameters questionable for a stream's keys: see `check_keys`."""
        del keys
        return []

    def check_keys(self, keys: Callable[..., Keys], workers: int) -> None:
        """Raise what the start would raise for a stream's keys, where the grouping looks at them.

        `keys()` reads them under the type that the user declared, `keys("bytes")` under another.
        """
        del keys, workers

    def facts(self, workers: int) -> dict[str, int | float]:
        """Return by name what follows from these parameters for so many workers, whatever the keys are."""
        del workers
        return {}

    def parts_by_worker(self, workers: int) -> Parts | None:
        """Return the key groups, partitions or slots of each worker; None where keys are hashed to workers alone."""
        del workers
        return None

    def destinations(self, context: "Context") -> Destinations:
        """Return which workers the keys of a context may go to, as far as it is known before there are any tuples.

        It must not depend on the stream, nor on the other keys. By default these are all workers.
        """
        workers = np.broadcast_to(context.live, (context.keys, context.workers))
        if self.choices_per_key(context.workers) == context.workers:
            return Destinations(workers, "a tuple of any key may go to any worker")
        return Destinations(workers, "the grouping does not say which workers a key may go to")


class Context(NamedTuple):
    """What a grouping may know when it starts.

    `hash_lo` and `hash_hi` are int64[keys]; `candidates(d)` gives uint16[keys, d], the workers F_1..F_d of each key
    (a small table stays in the processor's cache; widen a worker before counting with it);
    `draw_stream(purpose)` gives the start value (uint64) of a stream of draws. `workers` is the number of live workers,
    `live` int64[workers] are their ids, ascending: 0..n-1 at the start. `params` are the parameters of the run.
    `typed_keys(kind)` gives the keys themselves, read as strings, ints, longs or bytes, for the rules of real engines
    (DataError where one does not parse); `key_type` is the kind that the user declared. `cost` (float64[1]: base cost
    in ns of the tuple at hand with its random factor, before the slowdown), `free` (int64[N]: when each worker is done
    with all that it was sent) and `slowdown` (float64[N]: as it is now), N workers ever there, are the loop's live
    arrays, and None unless the parameters declare them in `sees`. `counts` int64[keys] are the tuples of each key in
    the whole trace, for rules that a user makes from a recording; None where there is no trace (`where`).
    """

    workers: int
    sources: int
    keys: int
    hash_lo: NDArray[np.int64]
    hash_hi: NDArray[np.int64]
    hash_seed: int
    seed: int
    network_delay: int
    control_delay: int
    candidates: Callable[[int], NDArray[np.uint16]]
    draw_stream: Callable[[str], int]
    live: NDArray[np.int64]
    params: GroupingParams
    typed_keys: Callable[[str], Keys]
    key_type: str
    cost: NDArray[np.float64] | None = None
    free: NDArray[np.int64] | None = None
    slowdown: NDArray[np.float64] | None = None
    counts: NDArray[np.int64] | None = None


class WorkersChange(NamedTuple):
    """A membership change at `now` (ns): `live` are the ids that may be chosen from now on, ascending.

    `joined` are those of them that are new, `left` the ids that left or crashed.
    """

    now: int
    live: NDArray[np.int64]
    joined: tuple[int, ...]
    left: tuple[int, ...]


class Grouping(Protocol):
    """A module that holds a grouping."""

    __name__: str
    Params: type[GroupingParams]
    start: Callable[[Any, Context], Any]
