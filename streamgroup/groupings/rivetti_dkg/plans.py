"""A plan that gives every key one worker: heavy keys one by one, all others by bucket (Rivetti et al., DEBS 2015).

Each source counts its tuples for a while: SpaceSaving for the frequent keys, a counter for each bucket of keys. Such
counts, of one source or added up over several, make a plan by longest processing time first: heavy keys and buckets, by
falling load, each to the worker with the least so far. (At most 4/3 - 1/(3n) times the least possible maximum: Graham
1969.)

The items of a plan are numbers: 0..columns - 1 are buckets, columns + key is a heavy key. There is one plan for all
sources or one for each; the row of a plan is its number.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgroup.groupings._loads_when_workers_change import carry_loads
from streamgroup.groupings.protocol import WorkersChange
from streamgroup.kernels.compiling.kernel_decorators import njit
from streamgroup.kernels.counts.space_saving import (
    SpaceSaving,
    entry_at,
    forget_source,
    make_space_saving,
    offer,
    places,
    used,
)
from streamgroup.kernels.int_map import enlarged, get, make_int_map, put, remove
from streamgroup.kernels.ordered.top_k import in_order, keep_best, sink

__all__ = [
    "COLUMNS",
    "ITEMS",
    "TUPLES",
    "Counts",
    "Learners",
    "Plans",
    "add_up",
    "bucket_of",
    "forget",
    "held",
    "larger_counts",
    "learn",
    "make_counts",
    "make_learners",
    "make_plans",
    "plan_for",
    "widened",
    "worker_of",
]

I64 = NDArray[np.int64]

ITEM, WORKER, LOAD = range(3)
# Columns of the sizes of a plan, and of those of counts.
ITEMS, COLUMNS = range(2)
TUPLES = 0
_32 = np.uint64(32)


class Learners(NamedTuple):
    """What each source has counted: `tables`, and `bucket` int64[sources, columns], the tuples of each bucket."""

    tables: SpaceSaving
    bucket: I64


class Counts(NamedTuple):
    """What a plan is made from.

    `sure` maps a key to the tuples that it has for certain, `bucket` int64[room] holds the tuples of each bucket, and
    `size` int64[2] how many tuples that are, and the number of buckets.
    """

    sure: I64
    bucket: I64
    size: I64


class Plans(NamedTuple):
    """Who gets what, in each plan.

    `item` int64[plans x room, 3]: item, worker, load, in the order in which they were given away, a plan's from place
    number x room on; `owner` int64[plans, columns]: worker of each bucket; `heavy` maps key x plans + number to the
    worker of a heavy key; `load` int64[plans, N]: what each worker was given; `size` int64[plans, 2]: items, and
    columns (0: there is no plan).
    """

    item: I64
    owner: I64
    heavy: I64
    load: I64
    size: I64


def make_learners(sources: int, capacity: int, columns: int) -> Learners:
    """Make learners that have seen nothing; capacity 1..2^24."""
    return Learners(make_space_saving(sources, capacity), np.zeros((sources, columns), dtype=np.int64))


def make_counts(keys: int, columns: int) -> Counts:
    """Make counts of nothing, with room for so many keys."""
    return Counts(make_int_map(keys), np.zeros(columns, dtype=np.int64), np.zeros(2, dtype=np.int64))


def larger_counts(counts: Counts, keys: int, columns: int) -> Counts:
    """Copy counts, with room for those of so many keys and buckets."""
    bucket = np.zeros(max(columns, len(counts.bucket)), dtype=np.int64)
    bucket[: len(counts.bucket)] = counts.bucket
    return Counts(enlarged(counts.sure, max(keys, len(counts.sure) // 2)), bucket, counts.size.copy())


def make_plans(plans: int, capacity: int, columns: int, workers: int) -> Plans:
    """Make room for plans of up to `capacity` heavy keys and `columns` buckets, for worker ids below `workers`."""
    return Plans(
        item=np.zeros((plans * (capacity + columns), 3), dtype=np.int64),
        owner=np.zeros((plans, columns), dtype=np.int64),
        heavy=make_int_map(plans * capacity),
        load=np.zeros((plans, workers), dtype=np.int64),
        size=np.zeros((plans, 2), dtype=np.int64),
    )


def widened(plans: Plans, capacity: int, columns: int, change: WorkersChange) -> Plans:
    """Copy plans with room for others of this size, and their loads as `carry_loads` has them."""
    count, before = plans.owner.shape
    held, room = len(plans.item) // count, max(capacity + columns, len(plans.item) // count)
    wide = Plans(
        item=np.zeros((count * room, 3), dtype=np.int64),
        owner=np.zeros((count, max(columns, before)), dtype=np.int64),
        heavy=enlarged(plans.heavy, max(count * capacity, len(plans.heavy) // 2)),
        load=carry_loads(plans.load, change),
        size=plans.size.copy(),
    )
    wide.item.reshape(count, room, 3)[:, :held] = plans.item.reshape(count, held, 3)
    wide.owner[:, :before] = plans.owner
    return wide


@njit(forceinline=True)
def bucket_of(hashed: Any, columns: Any) -> Any:
    """Return a key's bucket from `hashed`, the upper 32 bits of its hash: the column of a sketch, 0..columns - 1."""
    return np.int64((np.uint64(hashed) * np.uint64(columns)) >> _32)


@njit(forceinline=True)
def worker_of(plans: Any, number: Any, hashed: Any, key: Any, otherwise: Any) -> Any:
    """Return the worker that a plan sends a key to, `otherwise` if there is no plan."""
    columns = plans.size[number, COLUMNS]
    if columns == 0:
        return np.int64(otherwise)
    worker = get(plans.heavy, key * plans.size.shape[0] + number)
    return plans.owner[number, np.uint64(bucket_of(hashed, columns))] if worker < 0 else worker


@njit(forceinline=True)
def learn(learners: Any, source: Any, hashed: Any, key: Any) -> None:
    """Count a tuple at a source."""
    offer(learners.tables, source, key, True)
    learners.bucket[source, bucket_of(hashed, learners.bucket.shape[1])] += 1


@njit(forceinline=True)
def held(learners: Any, source: Any) -> Any:
    """Return how many entries and buckets a source has."""
    return used(learners.tables, source) + learners.bucket.shape[1]


@njit
def forget(learners: Any, source: Any) -> None:
    """Let a source start anew."""
    forget_source(learners.tables, source)
    for column in range(learners.bucket.shape[1]):
        learners.bucket[source, column] = 0


@njit
def add_up(learners: Any, source: Any, counts: Any) -> None:
    """Add what a source has counted to `counts`, of a key what it has for certain, and let it start anew."""
    columns = learners.bucket.shape[1]
    counts.size[COLUMNS] = columns
    for column in range(columns):
        counts.bucket[column] += learners.bucket[source, column]
        counts.size[TUPLES] += learners.bucket[source, column]
    for number in range(places(learners.tables)):
        key, count, error = entry_at(learners.tables, source, number)
        if key >= 0 and count > error:
            put(counts.sure, key, max(get(counts.sure, key), 0) + count - error)
    forget(learners, source)


@njit
def _empty(plans: Any, number: Any) -> None:
    """Remove the heavy keys of a plan from the map, and set the planned load of every worker to 0."""
    room, columns = plans.item.shape[0] // plans.size.shape[0], plans.size[number, COLUMNS]
    for place in range(number * room, number * room + plans.size[number, ITEMS]):
        if plans.item[place, ITEM] >= columns:
            remove(plans.heavy, (plans.item[place, ITEM] - columns) * plans.size.shape[0] + number)
    for worker in range(plans.load.shape[1]):
        plans.load[number, worker] = 0


@njit
def plan_for(counts: Any, plans: Any, number: Any, hashed: Any, live: Any, theta: Any, rows: Any) -> None:
    """Make a plan from what was counted, which is forgotten; the counters of buckets lose what their heavy keys have.

    A key is heavy if its sure tuples x theta[1] >= theta[0] x all tuples that were counted. Among items of equal load
    buckets come before keys, and lower numbers first; of equal workers the lowest. `hashed` uint32[keys]; `rows`
    int64[2, room, 3] is for sorting, with room for all items and for all of `live` int64[n].
    """
    sure, bucket, items, heap = counts.sure, counts.bucket, rows[0], rows[1]
    columns, learned, size = counts.size[COLUMNS], counts.size[TUPLES], np.int64(0)
    for slot in range(sure.shape[0]):
        key, load = sure[slot, 0] - 1, sure[slot, 1]
        if key >= 0 and load * theta[1] >= theta[0] * learned:
            keep_best(items, size, items.shape[0], load, columns + key, columns + key)
            bucket[bucket_of(hashed[key], columns)] -= load
            size += 1
        sure[slot, 0] = 0
    for column in range(columns):
        keep_best(items, size, items.shape[0], bucket[column], column, column)
        size += 1
        bucket[column] = 0
    counts.size[TUPLES] = 0
    in_order(items, size)
    # A heap with the least loaded worker, of these the lowest, at its root: what ranks last.
    for place in range(live.shape[0]):
        keep_best(heap, place, live.shape[0], 0, -live[place], live[place])
    _empty(plans, number)
    first = number * (plans.item.shape[0] // plans.size.shape[0])
    for place in range(size):
        item, load, worker = items[place, 2], items[place, 0], heap[0, 2]
        plans.item[first + place, ITEM] = item
        plans.item[first + place, WORKER] = worker
        plans.item[first + place, LOAD] = load
        if item < columns:
            plans.owner[number, item] = worker
        else:
            put(plans.heavy, (item - columns) * plans.size.shape[0] + number, worker)
        plans.load[number, worker] += load
        heap[0, 0] += load
        sink(heap, live.shape[0])
    plans.size[number, ITEMS] = size
    plans.size[number, COLUMNS] = columns
